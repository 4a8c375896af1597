import { join } from 'node:path'
import type { Environment } from '../../config/setting.ts'
import type { Fetched, Fetcher, FetchOptions } from '../fetcher.ts'
import { credentialsOf, saveBody, send, validatorsOf } from '../http/http-client.ts'
import { storedFiles } from '../publish/source-tree.ts'
import { SourceError } from '../source-error.ts'
import type { ArchiveSource } from './archive-source.ts'
import { unpackArchive } from './unpack.ts'
import { UnpackedFiles } from './unpacked-files.ts'

const INTERVAL_MS = 300_000
/** Without a validator each check is a download. */
const BLIND_INTERVAL_MS = 600_000

export const MAX_ARCHIVE_BYTES = 512 * 1_048_576

/** Fetches one archive over HTTPS: once for each release, everything else is a 304. */
export function createArchiveFetcher (source: ArchiveSource, env: Environment): Fetcher {
  /** The last download without a validator, which counts once it is published. By the monotonic clock. */
  let blind: { readonly digest: string, readonly until: number } | undefined
  return {
    intervalMs: INTERVAL_MS,
    async fetch ({ known, isAsked, signal, tmp }: FetchOptions): Promise<Fetched | undefined> {
      const { url, digest, path, auth = {} } = source
      const before = known?.['digest']
      if (before !== undefined && before === digest) return undefined
      const isRecent = blind !== undefined && before === blind.digest && performance.now() < blind.until
      if (isAsked !== true && isRecent) return undefined
      const { digest: _, ...headers } = known ?? {}
      const accept = Object.keys(headers).length > 0 ? [304] : []
      const answer = await send({ url, signal, env, accept, credentials: await credentialsOf(auth, env), headers })
      if (answer.status === 304) return undefined
      const validators = validatorsOf(answer)
      const isBlind = Object.keys(validators).length === 0
      const file = join(tmp, 'archive')
      const found = `sha256:${(await saveBody(answer, file, MAX_ARCHIVE_BYTES)).sha256}`
      if (digest !== undefined && digest !== found) {
        throw new SourceError('digest_mismatch', `the archive is ${found}, and not the one that is configured`)
      }
      if (isBlind) blind = { digest: found, until: performance.now() + BLIND_INTERVAL_MS }
      if (before === found && isBlind) return undefined
      const files = await UnpackedFiles.create(tmp, signal)
      await unpackArchive(file, files, signal)
      const memory = { digest: found, ...validators }
      return { revision: found, memory, files: storedFiles(files.files(true, path)), path }
    }
  }
}
