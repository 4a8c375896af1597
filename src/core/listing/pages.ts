import { yieldIfNeeded } from '../shared/async.ts'
import { MAX_PAGE_CHARACTERS } from '../shared/limits.ts'
import type { SkillSource } from '../service.ts'
import { compareCodePoints } from '../shared/text.ts'
import { formatCursor, type PagePosition, parseCursor } from './cursor.ts'
import { type CatalogEntry, type CatalogEntryOptions, findCatalogEntry, type JudgedEntry } from './entry.ts'

/**
 * Entries that are read for one page of a filter. Each one takes a millisecond, and the only one that fits may be the
 * last.
 */
const MAX_FILTERED_READS = 500

/** A choice among entries that must be read for it. */
export interface EntryFilter<Judged extends JudgedEntry = JudgedEntry> {
  /** Names the choice, for cursors. */
  readonly key: string
  accepts (entry: CatalogEntry & Judged): boolean
}

export interface CatalogQuestion<Judged extends JudgedEntry = JudgedEntry> {
  /** Words to search for; blank means no search. */
  readonly query?: string
  /** Only skills that are valid, or that are not. */
  readonly valid?: boolean | undefined
  /** Only skills of the root with this name. */
  readonly root?: string | undefined
  /** Only entries that it accepts. Then `total` counts the skills among which they are. */
  readonly filter?: EntryFilter<Judged> | undefined
  /** Most entries in the page. */
  readonly limit: number
  /** `nextCursor` of the page before, for the same question. */
  readonly cursor?: string
}

export interface CatalogPage {
  /** JSON text of each entry, with its `score` if it was searched for. */
  readonly entries: readonly string[]
  /** Number of skills on all pages together. */
  readonly total: number
  /** How many of them come up to the end of this page. */
  readonly end: number
  /** Undefined on the last page. */
  readonly nextCursor: string | undefined
  /** Whether an entry lacks its revision because the files are still being read. */
  readonly isPending: boolean
}

interface CatalogPageOptions<Judged extends JudgedEntry = JudgedEntry> extends CatalogEntryOptions<Judged> {
  readonly skills: Pick<
    SkillSource, 'available' | 'find' | 'findNow' | 'list' | 'read' | 'rootOf' | 'scope' | 'search'
  >
}

/** The skills that may be on the page, in its order. */
interface Candidates {
  readonly names: readonly string[]
  /** Of each name, if they were searched for. */
  readonly scores?: ArrayLike<number>
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
export async function readCatalogPage<Judged extends JudgedEntry> (
  options: CatalogPageOptions<Judged>, { query = '', valid, root, filter, limit, cursor }: CatalogQuestion<Judged>
): Promise<CatalogPage | undefined> {
  const words = query.trim()
  const { skills } = options
  // Cursors of plain questions to a service without callers stay what they were.
  const more = root === undefined && filter === undefined ? [] : [{ root, filter: filter?.key }]
  const question = JSON.stringify([words, valid ?? null, ...skills.scope === '' ? [] : [skills.scope], ...more])
  const position = cursor === undefined ? undefined : parseCursor(question, cursor)
  if (cursor !== undefined && position === undefined) return undefined
  const found = await findCandidates(skills, words, valid)
  const candidates = root === undefined ? found : select(found, (name) => skills.rootOf(name) === root)
  const { names, scores } = candidates
  const start = position === undefined ? 0 : startAfter(candidates, position)
  const { entries, end, isPending } = await readEntries(options, candidates, start, { valid, filter, limit })
  const last = end < names.length ? names[end - 1] : undefined
  return {
    entries,
    total: names.length,
    end,
    isPending,
    nextCursor: last && formatCursor(question, { after: last, ...scores && { score: scores[end - 1] ?? 0 } })
  }
}

/** `valid` is applied to what the index knows: to read all skills for a page of a few would take seconds. */
async function findCandidates (
  skills: CatalogPageOptions['skills'], words: string, valid: boolean | undefined
): Promise<Candidates> {
  const found = words === '' ? { names: await skills.list() } : await skills.search(words)
  if (valid === undefined) return found
  await skills.available()
  return select(found, (name) => skills.findNow(name)?.valid === valid)
}

function select ({ names, scores }: Candidates, accepts: (name: string) => boolean): Candidates {
  return {
    names: names.filter(accepts),
    ...scores && { scores: Array.from(scores).filter((_, index) => accepts(names[index] ?? '')) }
  }
}

/** Any change may shift all scores, so the name counts first, and the score only when the skill is no longer found. */
function startAfter ({ names, scores = [] }: Candidates, { after, score: last = 0 }: PagePosition): number {
  const index = names.indexOf(after)
  if (index !== -1) return index + 1
  const next = names.findIndex((name, at) => {
    const score = scores[at] ?? 0
    return score < last || (score === last && compareCodePoints(name, after) > 0)
  })
  return next === -1 ? names.length : next
}

/**
 * Reads entries from `start` on, and says where the next page begins. Skills that are gone, whose `valid` has
 * changed, or that the filter refuses, are left out.
 */
async function readEntries<Judged extends JudgedEntry> (
  options: CatalogPageOptions<Judged>, { names, scores }: Candidates, start: number,
  { valid, filter, limit }: Pick<CatalogQuestion<Judged>, 'valid' | 'filter' | 'limit'>
): Promise<{ entries: string[], end: number, isPending: boolean }> {
  const entries: string[] = []
  let characters = 0
  let end = start
  let isPending = false
  const limitEnd = filter === undefined ? names.length : Math.min(names.length, start + MAX_FILTERED_READS)
  while (end < limitEnd && entries.length < limit && characters < MAX_PAGE_CHARACTERS) {
    const due = names.slice(end, Math.min(limitEnd, end + Math.min(READ_TOGETHER, limit - entries.length)))
    for (const entry of await Promise.all(due.map((name) => findCatalogEntry(options, name)))) {
      const score = scores?.[end]
      end++
      if (entry === undefined || (valid !== undefined && entry.valid !== valid) || filter?.accepts(entry) === false) {
        continue
      }
      const text = JSON.stringify(
        { ...entry, ...score !== undefined && { score } } satisfies CatalogEntry & { readonly score?: number }
      )
      isPending ||= entry.findings.some(({ code }) => code === 'revision_pending')
      entries.push(text)
      characters += text.length
    }
    await yieldIfNeeded()
  }
  return { entries, end, isPending }
}
