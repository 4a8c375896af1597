import type { Catalog, SkillRef } from '../catalog.ts'
import type { IndexedSkill } from '../read-skill.ts'
import type { SearchAnswer } from '../service.ts'
import { type SearchedSkill, SkillSearch } from './skill-search.ts'

/** Searches the catalog. The first search makes the index, which then follows the catalog. */
export class CatalogSearch {
  readonly #catalog: Catalog
  #index: Promise<SkillSearch<string>> | undefined
  /** Skills that have changed since the last search, by key. */
  readonly #changed = new Map<string, SkillRef>()

  constructor (catalog: Catalog) {
    this.#catalog = catalog
  }

  /** Finds exactly what `sees` admits; only the order may depend on other skills. */
  async search (query: string, sees: (skill: SkillRef) => boolean): Promise<SearchAnswer> {
    this.#index ??= this.#build()
    const index = await this.#index
    for (const [key, { root, name }] of this.#changed) {
      const skill = this.#catalog.skillsIn(root).get(name)
      if (skill === undefined) index.discard(key)
      else index.put(key, toSearched(skill))
    }
    this.#changed.clear()
    const hits = index.search(query, (key) => sees(refOf(key)))
    // Ranks instead of scores, whose size depends on skills that the caller may not see.
    return { names: hits.map(({ key }) => refOf(key).name), scores: hits.map((_hit, index) => hits.length - index) }
  }

  async #build (): Promise<SkillSearch<string>> {
    this.#catalog.on('changed', (changed) => { for (const skill of changed) this.#changed.set(keyOf(skill), skill) })
    const index = new SkillSearch<string>()
    await index.addAll([...this.#catalog.roots.keys()].flatMap((root) =>
      [...this.#catalog.skillsIn(root)].map(([name, skill]) => [keyOf({ root, name }), toSearched(skill)] as const)))
    return index
  }
}

function toSearched ({ name, metadata, headings }: IndexedSkill): SearchedSkill {
  return { name, label: metadata.name, description: metadata.description, headings }
}

function keyOf ({ root, name }: SkillRef): string {
  return `${root}/${name}`
}

function refOf (key: string): SkillRef {
  const end = key.indexOf('/')
  return { root: Number(key.slice(0, end)), name: key.slice(end + 1) }
}
