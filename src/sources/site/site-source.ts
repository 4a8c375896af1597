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
  const fetched = await new SiteMirror(source, options, credentials, before).assemble()
  // The site may have published another state since its index was read.
  const isChanging = fetched?.leftOut?.some(({ reason }) => reason === 'digest_mismatch')
  const last = isChanging === true ? await new SiteMirror(source, options, credentials, {}).assemble() : fetched
  const bad = last?.leftOut?.find(({ reason }) => reason !== 'excluded')
  if (last?.files.entries.length !== 0 || bad === undefined) return last
  const example = `${JSON.stringify(bad.path)} is skipped (${bad.reason})`
  throw new SourceError('bad_answer', `the site has no skill that can be used: ${example}`)
}

/** Mirrors a site once. A skill that cannot be fetched is left out, by its name. */
class SiteMirror {
  readonly #source: SiteSource
  readonly #options: FetchOptions
  readonly #credentials: RequestHeaders
  readonly #before: Answers
  readonly #deadline: AbortSignal
  readonly #answers: Answers = {}
  readonly #leftOut: LeftOut[] = []
  #bytes = 0

  /** @param before what the addresses of the site gave the last time */
  constructor (source: SiteSource, options: FetchOptions, credentials: RequestHeaders, before: Answers) {
    this.#source = source
    this.#options = options
    this.#credentials = credentials
    this.#before = before
    this.#deadline = AbortSignal.any([options.signal, AbortSignal.timeout(options.timeoutMs * DOWNLOADS_PART)])
    // Every download adds a listener.
    setMaxListeners(0, this.#deadline)
  }

  /** Downloads and unpacks all skills. Returns undefined if they are already published. */
  async assemble (): Promise<Fetched | undefined> {
    const { cache, known, signal } = this.#options
    const { skills, leftOut } = await this.#readIndex(signal)
    this.#leftOut.push(...leftOut)
    const found = await pLimit(MAX_DOWNLOADS).map(skills, ([name, artifacts]) => this.#orSkipSkill(name, async () => {
      const files: SourceEntry[] = []
      for (const artifact of artifacts) files.push(await this.#download(artifact, this.#deadline))
      return { name, files }
    }))
    const good = found.flatMap((skill) => skill ?? [])
    this.#leftOut.sort((a, b) => compareCodePoints(a.path, b.path))
    const used = new Set(Object.values(this.#answers).map(({ digest }) => digest))
    for (const name of await readdir(cache)) if (!used.has(name)) await rm(join(cache, name), { force: true })
    const digests = good.map(({ name, files }) => [name, ...files.map(({ id }) => id)])
    const revision = `sha256:${hash('sha256', JSON.stringify([digests, this.#leftOut]))}`
    if (known?.['revision'] === revision) return undefined
    const entries: SourceEntry[] = []
    this.#bytes = 0
    for (const { name, files } of good) {
      entries.push(...await this.#orSkipSkill(name, () => this.#unpack(name, files, entries.length)) ?? [])
    }
    const memory = { revision, answers: JSON.stringify(this.#answers) }
    return { revision, memory, files: storedFiles(entries), leftOut: this.#leftOut, path: '' }
  }

  /** Reads the index of version 0.2.0, or that of 0.1.0 where there is none. */
  async #readIndex (signal: AbortSignal): Promise<ReturnType<typeof parseIndex>> {
    const { url: base, include = ['**'], exclude = [] } = this.#source
    const [isIncluded, isExcluded] = [createMatcher(include), createMatcher(exclude)]
    let failure: SourceError | undefined
    for (const version of VERSIONS) {
      const url = `${base}/.well-known/${version}/index.json`
      try {
        const { stored = '' } = await this.#download({ url, path: '' }, signal, MAX_INDEX_BYTES)
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
  async #download (
    artifact: Artifact, signal: AbortSignal, limit = artifact.path === '' ? MAX_ARCHIVE_BYTES : MAX_FILE_BYTES
  ): Promise<SourceEntry> {
    const { url, path, digest } = artifact
    const { cache } = this.#options
    const last = digest === undefined ? this.#before[url] : { digest, headers: {} }
    const kept = last !== undefined && existsSync(join(cache, last.digest)) ? last : undefined
    const answer = kept !== undefined && digest !== undefined ? kept : await this.#ask(artifact, kept, signal, limit)
    this.#answers[url] = answer
    const stored = join(cache, answer.digest)
    return { path, kind: 'file', id: answer.digest, size: (await stat(stored)).size, stored }
  }

  async #ask (
    { url, digest }: Artifact, kept: Answer | undefined, signal: AbortSignal, limit: number
  ): Promise<Answer> {
    const { cache, tmp, env } = this.#options
    const headers = kept?.headers ?? {}
    const accept = Object.keys(headers).length > 0 ? [304] : []
    const answer = await send({ url, signal, env, credentials: this.#credentials, headers, accept, isOneSite: true })
    if (answer.status === 304 && kept !== undefined) {
      answer.body.destroy()
      return kept
    }
    const file = join(tmp, randomUUID())
    const max = Math.min(limit, MAX_PUBLISHED_BYTES - this.#bytes)
    let saved = await saveBody(answer, file, max)
    // The digest may be that of the bytes as sent, still encoded, or of the decoded ones.
    if (digest !== `sha256:${saved.sha256}`) saved = await decodeFile(answer, file, max) ?? saved
    const found = `sha256:${saved.sha256}`
    if (digest !== undefined && digest !== found) {
      await rm(file)
      throw new SourceError('digest_mismatch', 'the site sent bytes that do not match the digest in its index')
    }
    await rename(file, join(cache, found))
    this.#bytes += saved.size
    return { digest: found, headers: validatorsOf(answer) }
  }

  /** @throws SourceError if the skill cannot be published, or is too large together with those before it */
  async #unpack (name: string, files: readonly SourceEntry[], before: number): Promise<readonly SourceEntry[]> {
    const { tmp, signal } = this.#options
    const archive = files.find(({ path }) => path === '')
    const folder = join(tmp, randomUUID())
    try {
      const unpacked = archive === undefined ? files : await unpackArchive(archive.stored ?? '', folder, signal)
      if (!unpacked.some(({ path }) => isMainFile(path))) {
        throw new SourceError('bad_archive', 'the archive has no SKILL.md at its top level')
      }
      const entries = unpacked.map((entry) => ({ ...entry, path: `${name}/${entry.path}` }))
      checkEntries(entries, name, true)
      const bytes = entries.reduce((sum, { size }) => sum + size, this.#bytes)
      if (bytes > MAX_PUBLISHED_BYTES || before + entries.length > MAX_ENTRIES) {
        throw new SourceError('too_large', 'the skills of the site are too large together')
      }
      this.#bytes = bytes
      return entries
    } catch (error) {
      await rm(folder, { recursive: true, force: true })
      throw error
    }
  }

  /** Runs the work for one skill; if that fails for a reason of its own, the skill is skipped. */
  async #orSkipSkill<T> (name: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      const isLate = this.#deadline.aborted && isAbortError(error)
      if (this.#options.signal.aborted || !(error instanceof SourceError || isLate)) throw error
      const code = error instanceof SourceError ? error.code : 'timeout'
      this.#leftOut.push({ path: name, reason: ARTIFACT_FAILURES[code] ?? 'unreachable' })
      return undefined
    }
  }
}
