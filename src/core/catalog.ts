import { EventEmitter } from 'node:events'
import { isDeepStrictEqual } from 'node:util'
import { orderMainFiles } from './format/main-files.ts'
import { type IndexedSkill, readSkill } from './read-skill.ts'
import { type Disk, realpathOrNothing } from './read/disk.ts'
import { FileCache } from './read/file-cache.ts'
import { IGNORE_FILE } from './read/ignore-file.ts'
import { asRefused, isInconclusive, type RefusedError } from './read/refused.ts'
import { stampAt } from './read/file-stamp.ts'
import { type Walk, walkSkill } from './read/walk.ts'
import { type KeepOptions, type KeptRevision, KeptRevisions } from './revisions/kept-revisions.ts'
import { Snapshots } from './revisions/snapshot.ts'
import type { SkillFolder } from './roots/list-root.ts'
import { Root, type RootOptions, type RootState } from './roots/root.ts'
import { createCoalescer, yieldIfNeeded } from './shared/async.ts'
import { mainFileError } from './shared/errors.ts'
import { compareCodePoints } from './shared/text.ts'

/** Time that a revision stays readable after its last use, in milliseconds, and bytes of all kept revisions. */
const KEPT_REVISION_MS = 600_000
const KEPT_REVISION_BYTES = 64 * 1_048_576

export interface SkillRef {
  readonly root: Root
  readonly name: string
}

/** A skill that was added, removed or changed. */
export interface IndexChange extends SkillRef {
  readonly before: IndexedSkill | undefined
  /** Undefined for a skill that is gone, or has not been read yet. */
  readonly now: IndexedSkill | undefined
  /** Of `now`, if it was just made by a comparison with `before`. */
  readonly walk?: Walk | undefined
}

/** Whether a caller may see the skill with this name in a root. */
export type IsVisible = (root: Root, name: string) => boolean

interface CatalogEvents {
  /** The index has changed. Also emitted when the roots were replaced, even without changes. */
  changed: [changes: readonly IndexChange[]]
  /** A skill was requested by name, and the index is out of date for it. */
  stale: [skill: SkillRef]
  listed: [root: Root, before: RootState]
  /** Skills of a root have been compared with the disk; `isFailed` if that was not possible. */
  refreshed: [refresh: { readonly root: Root, readonly milliseconds: number, readonly isFailed: boolean }]
}

export interface CatalogOptions {
  /** Absolute paths, or roots with options. On a name clash the first root wins. They need not exist. */
  readonly projectRoots: ReadonlyArray<string | RootOptions>
  /** Absolute paths. Links that leave their root are followed when they lead to or into one of these folders. */
  readonly linkTargets?: readonly string[] | undefined
  /** Of all roots. Default: what fits the file system of each. */
  readonly disk?: Disk
  readonly keep?: KeepOptions
}

/**
 * All skills of all roots. One that is asked for by name is compared with the disk, and read again if it differs; the
 * index, for lists and search, is that of the last refresh. Skills are values: a change makes another one.
 */
export class Catalog extends EventEmitter<CatalogEvents> {
  roots: readonly Root[]
  readonly kept: KeptRevisions
  readonly files: FileCache
  readonly snapshots: Snapshots
  /** The index of each root. */
  readonly #skills = new WeakMap<Root, Map<string, IndexedSkill>>()
  readonly #options: CatalogOptions
  readonly #shareRead = createCoalescer<IndexedSkill | undefined>()
  /** Incremented by each change of the index. */
  generation = 0
  /** Incremented by each change of the names or folders of skills. */
  listingGeneration = 0
  #names: { readonly of: number, readonly sorted: readonly string[] } = { of: -1, sorted: [] }

  constructor (options: CatalogOptions) {
    super()
    this.#options = options
    const { keepMs = KEPT_REVISION_MS, maxBytes = KEPT_REVISION_BYTES } = options.keep ?? {}
    const keptBytes = keepMs === 0 ? 0 : maxBytes
    this.files = new FileCache(keptBytes)
    this.kept = new KeptRevisions(this.files, keepMs, keptBytes)
    this.snapshots = new Snapshots(this.files)
    this.roots = options.projectRoots.map((root) => this.#open(root))
  }

  #open (root: string | RootOptions): Root {
    const { linkTargets, disk } = this.#options
    const onListed = (root: Root, before: RootState): void => { this.#takeListing(root, before) }
    const opened = new Root(root, { linkTargets, disk, onListed })
    this.#skills.set(opened, new Map())
    return opened
  }

  /** Reads the skills of new roots, then replaces all roots in one step. One with the same options object stays. */
  async setRoots (given: readonly RootOptions[]): Promise<void> {
    const before = this.roots
    const roots = given.map((each) => before.find(({ options }) => options === each) ?? this.#open(each))
    const added = roots.filter((root) => !before.includes(root))
    await Promise.all(added.map((root) => this.refresh(root)))
    if (roots.length === before.length && roots.every((root, index) => root === before[index])) return
    this.roots = roots
    const changesIn = (root: Root, isAdded: boolean): readonly IndexChange[] => [...root.folders.keys()].map((name) => {
      const skill = this.skillsIn(root).get(name)
      return { root, name, before: isAdded ? undefined : skill, now: isAdded ? skill : undefined }
    })
    this.generation++
    this.listingGeneration++
    this.emit('changed', [
      ...before.filter((root) => !roots.includes(root)).flatMap((root) => changesIn(root, false)),
      ...added.flatMap((root) => changesIn(root, true))
    ])
  }

  close (): void {
    this.snapshots.close()
  }

  /** Names of the skills in all roots, each once, sorted by code point. */
  get names (): readonly string[] {
    if (this.#names.of !== this.listingGeneration) {
      const names = new Set(this.roots.flatMap(({ folders }) => [...folders.keys()]))
      this.#names = { of: this.listingGeneration, sorted: [...names].sort(compareCodePoints) }
    }
    return this.#names.sorted
  }

  skillsIn (root: Root): ReadonlyMap<string, IndexedSkill> {
    return this.#indexOf(root)
  }

  #indexOf (root: Root): Map<string, IndexedSkill> {
    return this.#skills.get(root) ?? new Map()
  }

  /** Returns a skill as the disk has it. @throws {SkillError} `skill_changing` when its folder is replaced meanwhile */
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
      const skill = await this.#shareRead(`${root.id}\0${name}`, async () => {
        const present = root.folders.get(name)
        return present && await readSkill(root, this.files, present)
      })
      if (skill !== undefined) return skill
      await root.list()
      // A root with a layout notices a removed folder only at its next search.
      if (root.listed === undefined || root.folders.get(name) !== folder) throw mainFileError.changing(name)
    }
    return undefined
  }

  /**
   * Returns a revision that was handed out, if its skill has the ignore rules that it was made with.
   * @param shown the skill that the caller sees under the name, maybe of another root: its rules count as well
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

  /** Whether `find` would return the same skill now. */
  async isStill (skill: IndexedSkill): Promise<boolean> {
    const { root } = skill
    // If the root was moved and its path is now a link to it, only the real path has changed.
    if (await realpathOrNothing(root.disk, root.path) !== root.listing?.realPath) await root.list()
    return await this.#isListed(skill) && await hasSameFolder(skill).catch(() => true)
  }

  async hasSameRules (skill: IndexedSkill): Promise<boolean> {
    return await hasSameRules(skill) && await this.#isListed(skill)
  }

  async #isListed ({ root, name, folder }: IndexedSkill): Promise<boolean> {
    await root.sync(name)
    return root.folders.get(name) === folder
  }

  /** Compares all files of skills of a root, by default of all, with the disk, and reads skills that differ. */
  async refresh (root: Root, names?: ReadonlySet<string>): Promise<void> {
    const startedAt = performance.now()
    let isFailed = true
    try {
      await this.#compareAll(root, names)
      isFailed = root.failure?.state === 'failed'
    } finally {
      this.emit('refreshed', { root, milliseconds: performance.now() - startedAt, isFailed })
    }
  }

  async #compareAll (root: Root, names: ReadonlySet<string> | undefined): Promise<void> {
    await (names === undefined ? root.list() : root.sync())
    const changes: IndexChange[] = []
    const index = this.#indexOf(root)
    for (const name of names === undefined ? [...root.folders.keys()] : new Set([...names, ...root.unread])) {
      const folder = root.folders.get(name)
      if (folder === undefined) continue
      const before = index.get(name)
      const found = await this.#compare(root, folder, before)
      if (found === 'replaced') await root.list()
      else if (found !== undefined) changes.push({ root, name, before, ...found })
      await yieldIfNeeded()
    }
    this.#commit(root, changes)
    if (names === undefined) root.isIndexed = true
  }

  /** Returns undefined for a skill that is as it was. */
  async #compare (
    root: Root, folder: SkillFolder, known: IndexedSkill | undefined
  ): Promise<Pick<IndexChange, 'walk'> & { readonly now: IndexedSkill } | 'replaced' | undefined> {
    try {
      const isKnown = known?.folder === folder && known.fingerprint !== undefined
      if (isKnown && root.listed?.isFixed === true) return undefined
      const isSame = known?.folder === folder && await isCurrent(known)
      const skill = isSame ? known : await readSkill(root, this.files, folder)
      if (skill === undefined) return 'replaced'
      // A failing disk does not overwrite the last good state.
      if (skill.refused !== undefined && known !== undefined && isTransient(skill.refused)) return undefined
      if (skill.refused !== undefined) return { now: skill }
      const walk = await walkSkill(root.disk, folder.realPath, skill.filter)
      const { fingerprint } = walk
      if (isSame && fingerprint === known.fingerprint) return undefined
      return { now: Object.freeze({ ...skill, fingerprint }), walk: isKnown ? walk : undefined }
    } catch (error) {
      return asRefused(error).refusal === 'not_found' ? 'replaced' : undefined
    }
  }

  /** Replaces skills in one step, and reports those that differ. */
  #commit (root: Root, changes: readonly IndexChange[]): void {
    const index = this.#indexOf(root)
    const committed = changes.filter(({ name, now }) => now !== undefined && root.folders.get(name) === now.folder)
    for (const { name, now } of committed) {
      if (now === undefined) continue
      index.set(name, now)
      root.unread.delete(name)
    }
    this.#announce(root, committed.filter(({ before, now }) =>
      before?.fingerprint !== now?.fingerprint || !isDeepStrictEqual(before?.findings, now?.findings)))
  }

  /** Takes over a listing. A name keeps its skill until the new folder has been read, so that no list is empty. */
  #takeListing (root: Root, before: RootState): void {
    const index = this.#indexOf(root)
    const { folders } = root
    const changes: IndexChange[] = []
    for (const name of new Set([...before.listing?.folders.keys() ?? [], ...folders.keys()])) {
      if (before.listing?.folders.get(name) === folders.get(name)) continue
      const skill = index.get(name)
      if (folders.has(name)) {
        root.unread.add(name)
      } else {
        index.delete(name)
        root.unread.delete(name)
      }
      changes.push({ root, name, before: skill, now: index.get(name) })
    }
    if (changes.length > 0) this.listingGeneration++
    this.#announce(root, changes)
    this.emit('listed', root, before)
  }

  #announce (root: Root, changes: readonly IndexChange[]): void {
    // The skills of a root are announced only when `setRoots` has put it in place.
    if (changes.length === 0 || !this.roots.includes(root)) return
    this.generation++
    this.emit('changed', changes)
  }
}

/** Whether the disk fails, or the skill is being written. */
function isTransient (refused: RefusedError): boolean {
  return isInconclusive(refused) || refused.refusal === 'changed'
}

/** Whether two states of a skill have the same ignore rules. A failing disk counts as no change. */
function hasRulesOf (present: IndexedSkill, kept: IndexedSkill): boolean {
  const isUnreadable = present.refused !== undefined && isTransient(present.refused)
  return isUnreadable || present.filter?.id === kept.filter?.id
}

/** Whether the ignore rules of the root have changed since a removed skill was read. */
function isIgnored ({ root: { listing, listed }, name, folder }: IndexedSkill): boolean {
  if (listing === undefined) return false
  return listed === undefined ? folder.rules?.id !== listing.ignoreFile?.rules.id : listed.ignored?.has(name) === true
}

/** Whether folder, main file and ignore file are as the skill was read with: mostly two `stat` calls. */
async function isCurrent (skill: IndexedSkill): Promise<boolean> {
  const { root, folder, mainFile, mainFiles, refused } = skill
  if (refused !== undefined) return false
  // A preferred main file was passed over, but may be readable by now: the target of a link may have been created.
  if (mainFile?.name !== orderMainFiles(mainFiles, 'SKILL.md')[0]) return false
  if (!await hasSameRules(skill)) return false
  if (mainFile === undefined) return true
  return await stampAt(root.disk, `${folder.path}/${mainFile.name}`) === mainFile.stamp
}

/** Whether the folder has the stamp that the skill was read with. Unreadable both times counts as unchanged. */
async function hasSameFolder ({ root, folder, folderStamp }: IndexedSkill): Promise<boolean> {
  return await stampAt(root.disk, folder.path) === folderStamp
}

/** Whether folder and ignore file are as the skill was read with, so that the same files are hidden. */
async function hasSameRules (skill: IndexedSkill): Promise<boolean> {
  const { root: { disk }, folder, folderStamp, ignoreFile, isSettled } = skill
  if (!isSettled || folderStamp === undefined || !await hasSameFolder(skill)) return false
  const rulesPath = `${folder.path}/${IGNORE_FILE}`
  if (ignoreFile !== undefined && await stampAt(disk, rulesPath) !== ignoreFile.stamp) return false
  return !folder.linked || await disk.realpath(folder.path) === folder.realPath
}
