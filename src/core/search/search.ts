import { isUtf8 } from 'node:buffer'
import { setTimeout as pause } from 'node:timers/promises'
import { coalesce, createSlicer, forEachInSlices } from '../shared/async.ts'
import type { CatalogChange } from '../catalog/catalog.ts'
import type { MainFilePreference } from '../format/main-files.ts'
import { SkillError } from '../shared/errors.ts'
import type { FileContent } from '../files/file-content.ts'
import { bodyOf } from '../format/main-file.ts'
import { MAX_SEARCHED_BODY_CHARACTERS } from '../shared/limits.ts'
import type { CatalogSkill } from '../shared/skill.ts'
import { type Ranking, SearchIndex } from './search-index.ts'

/** How long a search waits for bodies that are still being read, in milliseconds, before it answers without them. */
const MAX_SEARCH_WAIT_MS = 1_000

/** What search needs of the skills. Names are keys: of several roots together, a skill's name and its root. */
export interface SearchSource {
  list (): Promise<readonly string[]>
  /** What the index holds of a skill, without a comparison with the disk. */
  findNow (name: string): CatalogSkill | undefined
  find (name: string): Promise<CatalogSkill | undefined>
  readMainFile (name: string, preference: MainFilePreference): Promise<FileContent>
  subscribe (listener: (change: CatalogChange) => void): () => void
}

export interface SearchAnswer extends Ranking {
  /** False while bodies are still being read: every skill is found by name and description, some not by their body yet. */
  readonly isComplete: boolean
}

/**
 * Ranked search over skills. The first search begins the index; a service that is never searched has none. Names and
 * descriptions of all skills come first, from the catalog. Bodies are read from the disk in the background: a search
 * waits for them a moment, and says so when they are not all there. The index then follows the catalog in the same way.
 */
export class SkillSearch {
  readonly #source: SearchSource
  readonly #waitMs: number
  readonly #index = new SearchIndex()
  readonly #refresh = coalesce(() => this.#refreshOnce())
  #described: Promise<void> | undefined
  /** Names of the skills whose present state is not in the index. */
  #stale = new Set<string>()
  /** Names of the skills that are being read. */
  #due: Set<string> = new Set()
  /** What kept skills from being read at the last attempt, by name. */
  readonly #failures = new Map<string, unknown>()
  #isBuilt = false

  constructor (source: SearchSource, waitMs = MAX_SEARCH_WAIT_MS) {
    this.#source = source
    this.#waitMs = waitMs
  }

  /**
   * All skills with at least one word of the query in name, description or body.
   * @param within names of the only skills that are searched; default: all that `list` of the source gives
   * @param shownNames what the answer calls them, in the same order
   * @throws {SkillError} `folderError`'s sentences without a root
   */
  async search (query: string, within?: readonly string[], shownNames?: readonly string[]): Promise<SearchAnswer> {
    // At each search: a missing root is an error, and what is gone from a root is not found.
    const all = await this.#source.list()
    const names = within ?? all
    this.#described ??= this.#describe(all)
    await this.#described
    const isDone = (this.#due.size === 0 && this.#stale.size === 0) || await isDoneWithin(this.#refresh(), this.#waitMs)
    if (isDone) this.#throwFailure(names)
    const isComplete = isDone || !names.some((name) => this.#stale.has(name) || this.#due.has(name))
    return { ...this.#index.search(query, names, shownNames), isComplete }
  }

  /** A skill that is not searched fails for others alone. */
  #throwFailure (names: readonly string[]): void {
    if (this.#failures.size === 0) return
    const asked = new Set(names)
    for (const [name, error] of this.#failures) if (asked.has(name)) throw error
  }

  async #describe (names: readonly string[]): Promise<void> {
    this.#stale = new Set(names)
    this.#source.subscribe(({ added, changed, removed }) => {
      for (const name of [...added, ...changed, ...removed]) this.#stale.add(name)
      this.#refresh().catch(() => {})
    })
    await forEachInSlices(names, async (name) => {
      // A skill that fails here stays stale, and is tried again together with its body.
      const skill = await this.#find(name).catch(() => undefined)
      if (skill !== undefined) this.#put(name, skill, '')
    })
  }

  async #refreshOnce (): Promise<void> {
    await this.#described
    const due = this.#due = this.#stale
    this.#stale = new Set()
    const yieldIfNeeded = createSlicer()
    try {
      for (const name of due) {
        if (await this.#tryRefresh(name)) due.delete(name)
        await yieldIfNeeded()
        await this.#index.tidy(yieldIfNeeded)
      }
      if (!this.#isBuilt) await this.#index.tidy(yieldIfNeeded, true)
      this.#isBuilt = true
    } finally {
      for (const name of due) this.#stale.add(name)
    }
  }

  /** After a failure the name stays stale: the next search tries again, and throws what then fails. */
  async #tryRefresh (name: string): Promise<boolean> {
    this.#failures.delete(name)
    try {
      return await this.#refreshSkill(name)
    } catch (error) {
      this.#failures.set(name, error)
      return false
    }
  }

  /**
   * Puts the present state of a skill into the index. A failing disk, or a root that is away, says nothing about a skill. Until the skill can be
   * read, the index keeps its former text, or has its name and description alone.
   * @returns whether the index has the present state
   */
  async #refreshSkill (name: string): Promise<boolean> {
    const skill = await this.#find(name)
    if (skill === undefined) {
      this.#index.remove(name)
      return true
    }
    const { isWhole, body } = await this.#readBody(name, skill)
    if (isWhole || !this.#index.has(name)) this.#put(name, skill, body)
    return isWhole
  }

  /** A folder that has just appeared is not in the index of the catalog yet. */
  async #find (name: string): Promise<CatalogSkill | undefined> {
    return this.#source.findNow(name) ?? await this.#source.find(name)
  }

  #put (key: string, { name, metadata }: CatalogSkill, body: string): void {
    this.#index.put({ name, displayName: metadata.name, description: metadata.description, body }, key)
  }

  /** The body is empty when the main file cannot be read. It is whole when body and `skill` are of one state. */
  async #readBody (name: string, { digest }: CatalogSkill): Promise<{ readonly isWhole: boolean, readonly body: string }> {
    try {
      const { bytes, digest: present } = await this.#source.readMainFile(name, 'SKILL.md')
      return { isWhole: present === digest, body: isUtf8(bytes) ? bodyOf(bytes, MAX_SEARCHED_BODY_CHARACTERS) : '' }
    } catch (error) {
      if (error instanceof SkillError) return { isWhole: error.kind !== 'broken' && error.kind !== 'unavailable', body: '' }
      throw error
    }
  }
}

async function isDoneWithin (work: Promise<void>, ms: number): Promise<boolean> {
  const controller = new AbortController()
  const late = pause(ms, false, { signal: controller.signal }).catch(() => false)
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    controller.abort()
    // A failure after the answer is thrown by the next search that waits.
    work.catch(() => {})
  }
}
