import type { RefusedError } from '../disk/open-inside.ts'
import type { SkillFolder } from './scan-root.ts'
import type { CatalogSkill, Signature, SkillMetadata } from '../skill.ts'
import { compareCodePoints } from '../text.ts'

/** A skill as the index holds it: what the catalog says of it, and how to tell whether that still holds. */
export interface IndexedSkill extends CatalogSkill {
  readonly folder: SkillFolder
  readonly folderSignature: Signature
  /** Names in the folder that are a main file by their letters, in any casing. */
  readonly mainFiles: readonly string[]
  /** The one that the index was read from. */
  readonly mainFile: { readonly name: string, readonly signature: Signature } | undefined
  /** Why the main file, or the folder, could not be read. */
  readonly refused: RefusedError | undefined
  /** Whether it was read while it hid a skill of the same name in a later root. */
  readonly shadowing: boolean
  /** False while a signature is too young to be trusted. */
  readonly settled: boolean
  /** Order of loading: a slow load never replaces a later one. */
  readonly sequence: number
}

/** What one step changed, by folder name. */
export interface CatalogChange {
  readonly generation: number
  readonly added: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
}

/** The changes that one lookup layer takes before it is merged: a step costs the same in a catalog of any size. */
const MAX_LAYER = 128

/**
 * All skills in one state. Never changes: a step makes a new one that shares nearly everything with the old, and
 * the manager swaps it in with one assignment, so that no reader sees half a step.
 */
export class Catalog {
  /** Goes up when something that a caller can see has changed, and only then. */
  readonly generation: number
  readonly folders: ReadonlyMap<string, SkillFolder>
  /** Names of the folders that hide one of the same name in a later root. */
  readonly shadowing: ReadonlySet<string>
  /** Names of all folders, sorted by code point. */
  readonly names: readonly string[]
  readonly #base: ReadonlyMap<string, IndexedSkill>
  readonly #layer: ReadonlyMap<string, IndexedSkill>
  #available: readonly SkillMetadata[] | undefined
  #labels: ReadonlyMap<string, string> | undefined

  constructor (
    generation = 0,
    folders: ReadonlyMap<string, SkillFolder> = new Map(),
    shadowing: ReadonlySet<string> = new Set(),
    names: readonly string[] = [],
    base: ReadonlyMap<string, IndexedSkill> = new Map(),
    layer: ReadonlyMap<string, IndexedSkill> = new Map()
  ) {
    this.generation = generation
    this.folders = folders
    this.shadowing = shadowing
    this.names = names
    this.#base = base
    this.#layer = layer
  }

  /** What the index holds of a skill, as old as it may be; undefined for one that is not indexed yet, or no longer there. */
  get (name: string): IndexedSkill | undefined {
    return this.folders.has(name) ? this.#layer.get(name) ?? this.#base.get(name) : undefined
  }

  /** Whether an entry was read from the folder that its name means now, in the place that it has now. */
  isInPlace ({ name, folder, shadowing }: IndexedSkill): boolean {
    return this.folders.get(name) === folder && this.shadowing.has(name) === shadowing
  }

  /**
   * The next state when the folders are others. A name that is kept keeps its entry until it is read from its new
   * folder: when a root is replaced as a whole, the old skills stand until the new ones are known.
   */
  withFolders (folders: ReadonlyMap<string, SkillFolder>, shadowing: ReadonlySet<string>): Catalog {
    const unchanged = folders.size === this.folders.size && shadowing.size === this.shadowing.size &&
      [...folders].every(([name, folder]) => this.folders.get(name) === folder && this.shadowing.has(name) === shadowing.has(name))
    if (unchanged) return this
    const names = [...folders.keys()].sort(compareCodePoints)
    const base = new Map<string, IndexedSkill>()
    for (const name of names) {
      const skill = this.get(name)
      if (skill !== undefined) base.set(name, skill)
    }
    return new Catalog(this.generation + 1, folders, shadowing, names, base)
  }

  /** The next state when skills were read. `visible` says whether a caller can see the difference. */
  withSkills (skills: readonly IndexedSkill[], visible: boolean): Catalog {
    let base = this.#base
    let layer = new Map(this.#layer)
    for (const skill of skills) layer.set(skill.name, skill)
    if (layer.size > MAX_LAYER) {
      base = new Map([...base, ...layer])
      layer = new Map()
    }
    const next = new Catalog(this.generation + (visible ? 1 : 0), this.folders, this.shadowing, this.names, base, layer)
    if (!visible) {
      next.#available = this.#available
      next.#labels = this.#labels
    }
    return next
  }

  /** Metadata of the valid skills, sorted by folder name. */
  get available (): readonly SkillMetadata[] {
    this.#available ??= this.#indexed().filter(({ valid }) => valid).map(({ metadata }) => metadata)
    return this.#available
  }

  /** All skills whose main file could be read, sorted by folder name. */
  get readable (): readonly IndexedSkill[] {
    return this.#indexed().filter(({ mainFile, refused }) => mainFile !== undefined && refused === undefined)
  }

  /** Folder name of the skill with this frontmatter name; of several, the first in order. */
  folderOfLabel (label: string): string | undefined {
    if (this.#labels === undefined) {
      const labels = new Map<string, string>()
      for (const { metadata, name } of this.readable) {
        if (!labels.has(metadata.name)) labels.set(metadata.name, name)
      }
      this.#labels = labels
    }
    return this.#labels.get(label)
  }

  #indexed (): IndexedSkill[] {
    const skills: IndexedSkill[] = []
    for (const name of this.names) {
      const skill = this.get(name)
      if (skill !== undefined) skills.push(skill)
    }
    return skills
  }
}
