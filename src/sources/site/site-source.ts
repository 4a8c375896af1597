import { withoutEndSlashes } from '../../core/shared/text.ts'
import { lastPart, parseUrl } from '../address/parts.ts'
import type { SourceKind } from '../address/source-kind.ts'
import { AddressError } from '../source-error.ts'
import { fetchSite, type SiteSource } from './fetch-site.ts'

export const siteKind: SourceKind<SiteSource> = {
  kind: 'site',
  protocols: ['well-known+https:', 'well-known+http:'],
  description: 'A site that publishes skills by Agent Skills Discovery: https://host/path',
  settings: {},
  intervalMs: 300_000,
  create (address) {
    const { pathname, hostname, origin, search } = parseUrl(address, ['https:', 'http:'])
    if (search !== '') throw new AddressError('the address of a site ends with its path: https://host/path')
    const path = withoutEndSlashes(pathname)
    const name = path === '' ? hostname.replace(/[^\w.-]+/g, '') : lastPart(path)
    return { kind: 'site', name, layout: 'flat', url: origin + path }
  },
  fetch: fetchSite
}
