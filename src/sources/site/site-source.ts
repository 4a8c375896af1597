import { withoutEndSlashes } from '../../core/shared/text.ts'
import { lastPart, parseUrl, requireLoopback, requireNoCredentials, withoutKeys } from '../address/parts.ts'
import type { SourceCommon, SourceKind } from '../address/source-kind.ts'
import { AddressError } from '../source-error.ts'

export interface SiteSource extends SourceCommon {
  readonly kind: 'site'
  /** Without a slash at the end: `/.well-known/…` follows. */
  readonly url: string
}

const PREFIX = 'well-known+'

export const siteKind: SourceKind<SiteSource> = {
  kind: 'site',
  protocols: [`${PREFIX}https:`, `${PREFIX}http:`],
  forms: [`${PREFIX}https://`],
  description: 'A site that publishes skills by Agent Skills Discovery: https://host/path',
  settings: {},
  parse: ({ base, fragment }) => site(fragment === undefined ? base : `${base}#`),
  configure: (address) => site(withoutKeys(address)),
  identity: ({ url }) => url
}

function site (text: string): SiteSource {
  const url = parseUrl(text.startsWith(PREFIX) ? text.slice(PREFIX.length) : text)
  requireNoCredentials(url)
  if (url.protocol === 'http:') requireLoopback(url)
  else if (url.protocol !== 'https:') throw new AddressError('a site is at https://')
  if (/[?#]/.test(text)) throw new AddressError('the address of a site ends with its path: https://host/path')
  const path = withoutEndSlashes(url.pathname)
  const name = path === '' ? url.hostname.replace(/[^\w.-]+/g, '') : lastPart(path)
  return { kind: 'site', name, layout: 'flat', url: url.origin + path }
}
