import {
  DIGEST, lastPart, parsePath, parseUrl, PATH_SETTING, requireLoopback, requireNoCredentials, withoutFragment,
  withoutKeys
} from '../address/parts.ts'
import type { SourceCommon, SourceKind } from '../address/source-kind.ts'
import { AddressError } from '../source-error.ts'

export interface ArchiveSource extends SourceCommon {
  readonly kind: 'archive'
  readonly url: string
  /** `sha256:<hex>` of the archive's bytes: other bytes are never published. */
  readonly digest?: string
  /** A folder in the archive. */
  readonly path: string
}

const EXTENSION = /\.(?:zip|skill|tar\.gz|tgz|tar\.zst|tar)$/i

export const archiveKind: SourceKind<ArchiveSource> = {
  kind: 'archive',
  protocols: ['https:', 'http:'],
  forms: ['https:// of an archive'],
  description: 'An archive: https://….zip, https://….tar.gz',
  settings: {
    path: PATH_SETTING,
    digest: {
      pattern: DIGEST.source,
      title: 'sha256: and 64 hexadecimal digits',
      description: 'archive: the only bytes that are published'
    }
  },
  /** Behind `#` stands a digest, a folder in the archive, or both: `sha256:…:skills`. */
  parse ({ url, fragment = '' }) {
    if (!EXTENSION.test(url.pathname)) return undefined
    const digest = /^sha256:[^:]*/.exec(fragment)?.[0]
    return archive(url, digest === undefined ? fragment : fragment.slice(digest.length + 1), digest)
  },
  configure: (address, { path, digest }) => archive(parseUrl(withoutKeys(address)), path, digest),
  // What was published without this digest may have other bytes.
  identity: ({ url, path, digest }) => digest === undefined ? [url, path] : [url, path, digest]
}

function archive (url: URL, path = '', digest?: string): ArchiveSource {
  requireNoCredentials(url)
  if (url.protocol === 'http:') requireLoopback(url)
  else if (url.protocol !== 'https:') throw new AddressError('an archive is at an https:// address')
  if (digest !== undefined && !DIGEST.test(digest)) {
    throw new AddressError('a digest is sha256: and 64 hexadecimal digits')
  }
  return {
    kind: 'archive',
    name: lastPart(url.pathname.replace(EXTENSION, '')),
    layout: 'auto',
    url: withoutFragment(url),
    path: parsePath(path),
    ...digest !== undefined && { digest }
  }
}
