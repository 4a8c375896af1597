import { type Awaitable, coalesce, createSlicer } from '../async.ts'
import type { CatalogChange } from '../catalog/catalog.ts'
import type { MainFilePreference } from '../catalog/main-files.ts'
import { SkillError } from '../errors.ts'
import type { FileContent } from '../files/file-content.ts'
import { skillBody } from '../format/main-file.ts'
import { MAX_SEARCHED_BODY_CHARACTERS } from '../limits.ts'
import type { CatalogSkill } from '../skill.ts'
import { createSearchIndex, type SearchHit, type SearchIndex } from './search-index.ts'

/** What search needs of the skills. */
export interface SearchSource {
  list (): Awaitable<readonly string[]>
  find (name: string): Awaitable<CatalogSkill | undefined>
  readDocument (name: string, preference: MainFilePreference): Awaitable<FileContent>
  subscribe (listener: (change: CatalogChange) => void): () => void
}

/**
 * Ranked search over skills. The first search builds the index and waits for it; a service that is never searched has
 * none. The index then follows the catalog: changed skills are read again in the background, and a search waits until
 * they are, so that it never sees an empty or half-built index.
 */
export class SkillSearch {
  readonly #source: SearchSource
  readonly #refresh = coalesce(() => this.#refreshOnce())
  #index: Promise<SearchIndex> | undefined
  /** Names of the skills whose present state is not in the index. */
  #stale = new Set<string>()
  #refreshing = false

  constructor (source: SearchSource) {
    this.#source = source
  }

  /**
   * All skills with at least one word of the query in name, description or body, the best first.
   * @throws {SkillError} `folderError`'s sentences without a root
   */
  async search (query: string): Promise<readonly SearchHit[]> {
    // At each search: a missing root is an error, and what is gone from a root is not found.
    const names = await this.#source.list()
    this.#index ??= this.#begin(names)
    const index = await this.#index
    if (this.#refreshing || this.#stale.size > 0) await this.#refresh()
    return index.search(query, names)
  }

  #begin (names: readonly string[]): Promise<SearchIndex> {
    this.#stale = new Set(names)
    this.#source.subscribe(({ added, changed, removed }) => {
      for (const name of [...added, ...changed, ...removed]) this.#stale.add(name)
      // After a failure the names stay stale: the next search tries again, and throws what then fails.
      this.#refresh().catch(() => {})
    })
    return createSearchIndex()
  }

  async #refreshOnce (): Promise<void> {
    const index = await this.#index
    if (index === undefined) return
    const due = this.#stale
    this.#stale = new Set()
    this.#refreshing = true
    const yieldIfNeeded = createSlicer()
    try {
      for (const name of due) {
        if (await this.#refreshSkill(index, name)) due.delete(name)
        await yieldIfNeeded()
      }
      await index.sweep(yieldIfNeeded)
    } finally {
      for (const name of due) this.#stale.add(name)
      this.#refreshing = false
    }
  }

  /**
   * Puts the present state of a skill into the index. A failing disk says nothing about a skill: until the skill can be
   * read, the index keeps its former text, or has its name and description alone.
   * @returns whether the index has the present state
   */
  async #refreshSkill (index: SearchIndex, name: string): Promise<boolean> {
    const skill = await this.#source.find(name)
    if (skill === undefined) {
      index.remove(name)
      return true
    }
    const { isWhole, body } = await this.#readBody(skill)
    const { name: displayName, description } = skill.metadata
    if (isWhole || !index.has(name)) index.put({ name, displayName, description, body })
    return isWhole
  }

  /** The body is empty when the main file cannot be read. It is whole when body and `skill` are of one state. */
  async #readBody ({ name, digest }: CatalogSkill): Promise<{ readonly isWhole: boolean, readonly body: string }> {
    try {
      const content = await this.#source.readDocument(name, 'SKILL.md')
      return { isWhole: content.digest === digest, body: skillBody(content.utf8 ?? '').slice(0, MAX_SEARCHED_BODY_CHARACTERS) }
    } catch (error) {
      if (error instanceof SkillError) return { isWhole: error.code !== 'main_file_unreadable', body: '' }
      throw error
    }
  }
}
