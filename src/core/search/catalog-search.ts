import MiniSearch from 'minisearch'
import type { Catalog, IndexChange, SkillRef } from '../catalog.ts'
import { yieldIfNeeded } from '../shared/async.ts'
import { compareCodePoints } from '../shared/text.ts'
import { allowsPrefix, allowsTypo, formsOf, queryWords, STOP_WORDS, tokenize } from './words.ts'

interface SearchedSkill extends SkillRef {
  readonly id: string
  /** `name` of the frontmatter, if the folder has another one. */
  readonly label: string
  readonly description: string
  readonly headings: string
}

type SkillNow = Pick<IndexChange, 'root' | 'name' | 'now'>

/** Ranked search over names, descriptions and headings. The index is made, and updated, when it is searched. */
export class CatalogSearch {
  readonly #catalog: Catalog
  readonly #index = new MiniSearch<SearchedSkill>({
    fields: ['name', 'label', 'description', 'headings'],
    tokenize,
    // Stop words count in names, since a name may consist of them.
    processTerm: (term, field) => field === 'name' || !STOP_WORDS.has(term) ? formsOf(term) : null,
    searchOptions: {
      boost: { name: 4, label: 2, description: 2, headings: 1 },
      // Many words may be similar: together they must not outweigh an exact match.
      weights: { prefix: 0.1, fuzzy: 0.1 },
      fuzzy: (term) => allowsTypo(term) && 0.2,
      maxFuzzy: 2,
      tokenize: (words) => words.split(' '),
      processTerm: formsOf
    }
  })

  /** By id: `remove` takes a document as it was added. */
  readonly #indexed = new Map<string, SearchedSkill>()
  /** Changes since the last search; undefined before the first. */
  #changes: Map<string, SkillNow> | undefined

  constructor (catalog: Catalog) {
    this.#catalog = catalog
  }

  /**
   * Returns names of skills with at least one word of the query, the best first. The last word may be the beginning of
   * a longer one. Only the order may depend on skills that `isVisible` does not admit.
   */
  async search (query: string, isVisible: (skill: SkillRef) => boolean): Promise<readonly string[]> {
    await this.#update()
    const words = queryWords(query)
    const last = words.at(-1) ?? ''
    const results = this.#index.search(words.join(' '), {
      prefix: (term) => term === last && allowsPrefix(term),
      filter: ({ id }) => {
        const skill = this.#indexed.get(id)
        return skill !== undefined && isVisible(skill)
      }
    })
    // Rounded to a thousandth, so that equal skills have equal scores, whatever the index contained before.
    return results
      .map(({ id, score }) => ({ name: this.#indexed.get(id)?.name ?? '', score: Math.round(score * 1_000) }))
      .sort((a, b) => b.score - a.score || compareCodePoints(a.name, b.name))
      .map(({ name }) => name)
  }

  async #update (): Promise<void> {
    this.#changes ??= this.#follow()
    for (const [id, change] of this.#changes) {
      this.#changes.delete(id)
      this.#replace(id, change)
      await yieldIfNeeded()
    }
  }

  #follow (): Map<string, SkillNow> {
    const changes = new Map<string, SkillNow>()
    const note = ({ root, name, now }: SkillNow): void => {
      const id = `${root.id}/${name}`
      if (now === undefined && !this.#indexed.has(id)) changes.delete(id)
      else changes.set(id, { root, name, now })
    }
    this.#catalog.on('changed', (changed) => { for (const change of changed) note(change) })
    for (const root of this.#catalog.roots) {
      for (const [name, now] of this.#catalog.skillsIn(root)) note({ root, name, now })
    }
    return changes
  }

  #replace (id: string, { root, name, now: skill }: SkillNow): void {
    const known = this.#indexed.get(id)
    // With `discard`, the removed skill would still count in the scores of the next search.
    if (known !== undefined) this.#index.remove(known)
    this.#indexed.delete(id)
    if (skill === undefined) return
    const { metadata: { name: label, description }, headings } = skill
    const added = { id, root, name, label: label === name ? '' : label, description, headings: headings.join('\n') }
    this.#index.add(added)
    this.#indexed.set(id, added)
  }
}
