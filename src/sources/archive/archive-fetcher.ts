import { join } from 'node:path'
import type { Environment } from '../../config/setting.ts'
import type { Fetched, Fetcher, FetchOptions } from '../fetcher.ts'
import { basic, saveBody, send } from '../http/http-client.ts'
import { storedFiles } from '../publish/source-tree.ts'
import { readSecret } from '../secrets.ts'
import { SourceError } from '../source-error.ts'
import type { SourceAuth } from '../address/source-kind.ts'
import type { ArchiveSource } from './archive-source.ts'
import { unpackArchive } from './unpack.ts'
import { UnpackedFiles } from './unpacked-files.ts'

const INTERVAL_MS = 300_000
/** Without a validator each check is a download. */
const BLIND_INTERVAL_MS = 600_000

export const MAX_ARCHIVE_BYTES = 512 * 1_048_576

/** Fetches one archive over HTTPS: once for each release, everything else is a 304. */
export function createArchiveFetcher (source: ArchiveSource, env: Environment): Fetcher {
  /** The last download without a validator, which counts only once it is published. By the monotonic clock: that of the machine may be set back. */
  let blind: { readonly digest: string, readonly until: number } | undefined
  return {
    intervalMs: INTERVAL_MS,
    async fetch ({ known, isAsked, signal, tmp }: FetchOptions): Promise<Fetched | undefined> {
      const { url, digest, path, auth = {} } = source
      if (known !== undefined && digest !== undefined && known['digest'] === digest) return undefined
      if (isAsked !== true && known !== undefined && known['digest'] === blind?.digest && performance.now() < (blind?.until ?? 0)) return undefined
      const conditions = { ...known?.['etag'] && { 'if-none-match': known['etag'] }, ...known?.['modified'] && { 'if-modified-since': known['modified'] } }
      const accept = Object.keys(conditions).length > 0 ? [304] : []
      const answer = await send({ url, signal, accept, credentials: await credentialsOf(auth, env), headers: conditions })
      if (answer.status === 304) return undefined
      const etag = answer.headers.get('etag')
      const modified = answer.headers.get('last-modified')
      const file = join(tmp, 'archive')
      const { sha256 } = await saveBody(answer, file, MAX_ARCHIVE_BYTES)
      const found = `sha256:${sha256}`
      if (digest !== undefined && digest !== found) throw new SourceError('digest_mismatch', `the archive is ${found}, and not the one that is configured`)
      if (etag === null && modified === null) blind = { digest: found, until: performance.now() + BLIND_INTERVAL_MS }
      if (known?.['digest'] === found && etag === null && modified === null) return undefined
      const files = await UnpackedFiles.create(tmp, signal)
      await unpackArchive(file, files, signal)
      return {
        revision: found,
        memory: { digest: found, ...etag !== null && { etag }, ...modified !== null && { modified } },
        files: storedFiles(files.files(true, path)),
        path
      }
    }
  }
}

async function credentialsOf (auth: SourceAuth, env: Environment): Promise<Readonly<Record<string, string>>> {
  const secret = await readSecret(auth, env)
  if (secret === undefined) return {}
  return auth.username === undefined ? { authorization: `Bearer ${secret}` } : basic(auth.username, secret)
}
