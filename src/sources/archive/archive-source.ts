import { join } from 'node:path'
import type { ArchiveSource, Fetched, FetchOptions } from '../address/source-kind.ts'
import { saveBody } from '../http/body.ts'
import { credentialsOf } from '../secrets.ts'
import { send, validatorsOf } from '../http/http-client.ts'
import { storedFiles } from '../publish/source-tree.ts'
import { SourceError } from '../source-error.ts'
import { MAX_ARCHIVE_BYTES, unpackArchive, withoutTopFolder } from './unpack.ts'

/** Fetches an archive: once for each release where the host gives validators. */
export async function fetch (
  { url, digest, path, auth = {} }: ArchiveSource, { known, signal, tmp, env }: FetchOptions
): Promise<Fetched | undefined> {
  const { digest: before, ...headers } = known ?? {}
  if (before !== undefined && before === digest) return undefined
  const accept = Object.keys(headers).length > 0 ? [304] : []
  const answer = await send({ url, signal, env, accept, credentials: await credentialsOf(auth, env), headers })
  if (answer.status === 304) return undefined
  const validators = validatorsOf(answer)
  const file = join(tmp, 'archive')
  const found = `sha256:${(await saveBody(answer, file, MAX_ARCHIVE_BYTES)).sha256}`
  if (digest !== undefined && digest !== found) {
    throw new SourceError('digest_mismatch', `the archive has the digest ${found}, not the configured one`)
  }
  if (before === found && Object.keys(validators).length === 0) return undefined
  const entries = withoutTopFolder(await unpackArchive(file, join(tmp, 'files'), signal), path)
  return { revision: found, memory: { digest: found, ...validators }, files: storedFiles(entries), path }
}
