import { EventEmitter } from 'node:events'
import { isDeepStrictEqual } from 'node:util'
import { orderMainFiles } from './format/main-files.ts'
import { type IndexedSkill, readSkill } from './read-skill.ts'
import { type Disk, realpathOrNothing } from './read/disk.ts'
import { FileCache } from './read/file-cache.ts'
import { IGNORE_FILE } from './read/ignore-file.ts'
import { asRefused, isUnknown, type RefusedError } from './read/refused.ts'
import { isSameState, stampAt } from './read/file-stamp.ts'
import { walkSkill } from './read/walk.ts'
import { type KeepOptions, type KeptRevision, KeptRevisions } from './revisions/kept-revisions.ts'
import { Snapshots } from './revisions/snapshot.ts'
import type { RootListing, SkillFolder } from './roots/list-root.ts'
import { Root, type RootOptions } from './roots/root.ts'
import { yieldIfNeeded } from './shared/async.ts'
import { mainFileError } from './shared/errors.ts'

/** The place of a skill. */
export interface SkillRef {
  readonly root: Root
  readonly name: string
}

/** Which skills may be seen: all, or those of a caller. */
export type IsVisible = (root: Root, name: string) => boolean

interface CatalogEvents {
  /** These skills are in another state, came or went; it is current already. */
  changed: [skills: readonly SkillRef[]]
  /** A skill that was asked for by name is not as the index has it. */
  stale: [skill: SkillRef]
  /** A root is in another state, or has other folders. */
  listed: [root: Root, before: RootListing | undefined]
}

export interface CatalogOptions {
  /** Absolute paths, or folders with names; the earlier wins. They need not exist. */
  readonly projectRoots: ReadonlyArray<string | RootOptions>
  /** Absolute paths: links in a root that leave it are followed when they lead to or into one of these folders. */
  readonly linkTargets?: readonly string[] | undefined
  /** The file system, for all roots. Default: what fits the kind of disk of each root. */
  readonly disk?: Disk
  /** Which revisions stay readable after a change. */
  readonly keep?: KeepOptions
}

/**
 * All skills of all roots, in the order of the roots. What is asked for by name is compared with the disk, and read
 * again if it differs. The index of all skills, for lists and search, is as of the last refresh. Skills are values: a
 * change makes another one, and a new map with it.
 */
export class Catalog extends EventEmitter<CatalogEvents> {
  roots: readonly Root[]
  readonly kept: KeptRevisions
  readonly files: FileCache
  readonly snapshots: Snapshots
  /** The index: skills by name, for each root. */
  readonly #skills = new Map<Root, ReadonlyMap<string, IndexedSkill>>()
  readonly #options: CatalogOptions
  #generation = 0

  constructor (options: CatalogOptions) {
    super()
    this.setMaxListeners(0)
    this.#options = options
    this.kept = new KeptRevisions(options.keep)
    this.files = new FileCache((digest) => this.kept.contentWith(digest))
    this.snapshots = new Snapshots(this.files)
    this.roots = options.projectRoots.map((root) => this.#open(root))
  }

  #open (root: string | RootOptions): Root {
    const { linkTargets, disk } = this.#options
    return new Root(root, { linkTargets, disk, onListed: (root, before) => { this.#takeListing(root, before) } })
  }

  /** Replaces the roots in one step. One with the same options stays; the skills of others are read before. */
  async setRoots (given: readonly RootOptions[]): Promise<void> {
    const before = this.roots
    const roots = given.map((each) => before.find(({ options }) => options === each) ?? this.#open(each))
    if (roots.length === before.length && roots.every((root, index) => root === before[index])) return
    for (const root of roots) if (!before.includes(root)) await this.refresh(root)
    this.roots = roots
    for (const root of before) if (!roots.includes(root)) this.#skills.delete(root)
    this.#generation++
    const skillsOf = (root: Root): SkillRef[] => [...root.folders.keys()].map((name) => ({ root, name }))
    this.emit('changed', [...new Set([...before, ...roots])].flatMap(skillsOf))
  }

  /** Ends what is read in the background. */
  close (): void {
    this.snapshots.close()
  }

  /** Goes up with each change: what is derived from the index is up to date while it is the same. */
  get generation (): number {
    return this.#generation
  }

  /** The index of a root. The same map while none of its skills changes. */
  skillsIn (root: Root): ReadonlyMap<string, IndexedSkill> {
    return this.#skills.get(root) ?? new Map()
  }

  /** The skill of this name as it is on the disk now. Throws `skill_changing` when its folder is replaced meanwhile. */
  async find (name: string, isVisible: IsVisible): Promise<IndexedSkill | undefined> {
    for (const root of this.roots) {
      if (!isVisible(root, name)) continue
      await root.sync(name)
      const folder = root.folders.get(name)
      if (folder === undefined) continue
      const known = this.skillsIn(root).get(name)
      const isSame = known?.folder === folder && await isCurrent(known).catch(() => false)
      if (isSame) return known
      this.emit('stale', { root, name })
      const skill = await readSkill(root, this.files, folder)
      if (skill !== undefined) return skill
      await root.list()
      // What searches a folder with a layout has not seen yet that this one is gone.
      if (root.listed === undefined || root.folders.get(name) !== folder) throw mainFileError.changing(name)
    }
    return undefined
  }

  /**
   * A revision that was handed out, if the ignore files of its skill and root are those that it was made with.
   * @param shown what the name stands for now, in whichever root: its ignore files count as well
   */
  async findKept (
    { root, name }: SkillRef, revision: string, shown: IndexedSkill | undefined
  ): Promise<KeptRevision | undefined> {
    const kept = this.kept.get(root, name, revision)
    if (kept === undefined) return undefined
    const present = shown?.root === root ? shown : await this.find(name, (each) => each === root)
    const isSame = [shown, present].every((skill) => skill === undefined || hasRulesOf(skill, kept.skill))
    return isSame && (present !== undefined || !isIgnored(kept.skill)) ? kept : undefined
  }

  /** Whether a skill that was found is what its name means still, unchanged. */
  async isStill (skill: IndexedSkill): Promise<boolean> {
    const { root } = skill
    // A root that was moved behind a link is the same folder in another place.
    if (await realpathOrNothing(root.disk, root.path) !== root.listing?.realPath) await root.list()
    return await this.#isListed(skill) && await hasSameFolder(skill).catch(() => true)
  }

  /** Whether what was hidden when a skill was read is hidden now, and nothing else is. */
  async hasSameRules (skill: IndexedSkill): Promise<boolean> {
    return await hasSameRules(skill) && await this.#isListed(skill)
  }

  async #isListed ({ root, name, folder }: IndexedSkill): Promise<boolean> {
    await root.sync(name)
    return root.folders.get(name) === folder
  }

  /** Compares skills of a root, all by default, with the disk in all their files, and reads those that differ. */
  async refresh (root: Root, names?: ReadonlySet<string>): Promise<void> {
    await (names === undefined ? root.list() : root.sync())
    let changed: IndexedSkill[] = []
    const isUnread = (name: string): boolean => this.skillsIn(root).get(name)?.folder !== root.folders.get(name)
    const listed = [...root.folders.keys()]
    for (const name of names === undefined ? listed : new Set([...names, ...listed.filter(isUnread)])) {
      const folder = root.folders.get(name)
      if (folder === undefined) continue
      const skill = await this.#compare(root, folder, this.skillsIn(root).get(name))
      if (skill === 'replaced') await root.list()
      else if (skill !== undefined) changed.push(skill)
      const pause = yieldIfNeeded()
      if (pause === undefined) continue
      this.#commit(root, changed)
      changed = []
      await pause
    }
    this.#commit(root, changed)
  }

  /** The skill as it is now; undefined if it is as it was. */
  async #compare (
    root: Root, folder: SkillFolder, known: IndexedSkill | undefined
  ): Promise<IndexedSkill | 'replaced' | undefined> {
    try {
      const isSame = known?.folder === folder && await isCurrent(known)
      const skill = isSame ? known : await readSkill(root, this.files, folder)
      if (skill === undefined) return 'replaced'
      // What a disk that fails has said before stays.
      if (skill.refused !== undefined) return known !== undefined && isTransient(skill.refused) ? undefined : skill
      const { fingerprint } = await walkSkill(root.disk, folder.realPath, skill.filter)
      return isSame && fingerprint === known.fingerprint ? undefined : Object.freeze({ ...skill, fingerprint })
    } catch (error) {
      return asRefused(error).refusal === 'not_found' ? 'replaced' : undefined
    }
  }

  /** Replaces skills in one step, and reports those that are in another state. */
  #commit (root: Root, read: readonly IndexedSkill[]): void {
    const skills = new Map(this.skillsIn(root))
    const changed: string[] = []
    for (const skill of read) {
      const { name, fingerprint, findings } = skill
      const known = skills.get(name)
      if (root.folders.get(name) !== skill.folder) continue
      skills.set(name, skill)
      const isSame = known?.fingerprint === fingerprint && isDeepStrictEqual(known?.findings, findings)
      if (!isSame) changed.push(name)
    }
    if (read.length > 0) this.#skills.set(root, skills)
    this.#announce(root, changed)
  }

  /** A name that stays keeps its skill until it is read from its new folder: no list is empty meanwhile. */
  #takeListing (root: Root, before: RootListing | undefined): void {
    const names = new Set([...before?.folders.keys() ?? [], ...root.folders.keys()])
    const changed = [...names].filter((name) => before?.folders.get(name) !== root.folders.get(name))
    this.#skills.set(root, new Map([...this.skillsIn(root)].filter(([name]) => root.folders.has(name))))
    this.#announce(root, changed)
    this.emit('listed', root, before)
  }

  #announce (root: Root, names: readonly string[]): void {
    // A new root is not in its place yet.
    if (names.length === 0 || !this.roots.includes(root)) return
    this.#generation++
    this.emit('changed', names.map((name) => ({ root, name })))
  }
}

/** Whether a disk fails, or a skill is being written: the next comparison may tell more. */
function isTransient (refused: RefusedError): boolean {
  return isUnknown(refused) || refused.refusal === 'changed'
}

/** Whether the ignore files of two states of a skill say the same. What a failing disk says of them does not count. */
function hasRulesOf (present: IndexedSkill, kept: IndexedSkill): boolean {
  const isUnreadable = present.refused !== undefined && isTransient(present.refused)
  return isUnreadable || present.filter?.id === kept.filter?.id
}

/** Whether the root of a skill that is gone has other ignore rules than before. */
function isIgnored ({ root: { listing, listed }, name, folder }: IndexedSkill): boolean {
  if (listing === undefined) return false
  return listed === undefined ? folder.rules?.id !== listing.ignoreFile?.rules.id : listed.ignored?.has(name) === true
}

/** Whether folder, main file and ignore file are as they were when the skill was read: mostly two `stat` calls. */
async function isCurrent (skill: IndexedSkill): Promise<boolean> {
  const { root, folder, mainFile, mainFiles, refused } = skill
  if (refused !== undefined) return false
  // A main file that was passed over may be of use now: the target of a link was made.
  if (mainFile?.name !== orderMainFiles(mainFiles, 'SKILL.md')[0]) return false
  if (!await hasSameRules(skill)) return false
  if (mainFile === undefined) return true
  return isSameState(await stampAt(root.disk, `${folder.path}/${mainFile.name}`), mainFile.stamp)
}

/** Whether the folder of a skill is as it was when the skill was read. What could not be read then is not news. */
async function hasSameFolder ({ root, folder, folderStamp }: IndexedSkill): Promise<boolean> {
  return isSameState(await stampAt(root.disk, folder.path), folderStamp)
}

/** Whether folder and ignore file are as they were when the skill was read: what was hidden then is hidden now. */
async function hasSameRules (skill: IndexedSkill): Promise<boolean> {
  const { root: { disk }, folder, folderStamp, ignoreFile, isSettled } = skill
  if (!isSettled || folderStamp === undefined || !await hasSameFolder(skill)) return false
  if (ignoreFile !== undefined) {
    const rulesNow = await stampAt(disk, `${folder.path}/${IGNORE_FILE}`)
    if (!isSameState(rulesNow, ignoreFile.stamp)) return false
  }
  return !folder.linked || await disk.realpath(folder.path) === folder.realPath
}
