import { basename } from 'node:path'
import { coalesce } from '../ground/async.ts'
import { createLocalDisk, createNetworkDisk, type Disk, errorCode } from '../disk/disk.ts'
import type { DiskGuard } from '../disk/network/guard.ts'
import { guardDisk } from '../disk/network/guarded-disk.ts'
import { readNetworkMounts } from '../disk/network/network-mounts.ts'
import type { PollPhase } from '../disk/poll-phase.ts'
import { isSameState } from '../disk/signature.ts'
import { folderError, type SkillError } from '../ground/errors.ts'
import { MAX_ATTEMPTS } from '../ground/limits.ts'
import { Signal } from '../ground/signal.ts'
import type { Signature } from '../ground/skill.ts'
import { sameOr } from '../ground/text.ts'
import type { MergedFolders, RootChange, RootOptions, RootReport, RootStatus, SkippedReport } from './root-reports.ts'
import type { Listing } from './listing.ts'
import { areSameNames, areSameSkips, holdLinks, holdsIgnoreFile, isOtherKind, isSameScan } from './scan-state.ts'
import { type GoodScan, type Root, type RootScan, scanRoot, type SkillFolder } from './scan-root.ts'

export type { MergedFolders, RootChange, RootOptions, RootReport, RootStatus, SkippedReport }

interface RootState extends Root {
  disk: Disk
  /** Whether calls go through the guard: the root, or a mount in it, may lie on a disk that does not answer at once. */
  isGuarded: boolean
  scan: RootScan | undefined
  /** The last scan that succeeded: it is served while scans fail for other reasons than a missing root. */
  lastGood: GoodScan | undefined
  /** Code of the error of the last scan, '' when it did not fail. */
  failure: string
  readonly rescan: () => Promise<void>
}

/** Which folders are skills for callers. */
type Served = Pick<ReadonlySet<SkillFolder>, 'has'>

export interface RootsOptions {
  readonly projectRoots: readonly (string | RootOptions)[]
  readonly personalRoot?: string | RootOptions
  /** Absolute paths of the folders outside of the roots that links in them may lead into. */
  readonly linkTargets?: readonly string[]
  /** Used for all roots. Default: each root gets the disk that fits its file system. */
  readonly disk?: Disk
  readonly guard: DiskGuard
  readonly phase: PollPhase
}

/** The configured roots in their order, each with the folders of its last good scan. */
export class Roots {
  readonly changed = new Signal<RootChange>()
  readonly states = new Signal<RootReport>()
  readonly failed = new Signal<{ readonly root: Root, readonly cause: unknown }>()
  readonly skipped = new Signal<SkippedReport>()
  readonly #roots: readonly RootState[]
  readonly #options: RootsOptions

  constructor (options: RootsOptions) {
    this.#options = options
    const personal = options.personalRoot === undefined ? [] : [{ ...asOptions(options.personalRoot), type: 'personal' as const }]
    const project = options.projectRoots.map((root) => ({ ...asOptions(root), type: 'project' as const }))
    this.#roots = [...project, ...personal].map((root, index) => ({
      name: basename(root.path),
      ...root,
      index,
      ...options.linkTargets && { linkTargets: options.linkTargets },
      ...options.disk === undefined ? { disk: createLocalDisk(), isGuarded: false } : { disk: guardDisk(options.guard, options.disk, root.path), isGuarded: true },
      scan: undefined,
      lastGood: undefined,
      failure: '',
      rescan: coalesce(() => this.#scan(index))
    }))
  }

  /** Absolute, as configured. */
  get paths (): readonly string[] {
    return this.#roots.map(({ path }) => path)
  }

  /** @param served the folders that are not taken for absent; default: all */
  status (served?: Served): readonly RootStatus[] {
    return this.#roots.map(({ name, type, scan, lastGood }) => {
      const folders = lastGood?.folders ?? new Map<string, SkillFolder>()
      const skills = served === undefined ? folders.size : [...folders.values()].filter((folder) => served.has(folder)).length
      return { name, type, state: scan?.state ?? 'missing', skills, skipped: lastGood?.skipped.length ?? 0 }
    })
  }

  /** By the index of their root. */
  get listings (): ReadonlyArray<readonly [index: number, listing: Listing]> {
    return this.#roots.flatMap(({ index, listed }) => listed === undefined ? [] : [[index, listed] as const])
  }

  /** Codes of the scans that failed last time, without paths. */
  get failures (): readonly string[] {
    return this.#roots.map(({ failure }) => failure).filter((failure) => failure !== '')
  }

  diskOf (folder: SkillFolder): Disk {
    return this.#at(folder.root).disk
  }

  /** Whether a skill comes from a listing. Its folder stays as it is when another listing names another one: the root must be compared too. */
  isListed (folder: SkillFolder): boolean {
    return this.#at(folder.root).listed !== undefined
  }

  /** Whether the listing that a skill comes from, if it does, is the one that was last scanned. Touches no disk. */
  listingHolds (folder: SkillFolder): boolean {
    return holdsListing(this.#at(folder.root))
  }

  /** What settings and reports call a skill's root. */
  nameOf (folder: SkillFolder): string {
    return this.#at(folder.root).name
  }

  /** Folders of this name in all roots, the earliest first. */
  candidates (name: string): readonly SkillFolder[] {
    return this.#roots.flatMap(({ lastGood }) => lastGood?.folders.get(name) ?? [])
  }

  /** The folders of all roots, those included that one of the same name in an earlier root hides. */
  allFolders (): readonly SkillFolder[] {
    return this.#roots.flatMap(({ lastGood }) => [...lastGood?.folders.values() ?? []])
  }

  allNames (): readonly string[] {
    return [...new Set(this.allFolders().map(({ name }) => name))]
  }

  /** As configured. */
  pathOf (folder: SkillFolder): string {
    return this.#at(folder.root).path
  }

  /** Whether the ignore file of a skill's root is as it was when the root was listed. */
  async rulesHold (folder: SkillFolder): Promise<boolean> {
    const { disk, scan, listed } = this.#at(folder.root)
    if (listed !== undefined) return this.listingHolds(folder)
    return scan?.state === 'ok' && scan.isTrustworthy && scan.ignoreFile?.rules === folder.rootRules && await holdsIgnoreFile(this.#options.phase, disk, scan)
  }

  /** The state of a skill's root at its last good scan. */
  signatureOf (folder: SkillFolder): Signature | undefined {
    return this.#at(folder.root).lastGood?.signature
  }

  indexOf (path: string): number {
    return this.#roots.findIndex((root) => root.path === path)
  }

  /** Whether no root before position `count` has a new folder of this name. To list a root again may take a second. */
  async hasNoneBefore (name: string, count: number): Promise<boolean> {
    for (const root of this.#roots.slice(0, count)) if (!await this.#holds(root, false) && (root.listed !== undefined || !await isFree(root.disk, `${root.path}/${name}`).catch(() => false))) return false
    return true
  }

  /**
   * Compares the first `count` roots with the disk and scans again what differs, until all of them are as they were when
   * an attempt began. What moves from one root to another is then in one of them.
   * @param links whether links in the roots are compared too
   */
  async sync (count = this.#roots.length, links = false): Promise<void> {
    const roots = this.#roots.slice(0, count)
    for (let attempt = 1; ; attempt++) {
      const before = roots.map(({ lastGood }) => lastGood)
      for (const root of roots) if (!await this.#holds(root, links)) await root.rescan()
      if (attempt === MAX_ATTEMPTS || areSameScans(roots, before)) return
    }
  }

  /** Whether the disk says at once that all roots, and the links in them, are as they were listed. False where more than their own folders counts. */
  holdAtOnce (): boolean {
    return this.#roots.every(({ disk, path, scan, listed }) => {
      if (listed !== undefined || scan?.state !== 'ok' || !scan.isTrustworthy || scan.ignoreFile !== undefined || scan.links.size > 0) return false
      const now = this.#options.phase.statAtOnce(disk, path)
      return now !== undefined && isSameState(now, scan.signature)
    })
  }

  rescan (index: number): Promise<void> {
    return this.#at(index).rescan()
  }

  /** The error of a catalog that has no root; undefined while one root is there. */
  get unavailable (): SkillError | undefined {
    if (this.#roots.some(({ lastGood }) => lastGood !== undefined)) return undefined
    if (this.#roots.some(({ scan }) => scan?.state === 'unreadable')) return folderError.permissionDenied()
    return folderError.notFound(this.#roots[0]?.path ?? '')
  }

  /** @throws {SkillError} without a root */
  requireOne (): void {
    const { unavailable } = this
    if (unavailable !== undefined) throw unavailable
  }

  /**
   * The folders of all roots by name, and what later roots have too.
   * @param before the same before these names changed
   * @param served the folders that are not taken for absent; default: all
   */
  merge (before: MergedFolders, names: readonly string[], served?: Served): MergedFolders {
    const [only, ...others] = this.#roots
    if (others.length === 0 && served === undefined) return { folders: only?.lastGood?.folders ?? new Map(), shadowing: new Map() }
    const folders = new Map(before.folders)
    const shadowing = new Map(before.shadowing)
    for (const name of names) {
      const [first, ...hidden] = this.candidates(name).filter((folder) => served?.has(folder) ?? true)
      if (first === undefined) folders.delete(name)
      else folders.set(name, first)
      if (hidden.length === 0) shadowing.delete(name)
      else shadowing.set(name, sameOr(shadowing.get(name), hidden.map((folder) => this.nameOf(folder))))
    }
    return { folders, shadowing }
  }

  /** A link to a folder may change its meaning without a change to the root. */
  async #holds (root: RootState, links: boolean): Promise<boolean> {
    const { phase } = this.#options
    const { disk, path, scan, linkTargets = [] } = root
    if (root.listed !== undefined) return holdsListing(root) && (!links || await phase.stat(disk, path) !== undefined)
    if (scan?.state !== 'ok' || !scan.isTrustworthy) return false
    const now = await phase.stat(disk, path)
    return now !== undefined && isSameState(now, scan.signature) && await holdsIgnoreFile(phase, disk, scan) &&
      (!links || scan.links.size === 0 || await holdLinks(disk, path, linkTargets, scan))
  }

  async #scan (index: number): Promise<void> {
    const root = this.#at(index)
    const before = root.lastGood
    const scanBefore = root.scan
    // Before the first call: one to a dead mount would hold the whole process.
    const place = before?.realPath ?? root.path
    this.#chooseDisk(root, place)
    const scan = await scanRoot(root.disk, root, before)
    const good = scan.state === 'ok' ? scan : undefined
    const isRelocated = good?.realPath !== before?.realPath || good?.signature.ino !== before?.signature.ino
    // All at once: whoever finds the new scan relies on its folders being in the catalog.
    root.scan = scan
    const failedBefore = root.failure
    root.failure = scan.state === 'failed' ? errorCode(scan.cause) || 'error' : ''
    if (scan.state === 'failed') {
      // Every request scans again: the same failure is reported once.
      if (root.failure !== failedBefore) this.failed.emit({ root, cause: scan.cause })
      this.#report(root, scan, scanBefore)
      return
    }
    root.lastGood = good
    // Stats from before would say that what moved here, or away, is still where it was.
    if (!isSameScan(good, before)) this.#options.phase.forget()
    if (good !== undefined && good.realPath !== place) this.#chooseDisk(root, good.realPath)
    if (isRelocated || good?.folders !== before?.folders || !areSameNames(good?.links, before?.links)) {
      const names = good?.changedNames ?? [...before?.folders.keys() ?? []]
      const links = [...good?.links.keys() ?? []].map((name) => `${good?.realPath}/${name}`)
      this.changed.emit({ root, realPath: good?.realPath, folders: good?.folders ?? new Map(), links, names })
    }
    if (good !== undefined && (before === undefined || !areSameSkips(good.skipped, before.skipped))) this.skipped.emit({ root, entries: good.skipped })
    this.#report(root, scan, scanBefore)
  }

  #report (root: RootState, scan: RootScan, before: RootScan | undefined): void {
    if (scan.state === before?.state && !(scan.state === 'ok' && before.state === 'ok' && isOtherKind(scan, before))) return
    const { name, type, lastGood } = root
    this.states.emit({
      root, name, type, before: before?.state, state: scan.state, skills: lastGood?.folders.size ?? 0, skipped: lastGood?.skipped.length ?? 0, isSkill: scan.state === 'ok' && scan.isSkill
    })
  }

  /** A root with a network disk, or a mount of one in it, is asked so that nobody else waits. */
  #chooseDisk (root: RootState, path: string): void {
    const { disk, guard, linkTargets = [] } = this.#options
    if (disk !== undefined || [path, ...linkTargets].some(readNetworkMounts().touches) === root.isGuarded) return
    root.isGuarded = !root.isGuarded
    root.disk = root.isGuarded ? guardDisk(guard, createNetworkDisk(), root.path) : createLocalDisk()
  }

  #at (index: number): RootState {
    const root = this.#roots[index]
    if (root === undefined) throw new RangeError(`no root ${index}`)
    return root
  }
}

function asOptions (root: string | RootOptions): RootOptions {
  return typeof root === 'string' ? { path: root } : root
}

/** Whether there is nothing at a path. */
async function isFree (disk: Disk, path: string): Promise<boolean> {
  return await disk.lstat(path) === undefined
}

function holdsListing ({ listed, scan }: Pick<RootState, 'listed' | 'scan'>): boolean {
  return listed === undefined || (scan?.state === 'ok' && scan.listed === listed.folders)
}

/** What moves while roots are compared moves from one to another: a single root has nothing to lose. */
function areSameScans (roots: readonly RootState[], before: ReadonlyArray<GoodScan | undefined>): boolean {
  return roots.length < 2 || roots.every(({ lastGood }, index) => isSameScan(lastGood, before[index]))
}
