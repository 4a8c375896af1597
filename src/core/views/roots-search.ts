import type { CatalogChange } from '../catalog/catalog.ts'
import type { MainFilePreference } from '../format/main-files.ts'
import type { CatalogSkill } from '../shared/skill.ts'
import type { RootSkills } from '../root-skills.ts'
import { type SearchAnswer, SkillSearch, type SearchSource } from '../search/search.ts'
import type { MergedNames } from './member-lists.ts'
import { ignoreMissingRoot, type ViewMember } from './view-member.ts'

/** No name of a skill holds a line end. */
const SEPARATOR = '\n'

/** One search index for all roots, and all views of them. Names of skills are keys in it, which name the root too. */
export class RootsSearch implements SearchSource {
  readonly #roots: readonly RootSkills[]
  readonly #search: SkillSearch
  readonly #keys = new WeakMap<MergedNames, readonly string[]>()
  #lists: ReadonlyArray<readonly string[]> = []
  #all: readonly string[] = []

  constructor (roots: readonly RootSkills[]) {
    this.#roots = roots
    this.#search = new SkillSearch(this)
  }

  async search (query: string, merged: MergedNames, members: readonly ViewMember[]): Promise<SearchAnswer> {
    let keys = this.#keys.get(merged)
    if (keys === undefined) {
      const positions = members.map(({ skills }) => this.#roots.indexOf(skills))
      keys = merged.names.map((name) => keyOf(positions[merged.owners.get(name) ?? -1] ?? -1, name))
      this.#keys.set(merged, keys)
    }
    return await this.#search.search(query, keys, merged.names)
  }

  async list (): Promise<readonly string[]> {
    const lists = this.#roots.map((skills) => skills.namesNow())
    // Each search asks for the list: 10,000 keys take a millisecond.
    if (lists.some((list, index) => list !== this.#lists[index])) this.#all = lists.flatMap((list, index) => list.map((name) => keyOf(index, name)))
    this.#lists = lists
    return this.#all
  }

  findNow (key: string) {
    const { skills, name } = this.#at(key)
    return skills.findNow(name)
  }

  async find (key: string): Promise<CatalogSkill | undefined> {
    const { skills, name } = this.#at(key)
    return await skills.files.find(name).catch(ignoreMissingRoot)
  }

  readMainFile (key: string, preference: MainFilePreference) {
    const { skills, name } = this.#at(key)
    return skills.files.readMainFile(name, preference)
  }

  subscribe (listener: (change: CatalogChange) => void): () => void {
    const stops = this.#roots.map((skills, index) => skills.subscribe(({ generation, added, changed, removed }) => {
      const keys = (names: readonly string[]) => names.map((name) => keyOf(index, name))
      listener({ generation, added: keys(added), changed: keys(changed), removed: keys(removed) })
    }))
    return () => { for (const stop of stops) stop() }
  }

  #at (key: string): { readonly skills: RootSkills, readonly name: string } {
    const end = key.indexOf(SEPARATOR)
    const skills = this.#roots[Number(key.slice(0, end))]
    if (skills === undefined) throw new RangeError('a key of no root')
    return { skills, name: key.slice(end + 1) }
  }
}

function keyOf (root: number, name: string): string {
  return `${root}${SEPARATOR}${name}`
}
