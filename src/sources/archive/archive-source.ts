import { join } from 'node:path'
import { DIGEST, lastPart, parsePath, parseUrl, PATH_SETTING } from '../address/parts.ts'
import type { SourceCommon, SourceKind } from '../address/source-kind.ts'
import { saveBody } from '../http/body.ts'
import { credentialsOf } from '../http/credentials.ts'
import { send, validatorsOf } from '../http/http-client.ts'
import { storedFiles } from '../publish/source-tree.ts'
import { AddressError, SourceError } from '../source-error.ts'
import { MAX_ARCHIVE_BYTES, unpackArchive, withoutTopFolder } from './unpack.ts'

export interface ArchiveSource extends SourceCommon {
  readonly kind: 'archive'
  readonly url: string
  /** `sha256:<hex>` of the archive's bytes: other bytes are never published. */
  readonly digest?: string | undefined
  readonly path: string
}

/** How files that hold a tree of files end. */
export const PACKED_FILE = /\.(?:zip|skill|tar\.gz|tgz|tar\.zst|tar)$/i

export const archiveKind: SourceKind<ArchiveSource> = {
  kind: 'archive',
  protocols: ['https:', 'http:'],
  isAddress: ({ pathname }) => PACKED_FILE.test(pathname),
  description: 'An archive: https://….zip, https://….tar.gz',
  settings: {
    path: PATH_SETTING,
    digest: {
      pattern: DIGEST.source,
      title: 'sha256: and 64 hexadecimal digits',
      description: 'archive: the only bytes that are published'
    }
  },
  intervalMs: 300_000,
  /** A digest, a folder in the archive, or both: `sha256:…:skills`. */
  parseFragment (fragment) {
    const [, digest, path] = /^(sha256:[^:]*)?:?(.*)$/s.exec(fragment) ?? []
    return { digest, path }
  },
  create (address, { path, digest }) {
    const { href, pathname } = parseUrl(address, ['https:', 'http:'])
    if (digest !== undefined && !DIGEST.test(digest)) {
      throw new AddressError('a digest is sha256: and 64 hexadecimal digits')
    }
    const name = lastPart(pathname.replace(PACKED_FILE, ''))
    return { kind: 'archive', name, layout: 'auto', url: href, path: parsePath(path), digest }
  },
  /** Fetches it once for each release where the host gives validators, everything else is a 304. */
  async fetch ({ url, digest, path, auth = {} }, { known, signal, tmp, env }) {
    const { digest: before, ...headers } = known ?? {}
    if (before !== undefined && before === digest) return undefined
    const accept = Object.keys(headers).length > 0 ? [304] : []
    const answer = await send({ url, signal, env, accept, credentials: await credentialsOf(auth, env), headers })
    if (answer.status === 304) return undefined
    const validators = validatorsOf(answer)
    const file = join(tmp, 'archive')
    const found = `sha256:${(await saveBody(answer, file, MAX_ARCHIVE_BYTES)).sha256}`
    if (digest !== undefined && digest !== found) {
      throw new SourceError('digest_mismatch', `the archive is ${found}, and not the one that is configured`)
    }
    if (before === found && Object.keys(validators).length === 0) return undefined
    const entries = withoutTopFolder(await unpackArchive(file, join(tmp, 'files'), signal), path)
    return { revision: found, memory: { digest: found, ...validators }, files: storedFiles(entries), path }
  }
}
