import { basename } from 'node:path'
import { createSlicer } from '../ground/async.ts'
import { MAX_PAGE_CHARACTERS } from '../ground/limits.ts'
import type { SkillSource } from '../skill-source.ts'
import { compareCodePoints } from '../ground/text.ts'
import { formatCursor, type PagePosition, parseCursor } from './cursor.ts'
import { type CatalogEntry, type CatalogEntryOptions, findCatalogEntry } from './entry.ts'

export interface CatalogQuestion {
  /** Words to search for; blank means no search. */
  readonly query?: string
  /** Only skills that are valid, or that are not. */
  readonly valid?: boolean
  /** Most entries in the page. */
  readonly limit: number
  /** `nextCursor` of the page before, for the same query and `valid`. */
  readonly cursor?: string
}

export interface CatalogPage {
  /** JSON text of each entry, with its `score` if it was searched for. */
  readonly entries: readonly string[]
  /** Number of skills on all pages together. */
  readonly total: number
  /** Undefined on the last page. */
  readonly nextCursor: string | undefined
  /** Of a search: false while some skills cannot be found by their body yet. */
  readonly isComplete: boolean
}

export interface CatalogPageOptions extends CatalogEntryOptions {
  readonly skills: CatalogEntryOptions['skills'] & Pick<SkillSource, 'available' | 'list' | 'scope' | 'search'>
}

/** A skill that may be on the page. */
interface Candidate {
  readonly name: string
  readonly score?: number
}

/** Entries that are read at the same time: on a network disk each waits for many answers. */
const READ_TOGETHER = 16

/**
 * One page of the catalog: in the order of names, or, with a query, the best match first. Nothing is kept between two
 * pages: the list is made again, and the page begins after the last entry of the page before. So a skill that is there
 * throughout is on exactly one page by name. In a search, only a skill whose rank against that entry has changed can
 * be missed or come twice.
 * @returns undefined when the cursor is not one for this question
 * @throws {SkillError} `folderError`'s sentences without a root
 */
export async function readCatalogPage (options: CatalogPageOptions, { query = '', valid, limit, cursor }: CatalogQuestion): Promise<CatalogPage | undefined> {
  const words = query.trim()
  const question = JSON.stringify([words, valid ?? null, ...scopeOf(options)])
  const position = cursor === undefined ? undefined : parseCursor(question, cursor)
  if (cursor !== undefined && position === undefined) return undefined
  const { candidates, isComplete } = await findCandidates(options, words, valid)
  const { entries, end } = await readEntries(options, candidates, position === undefined ? 0 : startAfter(candidates, position), valid, limit)
  const last = end < candidates.length ? candidates[end - 1] : undefined
  return {
    entries,
    total: candidates.length,
    isComplete,
    nextCursor: last && formatCursor(question, { after: last.name, ...last.score !== undefined && { score: last.score } })
  }
}

/** Cursors of a service without callers stay what they were. */
function scopeOf ({ skills: { scope } }: CatalogPageOptions): string[] {
  return scope === '' ? [] : [scope]
}

/** `valid` is applied to what the index knows: to read all skills for a page of a few would take seconds. */
async function findCandidates (
  { skills }: CatalogPageOptions, words: string, valid: boolean | undefined
): Promise<{ readonly candidates: readonly Candidate[], readonly isComplete: boolean }> {
  const { hits, isComplete } = words === '' ? { hits: (await skills.list()).map((name): Candidate => ({ name })), isComplete: true } : await skills.search(words)
  if (valid === undefined) return { candidates: hits, isComplete }
  const validNames = new Set((await skills.available()).map(({ skillPath }) => basename(skillPath)))
  return { candidates: hits.filter(({ name }) => validNames.has(name) === valid), isComplete }
}

/** Any change may shift all scores, so the name counts first, and the score only when the skill is no longer found. */
function startAfter (candidates: readonly Candidate[], { after, score: last = 0 }: PagePosition): number {
  const place = candidates.findIndex(({ name }) => name === after)
  if (place !== -1) return place + 1
  const next = candidates.findIndex(({ name, score = 0 }) => score < last || (score === last && compareCodePoints(name, after) > 0))
  return next === -1 ? candidates.length : next
}

/** Reads entries from `start` on, and says where the next page begins. Skills that are gone, or whose `valid` has changed, are left out. */
async function readEntries (
  options: CatalogPageOptions, candidates: readonly Candidate[], start: number, valid: boolean | undefined, limit: number
): Promise<{ entries: string[], end: number }> {
  const yieldIfNeeded = createSlicer()
  const entries: string[] = []
  let characters = 0
  let end = start
  while (end < candidates.length && entries.length < limit && characters < MAX_PAGE_CHARACTERS) {
    const due = candidates.slice(end, end + Math.min(READ_TOGETHER, limit - entries.length))
    for (const entry of await Promise.all(due.map(({ name }) => findCatalogEntry(options, name)))) {
      const candidate = candidates[end++]
      if (entry === undefined || (valid !== undefined && entry.valid !== valid)) continue
      const text = JSON.stringify({ ...entry, ...candidate?.score !== undefined && { score: candidate.score } } satisfies CatalogEntry & Partial<Candidate>)
      entries.push(text)
      characters += text.length
    }
    await yieldIfNeeded()
  }
  return { entries, end }
}
