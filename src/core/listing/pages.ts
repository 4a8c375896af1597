import { basename } from 'node:path'
import { LRUCache } from 'lru-cache'
import { createSlicer } from '../async.ts'
import { type CatalogEntry, type CatalogEntryOptions, findCatalogEntry } from './entry.ts'
import { MAX_CACHED_RANKING_PLACES, MAX_PAGE_CHARACTERS } from '../limits.ts'
import { fingerprint, formatCursor, type PagePosition, parseCursor } from './cursor.ts'
import type { SearchHit } from '../search/search-index.ts'
import type { SkillSource } from '../skill-source.ts'
import type { SkillMetadata } from '../skill.ts'
import { compareCodePoints } from '../text.ts'

export interface CatalogQuestion {
  /** Words to search for; blank is as good as none. */
  readonly query?: string
  /** Only skills that are valid, or that are not. */
  readonly valid?: boolean
  /** Most entries in the page. */
  readonly limit: number
  /** What the page before this one gave, for the same query and `valid`. */
  readonly cursor?: string
}

export interface CatalogPage {
  /** JSON text of each entry, with its `score` when it was searched for. */
  readonly entries: readonly string[]
  /** How many skills there are on all pages together. */
  readonly total: number
  /** Undefined when this is the last page. */
  readonly nextCursor: string | undefined
}

export interface CatalogPagerOptions extends CatalogEntryOptions {
  readonly skills: CatalogEntryOptions['skills'] & Pick<SkillSource, 'available' | 'find' | 'list' | 'search'>
}

/** A skill that may be on the page. */
interface Candidate {
  readonly name: string
  readonly score?: number
}

/** What is paged through: candidates in order, and where the page begins. */
interface Course {
  readonly candidates: readonly Candidate[]
  readonly start: number
  /** Names an order that is kept already. */
  readonly ranking?: string
}

/** Entries that are read at the same time: on a network disk each waits for many answers. */
const READ_TOGETHER = 16

/**
 * Pages through the catalog. Without a query the order is that of the names, and a cursor says after which name
 * to go on. A search's order depends on all skills: it is kept when its first page is given, and the cursor says which
 * order it is of. So a skill that is there throughout is on exactly one page, whatever happens to it or the others in
 * between. When an order has been dropped, or was another replica's, the search is made again and goes on after the same
 * score and name: then only a skill whose own rank has changed can be missed or come twice.
 */
export class CatalogPager {
  readonly #options: CatalogPagerOptions
  readonly #rankings = new LRUCache<string, readonly Candidate[]>({
    maxSize: MAX_CACHED_RANKING_PLACES,
    sizeCalculation: (candidates) => candidates.length + 1
  })

  readonly #validNames = new WeakMap<readonly SkillMetadata[], ReadonlySet<string>>()

  constructor (options: CatalogPagerOptions) {
    this.#options = options
  }

  /**
   * @returns undefined when the cursor is not one for this question
   * @throws {SkillError} `folderError`'s sentences without a root
   */
  async page ({ query = '', valid, limit, cursor }: CatalogQuestion): Promise<CatalogPage | undefined> {
    const words = query.trim()
    const scope = JSON.stringify([words, valid ?? null])
    const position = cursor === undefined ? undefined : parseCursor(scope, cursor)
    if (cursor !== undefined && (position === undefined || (position.ranked === undefined) !== (words === ''))) return undefined
    const course = words === '' ? await this.#byName(valid, position) : await this.#byRank(words, valid, position)
    const { entries, end } = await this.#read(course, valid, limit)
    const last = end < course.candidates.length ? course.candidates[end - 1] : undefined
    return {
      entries,
      total: course.candidates.length,
      nextCursor: last && formatCursor(scope, this.#positionOf(last, scope, course))
    }
  }

  async #byName (valid: boolean | undefined, position: PagePosition | undefined): Promise<Course> {
    const names = await this.#filter(await this.#options.skills.list(), valid, (name) => name)
    const start = position === undefined ? 0 : orEnd(names, names.findIndex((name) => compareCodePoints(name, position.after) > 0))
    return { candidates: names.map((name) => ({ name })), start }
  }

  async #byRank (words: string, valid: boolean | undefined, position: PagePosition | undefined): Promise<Course> {
    const { skills } = this.#options
    const kept = this.#rankings.get(position?.ranked?.ranking ?? '')
    if (kept !== undefined && position?.ranked !== undefined) {
      // For the same reasons that a new search could fail.
      await skills.list()
      return { candidates: kept, start: kept.findIndex(({ name }) => name === position.after) + 1, ranking: position.ranked.ranking }
    }
    const hits = await this.#filter(await skills.search(words), valid, ({ name }) => name)
    return { candidates: hits, start: position?.ranked === undefined ? 0 : orEnd(hits, hits.findIndex((hit) => isAfter(hit, position))) }
  }

  /** Where the page ends; the order of a search is kept for those that follow. */
  #positionOf ({ name, score }: Candidate, scope: string, { candidates, ranking }: Course): PagePosition {
    if (score === undefined) return { after: name }
    const order = ranking ?? fingerprint([scope, ...candidates.map((candidate) => candidate.name)].join('\n'))
    this.#rankings.set(order, candidates)
    return { after: name, ranked: { score, ranking: order } }
  }

  /** By what the index knows: to look at every skill for a page of a few would take seconds. */
  async #filter<T> (items: readonly T[], valid: boolean | undefined, nameOf: (item: T) => string): Promise<readonly T[]> {
    if (valid === undefined) return items
    const names = this.#namesOf(await this.#options.skills.available())
    return items.filter((item) => names.has(nameOf(item)) === valid)
  }

  #namesOf (available: readonly SkillMetadata[]): ReadonlySet<string> {
    let names = this.#validNames.get(available)
    if (names === undefined) {
      names = new Set(available.map(({ skillPath }) => basename(skillPath)))
      this.#validNames.set(available, names)
    }
    return names
  }

  /** Entries from the start of the course on, and where the next page begins. What is gone is passed over. */
  async #read ({ candidates, start }: Course, valid: boolean | undefined, limit: number): Promise<{ entries: string[], end: number }> {
    const yieldIfNeeded = createSlicer()
    const entries: string[] = []
    let characters = 0
    let end = start
    while (end < candidates.length && entries.length < limit && characters < MAX_PAGE_CHARACTERS) {
      const due = candidates.slice(end, end + Math.min(READ_TOGETHER, limit - entries.length))
      for (const entry of await Promise.all(due.map(({ name }) => findCatalogEntry(this.#options, name)))) {
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
}

function isAfter ({ name, score }: SearchHit, { after, ranked }: PagePosition): boolean {
  const last = ranked?.score ?? 0
  return score < last || (score === last && compareCodePoints(name, after) > 0)
}

function orEnd (items: readonly unknown[], index: number): number {
  return index === -1 ? items.length : index
}
