import { EventEmitter } from 'node:events'
import { hasSameFolder, type IndexedSkill, isCurrent, isSameToCallers, readSkill } from './read-skill.ts'
import { FileCache } from './read/file-cache.ts'
import { asRefused, isUnknown, type RefusedError } from './read/refused.ts'
import { walkSkill } from './read/walk.ts'
import type { KeptRevisions } from './revisions/kept-revisions.ts'
import type { RootListing, SkillFolder } from './roots/list-root.ts'
import { Root, type RootOptions } from './roots/root.ts'
import { yieldIfNeeded } from './shared/async.ts'
import { mainFileError } from './shared/errors.ts'
import type { SkillType } from './shared/skill.ts'
import type { Disk } from './read/disk.ts'

/** A skill that is not what it was: another state, or gone, or new. */
export interface SkillRef {
  /** The position of its root. */
  readonly root: number
  readonly name: string
}

/** How often a skill is looked up again when its folder is replaced meanwhile. */
const MAX_LOOKUPS = 3

interface CatalogEvents {
  /** After each change, once it is current. */
  changed: [skills: readonly SkillRef[]]
  /** A root is in another state, or has other folders. */
  listed: [root: Root, before: RootListing | undefined]
}

/** Which skills may be seen: all, or those of a caller. */
export type Sees = (root: number, name: string) => boolean

/** A skill as it was read, and whether any of its files is known to have changed since the reading before. */
interface ReadSkill {
  readonly skill: IndexedSkill
  readonly isTouched: boolean
}

/** A skill that was found, with where it is. */
export interface FoundSkill {
  readonly root: number
  readonly disk: Disk
  readonly skill: IndexedSkill
}

export interface CatalogOptions {
  readonly roots: ReadonlyArray<{ readonly options: string | RootOptions, readonly type: SkillType }>
  readonly linkTargets?: readonly string[] | undefined
  readonly disk?: Disk | undefined
  readonly kept: KeptRevisions
}

/**
 * The index of all skills of all roots, in the order of the roots. Skills are values: a change on the disk makes
 * another one, and a new map with it. What is asked for by name is compared with the disk first; everything else is
 * as of the last change.
 */
export class Catalog extends EventEmitter<CatalogEvents> {
  readonly roots: readonly Root[]
  readonly files = new FileCache()
  readonly #kept: KeptRevisions
  /** The skills of each root that have been read, by name. */
  readonly #skills: Array<ReadonlyMap<string, IndexedSkill>>
  /** What identifies the ignore rules of each root, as of its last good listing. */
  readonly #rules = new Map<number, string | undefined>()
  /** Whether all files have been compared with the disk once: from then on, every change of any file is found. */
  isCompared = false
  #generation = 0
  #reads = 0

  constructor ({ roots, linkTargets, disk, kept }: CatalogOptions) {
    super()
    this.setMaxListeners(0)
    this.#kept = kept
    this.#skills = roots.map(() => new Map())
    this.roots = roots.map(({ options, type }, index) => new Root(options, {
      type, linkTargets, disk, onListed: (root, before) => { this.#takeListing(index, root, before) }
    }))
  }

  /** Goes up with each change: what is derived from the catalog is up to date while it is the same. */
  get generation (): number {
    return this.#generation
  }

  /** The skills of a root that have been read, by name. The same map while none of them changes. */
  skillsIn (root: number): ReadonlyMap<string, IndexedSkill> {
    return this.#skills[root] ?? new Map()
  }

  /** Compares the roots with the disk: afterwards their folders are those that are there. */
  async sync (isSeen: (root: number) => boolean): Promise<void> {
    await Promise.all(this.roots.map((root, index) => isSeen(index) ? root.sync(true) : undefined))
  }

  /**
   * The skill of this name as it is on the disk now, in the first root that has it; undefined when none has.
   * @throws {SkillError} `skill_changing` when its folder is replaced again and again
   */
  async find (name: string, sees: Sees): Promise<FoundSkill | undefined> {
    for (let attempt = 0; attempt < MAX_LOOKUPS; attempt++) {
      const found = await this.#findOnce(name, sees)
      if (found !== 'replaced') return found
    }
    throw mainFileError.changing(name)
  }

  async #findOnce (name: string, sees: Sees): Promise<FoundSkill | 'replaced' | undefined> {
    for (const [index, root] of this.roots.entries()) {
      if (!sees(index, name)) continue
      await root.sync(name)
      const folder = root.folders.get(name)
      if (folder === undefined) continue
      const { disk } = root
      const known = this.skillsIn(index).get(name)
      if (known?.folder === folder && await isCurrent(disk, known).catch(() => false)) {
        return { root: index, disk, skill: known }
      }
      const skill = await readSkill(disk, this.files, folder, ++this.#reads)
      if (skill === undefined) {
        await root.list()
        // What searches a folder with a layout has not seen yet that this one is gone.
        if (root.listed !== undefined && root.folders.get(name) === folder) continue
        return 'replaced'
      }
      const committed = this.#commit(index, [{ skill, isTouched: false }]).get(name)
      return { root: index, disk, skill: skill.refused === undefined && committed !== undefined ? committed : skill }
    }
    return undefined
  }

  /** Whether a skill that was found is what its name means still, unchanged. */
  async isStill (found: FoundSkill): Promise<boolean> {
    const root = this.roots[found.root]
    // A root that was moved behind a link is the same folder in another place.
    if (await root?.realPath() !== root?.listing?.realPath) await root?.list()
    return await this.isListed(found) && await hasSameFolder(found.disk, found.skill).catch(() => true)
  }

  /** Whether the root lists the same folder under the same rules. */
  async isListed ({ root, skill }: FoundSkill): Promise<boolean> {
    await this.roots[root]?.sync(skill.name)
    return this.roots[root]?.folders.get(skill.name) === skill.folder
  }

  /**
   * Compares skills of a root with the disk, and reads again those that differ, in slices.
   * @param names undefined for all
   * @param isDeep whether all files are compared, and not only folder and main file
   */
  async refresh (index: number, names?: Iterable<string>, isDeep = true): Promise<void> {
    const root = this.roots[index]
    if (root === undefined) return
    await (names === undefined ? root.list() : root.sync(true))
    let read: ReadSkill[] = []
    for (const name of names ?? [...root.folders.keys()]) {
      const folder = root.folders.get(name)
      if (folder === undefined) continue
      const skill = await this.#compare(index, root, folder, { isDeep, isHinted: names !== undefined })
      if (skill === 'replaced') await root.list()
      else if (skill !== undefined) read.push(skill)
      const pause = yieldIfNeeded()
      if (pause === undefined) continue
      this.#commit(index, read)
      read = []
      await pause
    }
    this.#commit(index, read)
  }

  /** The skill as it is now, if it differs from what is known. */
  async #compare (
    index: number, { disk }: Root, folder: SkillFolder, { isDeep, isHinted }: { isDeep: boolean, isHinted: boolean }
  ): Promise<ReadSkill | 'replaced' | undefined> {
    const known = this.skillsIn(index).get(folder.name)
    try {
      const isSame = known?.folder === folder && await isCurrent(disk, known)
      const skill = isSame ? known : await readSkill(disk, this.files, folder, ++this.#reads)
      if (skill === undefined) return 'replaced'
      if (!isDeep || skill.refused !== undefined) return isSame ? undefined : { skill, isTouched: false }
      const { fingerprint } = await walkSkill(disk, folder.realPath, skill.filter)
      if (isSame && fingerprint === known.fingerprint) return undefined
      // The very first comparison says nothing about what was before, unless something has happened there.
      const isFirst = known?.fingerprint === undefined && !isHinted && !this.isCompared
      const isTouched = !isFirst && fingerprint !== known?.fingerprint
      return { skill: Object.freeze({ ...skill, fingerprint }), isTouched }
    } catch (error) {
      // Otherwise what is known stays, and the next comparison comes.
      return asRefused(error).refusal === 'not_found' ? 'replaced' : undefined
    }
  }

  /** Replaces skills in one step, and reports those in which callers can see a difference. */
  #commit (index: number, read: readonly ReadSkill[]): ReadonlyMap<string, IndexedSkill> {
    const before = this.skillsIn(index)
    if (read.length === 0) return before
    const folders = this.roots[index]?.folders
    const skills = new Map(before)
    const changed: SkillRef[] = []
    for (const { skill, isTouched } of read) {
      const { name } = skill
      const known = before.get(name)
      // A slow reading never replaces a later one, nor one that failed a good one.
      if (folders?.get(name) !== skill.folder || (known !== undefined && known.sequence > skill.sequence)) continue
      if (known !== undefined && skill.refused !== undefined && isPassing(skill.refused)) continue
      // Until all its files are compared again, they count as they were: the comparison finds what has changed.
      skills.set(name, Object.freeze({ ...skill, fingerprint: skill.fingerprint ?? known?.fingerprint }))
      if (known?.filter?.id !== skill.filter?.id) this.#kept.drop(name)
      if (known === undefined || isTouched || !isSameToCallers(known, skill)) changed.push({ root: index, name })
    }
    this.#skills[index] = skills
    if (changed.length > 0) this.#announce(changed)
    return skills
  }

  /** A name that stays keeps its skill until it is read from its new folder: no list is empty meanwhile. */
  #takeListing (index: number, root: Root, before: RootListing | undefined): void {
    const changed = differences(before?.folders, root.folders)
    const rules = root.listing?.ignoreFile?.rules.id
    if (root.listing !== undefined && rules !== this.#rules.get(index)) {
      this.#kept.dropRoot(index)
      this.#rules.set(index, rules)
    }
    for (const name of root.listed?.ignored ?? []) this.#kept.drop(name)
    const known = this.skillsIn(index)
    if (changed.some((name) => known.has(name) && !root.folders.has(name))) {
      this.#skills[index] = new Map([...known].filter(([name]) => root.folders.has(name)))
    }
    if (changed.length > 0) this.#announce(changed.map((name) => ({ root: index, name })))
    this.emit('listed', root, before)
  }

  #announce (changed: readonly SkillRef[]): void {
    this.#generation++
    this.emit('changed', changed)
  }
}

/** Whether a disk fails, or a skill is being written: the next comparison may tell more. */
function isPassing (refused: RefusedError): boolean {
  return isUnknown(refused) || refused.refusal === 'changed'
}

/** Names whose folders came, went, or are not the same. */
function differences (before: RootListing['folders'] | undefined, now: RootListing['folders']): string[] {
  if (before === now) return []
  const names = [...now].filter(([name, folder]) => before?.get(name) !== folder).map(([name]) => name)
  for (const name of before?.keys() ?? []) if (!now.has(name)) names.push(name)
  return names
}
