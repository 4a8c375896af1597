import { hash, randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import pLimit from 'p-limit'
import { createMatcher } from '../../layout/find-skills.ts'
import { isMainFile } from '../../core/format/main-files.ts'
import type { LeftOut } from '../../layout/layout.ts'
import { MAX_FILE_BYTES, MAX_PUBLISHED_BYTES } from '../../core/shared/limits.ts'
import { compareCodePoints } from '../../core/shared/text.ts'
import type { Fetched, FetchOptions, SiteSource } from '../address/source-kind.ts'
import { MAX_ARCHIVE_BYTES, unpackArchive } from '../archive/unpack.ts'
import { decodeFile, saveBody } from '../http/body.ts'
import { send, validatorsOf } from '../http/http-client.ts'
import { checkEntries, MAX_ENTRIES, type SourceEntry, storedFiles } from '../publish/source-tree.ts'
import { credentialsOf, type RequestHeaders } from '../secrets.ts'
import { isAbortError, SourceError, type SourceErrorCode } from '../source-error.ts'
import { type Artifact, parseIndex } from './site-index.ts'

const MAX_INDEX_BYTES = 8 * 1_048_576
const MAX_DOWNLOADS = 8
const VERSIONS = ['agent-skills', 'skills'] as const

/** Part of a fetch's time after which missing artifacts are skipped. */
const DOWNLOADS_PART = 0.75

/** Errors of the whole site. After any other error, the next version of the index is tried. */
const SITE_FAILURES: ReadonlySet<SourceErrorCode> = new Set(['unreachable', 'timeout', 'tls', 'rate_limited'])

/** Reasons in the status for errors of one artifact. Default: `unreachable`. */
const ARTIFACT_FAILURES: Readonly<Partial<Record<SourceErrorCode, LeftOut['reason']>>> = {
  digest_mismatch: 'digest_mismatch',
  not_found: 'not_found',
  redirected: 'not_found',
  bad_archive: 'bad_package',
  refused_tree: 'bad_package',
  too_large: 'bound_reached'
}

/** Digest of the bytes at a URL, and the headers that make the next request conditional. */
interface Answer {
  readonly digest: string
  readonly headers: RequestHeaders
}

type Answers = Record<string, Answer>

/** Mirrors the skills that a site publishes. Downloads are cached by digest, so only new files are requested. */
export async function fetch (source: SiteSource, options: FetchOptions): Promise<Fetched | undefined> {
  const credentials = await credentialsOf(source.auth ?? {}, options.env)
  const before = JSON.parse(options.known?.['answers'] ?? '{}') as Answers
  const fetched = await mirror(source, options, credentials, before)
  // The site may have published another state since its index was read.
  const isChanging = fetched?.leftOut?.some(({ reason }) => reason === 'digest_mismatch')
  const last = isChanging === true ? await mirror(source, options, credentials, {}) : fetched
  const bad = last?.leftOut?.find(({ reason }) => reason !== 'excluded')
  if (last?.files.entries.length !== 0 || bad === undefined) return last
  const example = `${JSON.stringify(bad.path)} is skipped (${bad.reason})`
  throw new SourceError('bad_answer', `the site has no skill that can be used: ${example}`)
}

/**
 * Mirrors a site once: downloads and unpacks all skills. A skill that cannot be fetched is left out, by its name.
 * @param before what the addresses of the site gave the last time
 * @returns undefined if the skills are already published
 */
async function mirror (
  source: SiteSource, options: FetchOptions, credentials: RequestHeaders, before: Answers
): Promise<Fetched | undefined> {
  const { cache, known, signal, tmp, env } = options
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(options.timeoutMs * DOWNLOADS_PART)])
  // Every download adds a listener.
  setMaxListeners(0, deadline)
  const answers: Answers = {}
  /** Bytes that were downloaded, later those that were unpacked. */
  let bytes = 0
  const { skills, leftOut } = await readIndex()
  const found = await pLimit(MAX_DOWNLOADS).map(skills, ([name, artifacts]) => orSkipSkill(name, async () => {
    const files: SourceEntry[] = []
    for (const artifact of artifacts) files.push(await download(artifact, deadline))
    return { name, files }
  }))
  const good = found.flatMap((skill) => skill ?? [])
  leftOut.sort((a, b) => compareCodePoints(a.path, b.path))
  const used = new Set(Object.values(answers).map(({ digest }) => digest))
  for (const name of await readdir(cache)) if (!used.has(name)) await rm(join(cache, name), { force: true })
  const digests = good.map(({ name, files }) => [name, ...files.map(({ id }) => id)])
  const revision = `sha256:${hash('sha256', JSON.stringify([digests, leftOut]))}`
  if (known?.['revision'] === revision) return undefined
  const entries: SourceEntry[] = []
  bytes = 0
  for (const { name, files } of good) {
    entries.push(...await orSkipSkill(name, () => unpack(name, files, entries.length)) ?? [])
  }
  const memory = { revision, answers: JSON.stringify(answers) }
  return { revision, memory, files: storedFiles(entries), leftOut, path: '' }

  /** Reads the index of version 0.2.0, or that of 0.1.0 where there is none. */
  async function readIndex (): Promise<ReturnType<typeof parseIndex>> {
    const { url: base, include = ['**'], exclude = [] } = source
    const [isIncluded, isExcluded] = [createMatcher(include), createMatcher(exclude)]
    let failure: SourceError | undefined
    for (const version of VERSIONS) {
      const url = `${base}/.well-known/${version}/index.json`
      try {
        const { stored = '' } = await download({ url, path: '' }, signal, MAX_INDEX_BYTES)
        // Also removes a byte order mark.
        const text = new TextDecoder().decode(await readFile(stored))
        return parseIndex(text, url, (name) => isIncluded(name) && !isExcluded(name))
      } catch (error) {
        if (!(error instanceof SourceError) || SITE_FAILURES.has(error.code)) throw error
        if (error.code !== 'not_found') failure ??= error
      }
    }
    throw failure ?? new SourceError('not_found', 'the site has no readable index of skills at this path')
  }

  /** Returns an artifact from the cache; if it is missing or may have changed, downloads it first. */
  async function download (
    artifact: Artifact, signal: AbortSignal, limit = artifact.path === '' ? MAX_ARCHIVE_BYTES : MAX_FILE_BYTES
  ): Promise<SourceEntry> {
    const { url, path, digest } = artifact
    const last = digest === undefined ? before[url] : { digest, headers: {} }
    const kept = last !== undefined && existsSync(join(cache, last.digest)) ? last : undefined
    const answer = kept !== undefined && digest !== undefined ? kept : await ask(artifact, kept, signal, limit)
    answers[url] = answer
    const stored = join(cache, answer.digest)
    return { path, kind: 'file', id: answer.digest, size: (await stat(stored)).size, stored }
  }

  async function ask (
    { url, digest }: Artifact, kept: Answer | undefined, signal: AbortSignal, limit: number
  ): Promise<Answer> {
    const headers = kept?.headers ?? {}
    const accept = Object.keys(headers).length > 0 ? [304] : []
    const answer = await send({ url, signal, env, credentials, headers, accept, isOneSite: true })
    if (answer.status === 304 && kept !== undefined) {
      answer.body.destroy()
      return kept
    }
    const file = join(tmp, randomUUID())
    const max = Math.min(limit, MAX_PUBLISHED_BYTES - bytes)
    let saved = await saveBody(answer, file, max)
    // The digest may be that of the bytes as sent, still encoded, or of the decoded ones.
    if (digest !== `sha256:${saved.sha256}`) saved = await decodeFile(answer, file, max) ?? saved
    const found = `sha256:${saved.sha256}`
    if (digest !== undefined && digest !== found) {
      await rm(file)
      throw new SourceError('digest_mismatch', 'the site sent bytes that do not match the digest in its index')
    }
    await rename(file, join(cache, found))
    bytes += saved.size
    return { digest: found, headers: validatorsOf(answer) }
  }

  /**
   * @param count of the entries before it
   * @throws SourceError if the skill cannot be published, or is too large together with those before it
   */
  async function unpack (name: string, files: readonly SourceEntry[], count: number): Promise<readonly SourceEntry[]> {
    const archive = files.find(({ path }) => path === '')
    const folder = join(tmp, randomUUID())
    try {
      const unpacked = archive === undefined ? files : await unpackArchive(archive.stored ?? '', folder, signal)
      if (!unpacked.some(({ path }) => isMainFile(path))) {
        throw new SourceError('bad_archive', 'the archive has no SKILL.md at its top level')
      }
      const entries = unpacked.map((entry) => ({ ...entry, path: `${name}/${entry.path}` }))
      checkEntries(entries, name, true)
      const total = entries.reduce((sum, { size }) => sum + size, bytes)
      if (total > MAX_PUBLISHED_BYTES || count + entries.length > MAX_ENTRIES) {
        throw new SourceError('too_large', 'the skills of the site are too large together')
      }
      bytes = total
      return entries
    } catch (error) {
      await rm(folder, { recursive: true, force: true })
      throw error
    }
  }

  /** Runs the work for one skill; if that fails for a reason of its own, the skill is skipped. */
  async function orSkipSkill<T> (name: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      const isLate = deadline.aborted && isAbortError(error)
      if (signal.aborted || !(error instanceof SourceError || isLate)) throw error
      const code = error instanceof SourceError ? error.code : 'timeout'
      leftOut.push({ path: name, reason: ARTIFACT_FAILURES[code] ?? 'unreachable' })
      return undefined
    }
  }
}
