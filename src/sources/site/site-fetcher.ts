import { hash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import pLimit from 'p-limit'
import type { Environment } from '../../config/setting.ts'
import { createMatcher } from '../../core/layout/find-skills.ts'
import { isMainFile } from '../../core/format/main-files.ts'
import type { LeftOut } from '../../core/layout/layout.ts'
import { MAX_FILE_BYTES, MAX_PUBLISHED_BYTES } from '../../core/shared/limits.ts'
import { compareCodePoints } from '../../core/shared/text.ts'
import { MAX_ARCHIVE_BYTES } from '../archive/archive-fetcher.ts'
import { unpackArchive } from '../archive/unpack.ts'
import { UnpackedFiles } from '../archive/unpacked-files.ts'
import type { Fetched, Fetcher, FetchOptions } from '../fetcher.ts'
import { credentialsOf, saveBody, send, validatorsOf } from '../http/http-client.ts'
import { type SourceEntry, storedFiles } from '../publish/source-tree.ts'
import { SourceError, type SourceErrorCode } from '../source-error.ts'
import { type Artifact, parseIndex, type SiteSkill } from './site-index.ts'
import type { SiteSource } from './site-source.ts'

const INTERVAL_MS = 300_000
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
type Answers = Record<string, { readonly digest: string, readonly headers: Readonly<Record<string, string>> }>

/** A skill whose artifacts are on this machine. */
interface StoredSkill extends SiteSkill {
  readonly stored: ReadonlyArray<{ readonly file: string, readonly digest: string, readonly size: number }>
}

/**
 * Mirrors the skills that a site publishes. What was downloaded is kept in the state folder, by its digest where the
 * index has one: only what is new is asked for.
 */
export function createSiteFetcher (source: SiteSource, stateDir: string, env: Environment): Fetcher {
  const { url: base, include, exclude, auth = {} } = source
  const cache = join(stateDir, 'sites', hash('sha256', base).slice(0, 20))
  const isIncluded = include === undefined ? () => true : createMatcher(include)
  const isExcluded = exclude === undefined ? () => false : createMatcher(exclude)
  const fileOf = (digest: string): string => join(cache, digest.slice('sha256:'.length))
  const isWanted = (name: string): boolean => isIncluded(name) && !isExcluded(name)

  return {
    intervalMs: INTERVAL_MS,
    async fetch (options) {
      await mkdir(cache, { recursive: true, mode: 0o700 })
      const before = JSON.parse(options.known?.['answers'] ?? '{}') as Answers
      const fetched = await look(options, before)
      // The site may have published another state since its index was read.
      const isChanging = fetched?.leftOut?.some(({ reason }) => reason === 'digest_mismatch') === true
      const last = isChanging ? await look(options, {}) : fetched
      if (last?.files.entries.length === 0 && last.leftOut?.some(({ reason }) => reason !== 'excluded') === true) {
        throw new SourceError('bad_answer', 'the site has no skill that can be used')
      }
      return last
    }
  }

  async function look ({ known, signal, tmp }: FetchOptions, before: Answers): Promise<Fetched | undefined> {
    const credentials = await credentialsOf(auth, env)
    const answers: Answers = {}
    const used = new Set<string>()
    let bytes = 0
    const { skills, leftOut } = await readIndex()
    const inTurn = pLimit(MAX_DOWNLOADS)
    const stored = await Promise.all(skills.map((skill) => inTurn(() => download(skill))))
    const good = stored.flatMap((skill) => skill ?? [])
    leftOut.sort((a, b) => compareCodePoints(a.path, b.path))
    for (const name of await readdir(cache)) if (!used.has(name)) await rm(join(cache, name), { force: true })
    const digests = good.map(({ name, stored }) => [name, ...stored.map(({ digest }) => digest)])
    const revision = `sha256:${hash('sha256', JSON.stringify([digests, leftOut]))}`
    if (known?.['revision'] === revision) return undefined
    const entries: SourceEntry[] = []
    for (const skill of good) {
      entries.push(...await leaveOutIfBad(skill.name, () => filesOf(skill, tmp, signal)) ?? [])
    }
    const memory = { revision, answers: JSON.stringify(answers) }
    return { revision, memory, files: storedFiles(entries), leftOut, path: '' }

    async function readIndex (): Promise<{ skills: readonly SiteSkill[], leftOut: LeftOut[] }> {
      for (const version of VERSIONS) {
        const url = `${base}/.well-known/${version}/index.json`
        try {
          const { file } = await store({ url }, MAX_INDEX_BYTES)
          const index = parseIndex(await readFile(file, 'utf8'), url, isWanted)
          if (index !== undefined) return index
        } catch (error) {
          if (!(error instanceof SourceError) || error.code !== 'not_found') throw error
        }
      }
      throw new SourceError('not_found', 'the site has no index of skills that can be read at this path')
    }

    async function download (skill: SiteSkill): Promise<StoredSkill | undefined> {
      return await leaveOutIfBad(skill.name, async () => {
        const stored = []
        for (const artifact of skill.artifacts) {
          stored.push(await store(artifact, artifact.path === undefined ? MAX_ARCHIVE_BYTES : MAX_FILE_BYTES))
        }
        return { ...skill, stored }
      })
    }

    /** Asks for what is not stored, or may have changed. */
    async function store ({ url, digest }: Artifact, limit: number): Promise<StoredSkill['stored'][number]> {
      const last = digest === undefined ? before[url] : { digest, headers: {} }
      const isThere = last !== undefined && existsSync(fileOf(last.digest))
      if (digest !== undefined && isThere) return await use(digest)
      const headers = isThere ? last.headers : {}
      const accept = Object.keys(headers).length > 0 ? [304] : []
      const answer = await send({ url, signal, env, credentials, headers, accept, isOneSite: true })
      const part = join(tmp, randomUUID())
      const { sha256, size } = await saveBody(answer, part, Math.min(limit, MAX_PUBLISHED_BYTES - bytes))
      const found = answer.status === 304 && last !== undefined ? last.digest : `sha256:${sha256}`
      if (digest !== undefined && digest !== found) {
        throw new SourceError('digest_mismatch', 'the site gives other bytes than those of the digest in its index')
      }
      if (answer.status !== 304) await rename(part, fileOf(found))
      bytes += size
      answers[url] = { digest: found, headers: answer.status === 304 ? headers : validatorsOf(answer) }
      return await use(found)
    }

    async function use (digest: string): Promise<StoredSkill['stored'][number]> {
      const file = fileOf(digest)
      used.add(basename(file))
      return { file, digest, size: (await stat(file)).size }
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
}

/** @throws SourceError for an archive that is refused, or is not a skill */
async function filesOf (
  { name, artifacts, stored }: StoredSkill, tmp: string, signal: AbortSignal
): Promise<SourceEntry[]> {
  const inSkill = (entry: SourceEntry): SourceEntry => ({ ...entry, path: `${name}/${entry.path}` })
  const [archive] = stored
  if (archive === undefined || artifacts[0]?.path !== undefined) {
    return stored.map(({ file, digest, size }, index) =>
      inSkill({ path: artifacts[index]?.path ?? '', kind: 'file', id: digest, size, stored: file }))
  }
  const unpacked = await UnpackedFiles.create(await mkdtemp(join(tmp, 'archive-')), signal)
  await unpackArchive(archive.file, unpacked, signal)
  const entries = unpacked.files(false)
  if (entries.some(({ path }) => isMainFile(path))) return entries.map(inSkill)
  throw new SourceError('bad_archive', 'the archive has no SKILL.md at its top')
}
