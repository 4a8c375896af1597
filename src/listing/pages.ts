import type { View } from '../core/view.ts'
import { yieldIfNeeded } from '../core/shared/async.ts'
import { SkillError } from '../core/shared/errors.ts'
import { formatCursor, pageStart } from './cursor.ts'
import {
  type CatalogEntry, describeState, type EntryValidator, makeEntry, PENDING, type ValidatedEntry
} from './entry.ts'

/** Most characters of all entries on one page of GET /catalog. */
export const MAX_PAGE_CHARACTERS = 4 * 1_048_576

/** Entries that are read for one page of a filter, a millisecond each. */
const MAX_FILTERED_READS = 500

/** A filter that needs the whole entry of each skill. */
export interface EntryFilter<Validated extends ValidatedEntry = ValidatedEntry> {
  /** Identifies the filter in cursors. */
  readonly key: string
  accepts (entry: CatalogEntry & Validated): boolean
}

interface CatalogQuestion<Validated extends ValidatedEntry = ValidatedEntry> {
  /** Words to search for; blank means no search. */
  readonly query?: string | undefined
  readonly valid?: boolean | undefined
  readonly root?: string | undefined
  /** Keeps only the entries that it accepts. `total` then counts all skills that were candidates. */
  readonly filter?: EntryFilter<Validated> | undefined
  readonly limit: number
  /** `nextCursor` of the previous page of the same query. */
  readonly cursor?: string | undefined
}

export interface CatalogPage {
  /** Entries as JSON text, with a `score` in a search. */
  readonly entries: readonly string[]
  /** Number of skills on all pages together. */
  readonly total: number
  /** Number of skills up to the end of this page. */
  readonly end: number
  /** Undefined on the last page. */
  readonly nextCursor: string | undefined
}

interface CatalogPageOptions<Validated extends ValidatedEntry> {
  readonly skills: Pick<View, 'available' | 'findIndexed' | 'list' | 'read' | 'rootOf' | 'scope' | 'search'>
  readonly validate: EntryValidator<Validated>
}

/**
 * Reads one page of the catalog, by name or, with a query, the best match first. Undefined for a cursor of another
 * question. Nothing is kept between two pages.
 */
export async function readCatalogPage<Validated extends ValidatedEntry> (
  { skills, validate }: CatalogPageOptions<Validated>, wanted: CatalogQuestion<Validated>
): Promise<CatalogPage | undefined> {
  const { query = '', valid, root, filter, limit, cursor } = wanted
  const words = query.trim()
  const isSearch = words !== ''
  const question = JSON.stringify([words, valid, skills.scope, root, filter?.key])
  const found = await (isSearch ? skills.search(words) : skills.list())
  // Reading all skills for a page with few matches would take seconds, so `valid` comes from the index.
  if (valid !== undefined) await skills.available()
  const names = found.filter((name) => (valid === undefined || skills.findIndexed(name)?.valid === valid) &&
    (root === undefined || skills.rootOf(name) === root))

  const start = pageStart(question, names, cursor, !isSearch)
  if (start === undefined) return undefined
  const entries: string[] = []
  let characters = 0
  let end = start
  const readEnd = filter === undefined ? names.length : Math.min(names.length, end + MAX_FILTERED_READS)
  for (; end < readEnd && entries.length < limit && characters < MAX_PAGE_CHARACTERS; end++) {
    await yieldIfNeeded()
    const entry = await readEntry(skills, names[end] ?? '', validate)
    if (entry === undefined || (valid !== undefined && entry.valid !== valid)) continue
    if (filter?.accepts(entry) === false) continue
    const text = JSON.stringify(isSearch ? { ...entry, score: names.length - end } : entry)
    entries.push(text)
    characters += text.length
  }
  const last = end < names.length ? names[end - 1] : undefined
  return {
    entries,
    total: names.length,
    end,
    nextCursor: last === undefined ? undefined : formatCursor(question, last, end - 1)
  }
}

/** Reads the entry of a skill; undefined if the skill is gone. */
async function readEntry<Validated extends ValidatedEntry> (
  skills: CatalogPageOptions<Validated>['skills'], name: string, validate: EntryValidator<Validated>
): Promise<(CatalogEntry & Validated) | undefined> {
  try {
    return await skills.read(name, (state) => describeState(state, validate, true))
  } catch (error) {
    if (!(error instanceof SkillError)) throw error
    if (error.code === 'skill_not_found') return undefined
    if (error.code !== 'skill_changing') throw error
    // The entry is made from the index, so that the others need not wait.
    const skill = skills.findIndexed(name)
    const pending = skill && { skill, manifest: undefined, mainFile: undefined, fileFindings: [PENDING] }
    return pending && await makeEntry(pending, validate)
  }
}
