import type { Catalog, IsVisible } from './catalog.ts'
import { isUsable } from './format/findings.ts'
import type { IndexedSkill } from './read-skill.ts'
import type { Root } from './roots/root.ts'
import type { SkillMetadata } from './shared/skill.ts'
import { keepIfEqual } from './shared/text.ts'

/** The index of one view. Lists are the same arrays while nothing in them changes. */
export class VisibleSkills {
  readonly #catalog: Catalog
  readonly #isVisible: IsVisible
  #owners: ReadonlyMap<string, Root> = new Map()
  #names: readonly string[] = []
  #namesOf = -1
  #available: readonly SkillMetadata[] = []
  #availableOf = -1
  #generation = 0

  constructor (catalog: Catalog, isVisible: IsVisible) {
    this.#catalog = catalog
    this.#isVisible = isVisible
  }

  /** Names, sorted by code point. */
  get names (): readonly string[] {
    this.#update()
    return this.#names
  }

  /** Of the valid skills, sorted by name. */
  get available (): readonly SkillMetadata[] {
    const { generation } = this.#catalog
    if (this.#availableOf !== generation) {
      const skills = this.names.flatMap((name) => this.find(name) ?? [])
      const available = keepIfEqual(this.#available, skills.filter(isUsable).map(({ metadata }) => metadata))
      if (available !== this.#available) this.#generation++
      this.#available = available
      this.#availableOf = generation
    }
    return this.#available
  }

  /** Incremented by each change of the lists. */
  get generation (): number {
    void this.available
    return this.#generation
  }

  find (name: string): IndexedSkill | undefined {
    const root = this.ownerOf(name)
    return root && this.#catalog.skillsIn(root).get(name)
  }

  ownerOf (name: string): Root | undefined {
    this.#update()
    return this.#owners.get(name)
  }

  #update (): void {
    const { listingGeneration, names, roots } = this.#catalog
    if (this.#namesOf === listingGeneration) return
    const owners = new Map<string, Root>()
    for (const name of names) {
      const owner = roots.find((root) => root.folders.has(name) && this.#isVisible(root, name))
      if (owner !== undefined) owners.set(name, owner)
    }
    const visible = keepIfEqual(this.#names, [...owners.keys()])
    if (visible !== this.#names) this.#generation++
    this.#names = visible
    this.#owners = owners
    this.#namesOf = listingGeneration
  }
}
