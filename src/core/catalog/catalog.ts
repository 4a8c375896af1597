import type { RefusedError } from '../disk/refused.ts'
import { isSameOrMissing, isSameState } from '../disk/signature.ts'
import { isUsable } from '../format/findings.ts'
import type { CatalogSkill, Signature } from '../shared/skill.ts'
import { compareCodePoints, positionIn } from '../shared/text.ts'
import type { SkillFolder } from '../roots/scan-root.ts'
import type { SkillFilter } from '../roots/skill-filter.ts'

/** A skill as the index holds it: what the catalog says of it, and how to tell whether that is still so. */
export interface IndexedSkill extends CatalogSkill {
  readonly folder: SkillFolder
  readonly folderSignature: Signature
  /** Names in the folder that are a main file by their letters, in any casing. */
  readonly mainFiles: readonly string[]
  /** The one that the index was read from. */
  readonly mainFile: { readonly name: string, readonly signature: Signature } | undefined
  /** Its own ignore file; without a signature it cannot be compared with the disk. */
  readonly ignoreFile: { readonly signature: Signature | undefined } | undefined
  /** The files that the skill does not serve, besides hidden names. */
  readonly filter: SkillFilter | undefined
  /** Why the main file, or the folder, could not be read. */
  readonly refused: RefusedError | undefined
  /** Whether the next edit is sure to change one of the signatures. */
  readonly isTrustworthy: boolean
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

/** What a state of the catalog is made of. */
interface CatalogParts {
  readonly generation: number
  readonly folders: ReadonlyMap<string, SkillFolder>
  readonly names: SortedNames
  readonly skills: ReadonlyArray<IndexedSkill | undefined>
}

/** Names by code point, and the position of each one. */
interface SortedNames {
  readonly list: readonly string[]
  readonly positions: ReadonlyMap<string, number>
}

const NOTHING: CatalogParts = { generation: 0, folders: new Map(), names: { list: [], positions: new Map() }, skills: [] }

/**
 * All skills in one state. A catalog never changes: a step makes a new one, which the owner puts in place with one
 * assignment. No reader sees half a step.
 */
export class Catalog {
  /** Goes up when something that a caller can see has changed, and only then. */
  readonly generation: number
  readonly folders: ReadonlyMap<string, SkillFolder>
  readonly #names: SortedNames
  /** In the order of the names: a step that reads one skill among 10,000 copies a list, and no map. */
  readonly #skills: ReadonlyArray<IndexedSkill | undefined>
  #available: readonly IndexedSkill[] | undefined
  #otherNames: ReadonlyMap<string, readonly string[]> | undefined
  #unread: readonly string[] | undefined

  constructor ({ generation, folders, names, skills }: CatalogParts = NOTHING) {
    this.generation = generation
    this.folders = folders
    this.#names = names
    this.#skills = skills
  }

  /** Names of all folders, sorted by code point. */
  get names (): readonly string[] {
    return this.#names.list
  }

  /** What the index holds of a skill, without a comparison with the disk; undefined for a skill that it does not have. */
  get (name: string): IndexedSkill | undefined {
    const position = this.#names.positions.get(name)
    return position === undefined ? undefined : this.#skills[position]
  }

  /** Names of the folders whose skills have not been read yet. */
  get unread (): readonly string[] {
    this.#unread ??= this.names.filter((_name, position) => this.#skills[position] === undefined)
    return this.#unread
  }

  /** The number of skills with an error. */
  get invalidCount (): number {
    return this.#skills.filter((skill) => skill?.valid === false).length
  }

  /** Whether an entry was read from the folder that its name means now. */
  isInPlace ({ name, folder }: IndexedSkill): boolean {
    return this.folders.get(name) === folder
  }

  /**
   * The next state, with other folders. A name that remains keeps its entry until the skill is read from its new folder.
   * The old skills therefore stay while a whole root is replaced.
   * @param candidates names that may differ. A new or lost name among 10,000 costs a copy of the index.
   */
  withFolders (folders: ReadonlyMap<string, SkillFolder>, candidates: readonly string[]): Catalog {
    const differing = candidates.filter((name) => this.folders.get(name) !== folders.get(name))
    if (differing.length === 0) return this
    const added = differing.filter((name) => !this.folders.has(name))
    const removed = new Set(differing.filter((name) => !folders.has(name)))
    if (added.length + removed.size === 0) return new Catalog({ generation: this.generation + 1, folders, names: this.#names, skills: this.#skills })
    const list = this.names.filter((name) => !removed.has(name)).concat(added).sort(compareCodePoints)
    const names = { list, positions: new Map(list.map((name, position) => [name, position])) }
    return new Catalog({ generation: this.generation + 1, folders, names, skills: list.map((name) => this.get(name)) })
  }

  /**
   * The next state when skills were read.
   * @param isVisible whether a caller can see the difference
   */
  withSkills (read: readonly IndexedSkill[], isVisible: boolean): Catalog {
    const { folders } = this
    const skills = [...this.#skills]
    for (const skill of read) {
      const position = this.#names.positions.get(skill.name)
      if (position !== undefined) skills[position] = skill
    }
    const next = new Catalog({ generation: this.generation + (isVisible ? 1 : 0), folders, names: this.#names, skills })
    next.#available = isVisible ? this.#available && withRead(this.#available, read) : this.#available
    return next
  }

  /** The skills that models are offered, sorted by folder name. */
  get available (): readonly IndexedSkill[] {
    this.#available ??= this.#indexed().filter(isUsable)
    return this.#available
  }

  /** Names of the folders whose skills have this name in their frontmatter, and another one than the folder; sorted by code point. */
  namedOtherwise (displayName: string): readonly string[] {
    if (this.#otherNames === undefined) {
      const names = new Map<string, string[]>()
      for (const { name, metadata } of this.#indexed()) {
        if (metadata.name !== name) names.set(metadata.name, [...names.get(metadata.name) ?? [], name])
      }
      this.#otherNames = names
    }
    return this.#otherNames.get(displayName) ?? []
  }

  #indexed (): IndexedSkill[] {
    return this.#skills.filter((skill) => skill !== undefined)
  }
}

/** A change of one skill does not go through the memory of 10,000 others. */
function withRead (before: readonly IndexedSkill[], read: readonly IndexedSkill[]): readonly IndexedSkill[] {
  const skills = [...before]
  for (const skill of read) {
    const position = positionIn(skills, skill.name, ({ name }) => name)
    skills.splice(position, skills[position]?.name === skill.name ? 1 : 0, ...isUsable(skill) ? [skill] : [])
  }
  return skills
}

export function isSameOnDisk (a: IndexedSkill, b: IndexedSkill): boolean {
  return isSameState(a.folderSignature, b.folderSignature) && isSameOrMissing(a.mainFile?.signature, b.mainFile?.signature)
}

/** A touch, or a checkout back and forth, is no change: same bytes under the same name. */
export function isSameToCallers (a: IndexedSkill, b: IndexedSkill): boolean {
  return a.digest === b.digest && a.filter?.id === b.filter?.id && a.metadata.path === b.metadata.path && a.refused?.refusal === b.refused?.refusal &&
    a.findings.length === b.findings.length && a.findings.every(({ code }, index) => code === b.findings[index]?.code)
}
