import type { MainFilePreference } from '../catalog/main-files.ts'
import type { FileContent } from '../files/file-content.ts'
import { type Awaitable, coalesce, createSlicer } from '../async.ts'
import type { CatalogChange } from '../catalog/catalog.ts'
import { SkillError } from '../errors.ts'
import { MAX_SEARCHED_BODY_CHARACTERS } from '../limits.ts'
import { createSearchIndex, type SearchHit, type SearchIndex } from './search-index.ts'
import { skillBody } from '../format/main-file.ts'
import type { CatalogSkill } from '../skill.ts'

/** What a search needs of the skills: the same questions as anybody, and to be told of changes. */
export interface SearchSource {
  list (): Awaitable<readonly string[]>
  find (name: string): Awaitable<CatalogSkill | undefined>
  readDocument (name: string, preference: MainFilePreference): Awaitable<FileContent>
  subscribe (listener: (change: CatalogChange) => void): () => void
}

/**
 * Ranked search over skills. The index is made for the first search, which waits for it; a service that is never
 * asked has none. From then on it follows the catalog: what has changed is read again in the background, and a
 * search that comes meanwhile waits for that, so that nobody sees an index that is empty or half built.
 */
export class SkillSearch {
  readonly #source: SearchSource
  readonly #refresh = coalesce(() => this.#refreshOnce())
  #index: Promise<SearchIndex> | undefined
  /** Names of the skills that the index has not read as they are now. */
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
    // At each search: this tells whether there is a root, and has what is gone from it removed.
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
      // What fails stays stale: the next search tries again, and hears of it.
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
   * A disk that fails says nothing about a skill: what was known stands, or its name alone, until it can be read.
   * @returns whether the index has the skill as it is
   */
  async #refreshSkill (index: SearchIndex, name: string): Promise<boolean> {
    const skill = await this.#source.find(name)
    if (skill === undefined) {
      index.remove(name)
      return true
    }
    const { isWhole, body } = await this.#readBody(skill)
    const { name: label, description } = skill.metadata
    if (isWhole || !index.has(name)) index.put({ name, label, description, body })
    return isWhole
  }

  /** The body is empty when the main file cannot be read. It is whole when it is of one state with what is known of the skill. */
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
