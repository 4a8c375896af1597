import { hash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import pLimit from 'p-limit'
import { createMatcher } from '../../layout/find-skills.ts'
import { isMainFile } from '../../core/format/main-files.ts'
import type { LeftOut } from '../../layout/layout.ts'
import { MAX_FILE_BYTES, MAX_PUBLISHED_BYTES } from '../../core/shared/limits.ts'
import { compareCodePoints, withoutEndSlashes } from '../../core/shared/text.ts'
import { lastPart, parseUrl } from '../address/parts.ts'
import type { Fetched, FetchOptions, SourceCommon, SourceKind } from '../address/source-kind.ts'
import { MAX_ARCHIVE_BYTES, unpackArchive } from '../archive/unpack.ts'
import { credentialsOf, type RequestHeaders, saveBody, send, validatorsOf } from '../http/http-client.ts'
import { type SourceEntry, storedFiles } from '../publish/source-tree.ts'
import { AddressError, SourceError, type SourceErrorCode } from '../source-error.ts'
import { type Artifact, parseIndex } from './site-index.ts'

export interface SiteSource extends SourceCommon {
  readonly kind: 'site'
  /** Without a slash at the end: `/.well-known/…` follows. */
  readonly url: string
}

const MAX_INDEX_BYTES = 8 * 1_048_576
const MAX_DOWNLOADS = 8
const VERSIONS = ['agent-skills', 'skills'] as const

/** Failures of one artifact, which cost its skill only. Others are of the site, which is then asked again. */
const OF_ARTIFACT: Readonly<Partial<Record<SourceErrorCode, LeftOut['reason']>>> = {
  digest_mismatch: 'digest_mismatch',
  not_found: 'not_found',
  redirected: 'not_found',
  bad_archive: 'bad_package',
  too_large: 'bound_reached'
}

/** What an address gave, and the headers that make the next request for it conditional. */
type Answer = { readonly digest: string, readonly headers: RequestHeaders }
type Answers = Record<string, Answer>

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

/**
 * Mirrors the skills that a site publishes. What was downloaded is kept by its digest: only what is new is asked for.
 */
async function fetchSite (source: SiteSource, options: FetchOptions): Promise<Fetched | undefined> {
  await mkdir(options.cache, { recursive: true, mode: 0o700 })
  const before = JSON.parse(options.known?.['answers'] ?? '{}') as Answers
  const fetched = await look(source, options, before)
  // The site may have published another state since its index was read.
  const isChanging = fetched?.leftOut?.some(({ reason }) => reason === 'digest_mismatch')
  const last = isChanging === true ? await look(source, options, {}) : fetched
  if (last?.files.entries.length === 0 && last.leftOut?.some(({ reason }) => reason !== 'excluded') === true) {
    throw new SourceError('bad_answer', 'the site has no skill that can be used')
  }
  return last
}

async function look (source: SiteSource, options: FetchOptions, before: Answers): Promise<Fetched | undefined> {
  const { url: base, include, exclude, auth = {} } = source
  const { known, signal, tmp, cache: folder, env } = options
  const isIncluded = include === undefined ? () => true : createMatcher(include)
  const isExcluded = exclude === undefined ? () => false : createMatcher(exclude)
  const credentials = await credentialsOf(auth, env)
  const answers: Answers = {}
  let bytes = 0
  const { skills, leftOut } = await readIndex()
  const files = await pLimit(MAX_DOWNLOADS).map(skills, ([name, artifacts]) => leaveOutIfBad(name, async () => {
    const files: SourceEntry[] = []
    for (const artifact of artifacts) files.push(await store(artifact))
    return { name, files }
  }))
  const good = files.flatMap((skill) => skill ?? [])
  leftOut.sort((a, b) => compareCodePoints(a.path, b.path))
  const used = new Set(Object.values(answers).map(({ digest }) => digest))
  for (const name of await readdir(folder)) if (!used.has(name)) await rm(join(folder, name), { force: true })
  const digests = good.map(({ name, files }) => [name, ...files.map(({ id }) => id)])
  const revision = `sha256:${hash('sha256', JSON.stringify([digests, leftOut]))}`
  if (known?.['revision'] === revision) return undefined
  const entries: SourceEntry[] = []
  for (const { name, files } of good) {
    const unpacked = await leaveOutIfBad(name, async () => files[0]?.path === '' ? await unpack(files[0]) : files)
    for (const entry of unpacked ?? []) entries.push({ ...entry, path: `${name}/${entry.path}` })
  }
  const memory = { revision, answers: JSON.stringify(answers) }
  return { revision, memory, files: storedFiles(entries), leftOut, path: '' }

  async function readIndex () {
    for (const version of VERSIONS) {
      const url = `${base}/.well-known/${version}/index.json`
      try {
        const { stored = '' } = await store({ url, path: '' }, MAX_INDEX_BYTES)
        const index = parseIndex(await readFile(stored, 'utf8'), url, (name) => isIncluded(name) && !isExcluded(name))
        if (index !== undefined) return index
      } catch (error) {
        if (!(error instanceof SourceError) || error.code !== 'not_found') throw error
      }
    }
    throw new SourceError('not_found', 'the site has no index of skills that can be read at this path')
  }

  /** Asks for what is not stored, or may have changed. */
  async function store (
    { url, path, digest }: Artifact, limit = path === '' ? MAX_ARCHIVE_BYTES : MAX_FILE_BYTES
  ): Promise<SourceEntry> {
    const last = digest === undefined ? before[url] : { digest, headers: {} }
    const isThere = last !== undefined && existsSync(join(folder, last.digest))
    const got = answers[url] = isThere && digest !== undefined ? last : await download()
    const stored = join(folder, got.digest)
    return { path, kind: 'file', id: got.digest, size: (await stat(stored)).size, stored }

    async function download (): Promise<Answer> {
      const headers = isThere ? last.headers : {}
      const accept = Object.keys(headers).length > 0 ? [304] : []
      const answer = await send({ url, signal, env, credentials, headers, accept, isOneSite: true })
      if (answer.status === 304 && last !== undefined) {
        answer.body.destroy()
        return last
      }
      const part = join(tmp, randomUUID())
      const { sha256, size } = await saveBody(answer, part, Math.min(limit, MAX_PUBLISHED_BYTES - bytes))
      const found = `sha256:${sha256}`
      if (digest !== undefined && digest !== found) {
        throw new SourceError('digest_mismatch', 'the site gives other bytes than those of the digest in its index')
      }
      await rename(part, join(folder, found))
      bytes += size
      return { digest: found, headers: validatorsOf(answer) }
    }
  }

  /** @throws SourceError for an archive that is refused, or is not a skill */
  async function unpack ({ stored = '' }: SourceEntry): Promise<readonly SourceEntry[]> {
    const entries = await unpackArchive(stored, join(tmp, randomUUID()), signal)
    if (entries.some(({ path }) => isMainFile(path))) return entries
    throw new SourceError('bad_archive', 'the archive has no SKILL.md at its top')
  }

  async function leaveOutIfBad<T> (name: string, job: () => Promise<T>): Promise<T | undefined> {
    try {
      return await job()
    } catch (error) {
      const reason = error instanceof SourceError ? OF_ARTIFACT[error.code] : undefined
      if (reason === undefined) throw error
      leftOut.push({ path: name, reason })
      return undefined
    }
  }
}
