import { basename, dirname } from 'node:path'
import { type Awaitable, coalesce } from '../shared/async.ts'
import { createNetworkDisk, type Disk } from '../disk/disk.ts'
import { errorCode } from '../shared/system-errors.ts'
import { avoidForeign } from '../disk/network/avoid-foreign.ts'
import type { DiskGuard } from '../disk/network/guard.ts'
import { guardDisk, type GuardedDisk } from '../disk/network/guarded-disk.ts'
import { createLocalDiskApart } from '../disk/network/local-disk.ts'
import { type ForeignDisks, readNetworkMounts } from '../disk/network/network-mounts.ts'
import { pathFrom } from '../disk/paths.ts'
import type { PollPhase } from '../disk/poll-phase.ts'
import type { PathFilter } from '../disk/hidden.ts'
import { isSameState } from '../disk/signature.ts'
import { folderError, type SkillError } from '../shared/errors.ts'
import { Signal } from '../shared/signal.ts'
import type { Signature, SkillType } from '../shared/skill.ts'
import type { RootChange, RootReport, RootStatus } from './root-reports.ts'
import type { Listing } from './listing.ts'
import { areSameNames, areSameSkips, holdLinks, holdsIgnoreFile, isOtherKind, isSameScan } from './scan-state.ts'
import { type GoodScan, type RootFolder, type RootScan, scanRoot, type SkillFolder, type SkippedEntry } from './scan-root.ts'
import { createSkillFilter } from './skill-filter.ts'

/** A folder of skills as its owner gives it. */
export interface RootOptions {
  /** Absolute; it need not exist. */
  readonly path: string
  /** What settings and reports call it. Default: the last part of the path. */
  readonly name?: string
  /** The skills, instead of the folders in it. */
  readonly listed?: Listing
  /** What the listing has in front of the name of each skill. */
  readonly prefix?: string
}

/** Which folders are skills for callers. */
type Served = Pick<ReadonlySet<SkillFolder>, 'has'>

interface RootParts {
  readonly type: SkillType
  /** Absolute paths of the folders outside of the root that links in it may lead into. */
  readonly linkTargets?: readonly string[] | undefined
  /** Default: the disk that fits the root's file system. */
  readonly disk?: Disk | undefined
  readonly guard: DiskGuard
  readonly phase: PollPhase
}

/** Of a skill that is hidden whole. */
const WHOLE: PathFilter = { id: 'whole', hides: () => true }

const NO_NAMES: ReadonlySet<string> = new Set()

const NO_FOLDERS: ReadonlyMap<string, SkillFolder> = new Map()

/** A configured folder of skills, with the folders of its last good scan. */
export class Root implements RootFolder {
  readonly changed = new Signal<RootChange>()
  readonly states = new Signal<RootReport>()
  /** Scans that failed, with their causes. */
  readonly failed = new Signal<unknown>()
  /** The entries that are left out, if they are others than before. */
  readonly skipped = new Signal<readonly SkippedEntry[]>()
  readonly name: string
  readonly path: string
  readonly type: SkillType
  /** What lists its skills, now or at another time. */
  readonly listing: Listing | undefined
  readonly prefix: string
  readonly linkTargets: readonly string[]
  /** Lists the folder again. */
  readonly rescan = coalesce(() => this.#scanAgain())
  readonly #parts: RootParts
  readonly #local: Disk
  #disk: Disk
  /** The same, where calls go through the guard. The root, or a mount in it, may lie on a disk that does not answer at once. */
  #guarded: GuardedDisk | undefined
  /** Network disks that hold nothing of this root, when it was last found on a disk of this kind: calls to that disk may still be under way. */
  readonly #foreign: { local?: ForeignDisks | undefined, network?: ForeignDisks | undefined } = {}
  #scan: RootScan | undefined
  /** The last scan that succeeded: it is served while scans fail for other reasons than a missing root. */
  #lastGood: GoodScan | undefined
  #changeCount = 0
  /** Code of the error of the last scan, '' when it did not fail. */
  #failure = ''

  constructor (root: string | RootOptions, parts: RootParts) {
    const { path, name = basename(path), listed, prefix = '' } = typeof root === 'string' ? { path: root } : root
    const { type, linkTargets = [], disk } = parts
    this.name = name
    this.path = path
    this.type = type
    this.listing = listed
    this.prefix = prefix
    this.linkTargets = linkTargets
    this.#parts = parts
    this.#local = createLocalDiskApart(() => this.#foreign.local)
    this.#guarded = disk && this.#guard(disk)
    this.#disk = this.#guarded ?? this.#local
  }

  get disk (): Disk {
    return this.#disk
  }

  /** Undefined while the root lists its own folder. */
  get listed (): Listing | undefined {
    return this.listing?.isDirect === true ? undefined : this.listing
  }

  /** Its skills by name. */
  get folders (): ReadonlyMap<string, SkillFolder> {
    return this.#lastGood?.folders ?? NO_FOLDERS
  }

  /** Its state at the last good scan. */
  get signature (): Signature | undefined {
    return this.#lastGood?.signature
  }

  /** Goes up with each scan that differs from the one before: something came or went. */
  get changeCount (): number {
    return this.#changeCount
  }

  /** Code of the last scan's error, without paths; undefined when it did not fail. */
  get failure (): string | undefined {
    return this.#failure === '' ? undefined : this.#failure
  }

  /** @param served the folders that are not taken for absent; default: all */
  status (served?: Served): RootStatus {
    const skills = served === undefined ? this.folders.size : [...this.folders.values()].filter((folder) => served.has(folder)).length
    return { name: this.name, type: this.type, state: this.#scan?.state ?? 'missing', skills, skipped: this.listed?.skipped ?? this.#lastGood?.skipped.length ?? 0 }
  }

  /** Names of the entries that hang with an area of the disk. */
  namesIn (area: string): readonly string[] {
    return this.#guarded?.namesIn(area) ?? [area]
  }

  /** The error of a root that is not there. */
  get unavailable (): SkillError | undefined {
    if (this.#lastGood !== undefined) return undefined
    return this.#scan?.state === 'unreadable' ? folderError.permissionDenied() : folderError.notFound(this.path)
  }

  /** @throws {SkillError} for a root that is not there */
  requireFolder (): void {
    const { unavailable } = this
    if (unavailable !== undefined) throw unavailable
  }

  /** Whether the listing that the skills come from, if they do, is the one that was last scanned. Touches no disk. */
  listingHolds (): boolean {
    return this.listed === undefined || (this.#scan?.state === 'ok' && this.#scan.listed === this.listed.folders)
  }

  /** Whether the root's ignore file is as it was when a skill was listed. */
  async rulesHold ({ rootRules }: SkillFolder): Promise<boolean> {
    const scan = this.#scan
    if (this.listed !== undefined) return this.listingHolds()
    return scan?.state === 'ok' && scan.isTrustworthy && scan.ignoreFile?.rules === rootRules && await holdsIgnoreFile(this.#parts.phase, this.#disk, scan)
  }

  /** What the root's ignore file, as of the last scan, hides of a skill that need not be there. */
  filterOf (name: string): PathFilter | undefined {
    if (this.listed !== undefined) return this.listed.ignored?.has(name) === true ? WHOLE : undefined
    const rules = this.#lastGood?.ignoreFile?.rules
    return rules && createSkillFilter(name, rules, undefined, NO_NAMES)
  }

  /**
   * Whether the root is there, and has nothing of this name. To list it again may take a second.
   * @param name that a listing had, of this root or another: no caller's text becomes a path
   */
  lacks (name: string): Awaitable<boolean> {
    if (this.folders.has(name) || this.listed !== undefined || this.#lastGood === undefined) return false
    return this.holdsAtOnce() || this.#lacksOnDisk(name)
  }

  async #lacksOnDisk (name: string): Promise<boolean> {
    try {
      return await this.holdsFor(name) || ((await this.#disk.stat(this.path))?.isDirectory() === true && await this.#disk.lstat(`${this.path}/${name}`) === undefined)
    } catch {
      return false
    }
  }

  /**
   * Compares the root with the disk, and scans it again if it differs.
   * @param links whether links in the root are compared too: one may change its meaning without a change to the root
   */
  async sync (links = false): Promise<void> {
    if (!await this.holds(links)) await this.rescan()
  }

  /** The same with links, on the disks that are mounted by now. No event tells of a mount. */
  async reconcile (): Promise<void> {
    if (this.#chooseDisk()) await this.rescan()
    else await this.sync(true)
  }

  /** Whether the root is as it was listed. */
  async holds (links: boolean): Promise<boolean> {
    const { phase } = this.#parts
    const scan = this.#scan
    if (this.listed !== undefined) return this.listingHolds() && (!links || await phase.stat(this.#disk, this.path) !== undefined)
    if (scan?.state !== 'ok' || !scan.isTrustworthy) return false
    const now = await phase.stat(this.#disk, this.path)
    return now !== undefined && isSameState(now, scan.signature) && await holdsIgnoreFile(phase, this.#disk, scan) &&
      (!links || scan.links.size === 0 || await holdLinks(this.#disk, this.path, this.linkTargets, scan))
  }

  /** Whether the root is as it was listed, as far as one name goes: of several links, another name's says nothing. */
  async holdsFor (name: string): Promise<boolean> {
    return await this.holds(this.listed !== undefined || (this.#scan?.state === 'ok' && this.#scan.links.has(name)))
  }

  /** Whether the disk says at once that the root, and the links in it, are as they were listed. False where more than its own folder counts. */
  holdsAtOnce (): boolean {
    const scan = this.#scan
    if (this.listed !== undefined || scan?.state !== 'ok' || !scan.isTrustworthy || scan.ignoreFile !== undefined || scan.links.size > 0) return false
    const now = this.#parts.phase.statAtOnce(this.#disk, this.path)
    return now !== undefined && isSameState(now, scan.signature)
  }

  async #scanAgain (): Promise<void> {
    const before = this.#lastGood
    const scanBefore = this.#scan
    // Before the first call: one to a dead mount would hold the whole process. A link to the root may lead elsewhere now.
    this.#chooseDisk()
    const scan = await scanRoot(this.#disk, this, before)
    const good = scan.state === 'ok' ? scan : undefined
    const isRelocated = good?.realPath !== before?.realPath || good?.signature.ino !== before?.signature.ino
    // All at once: whoever finds the new scan relies on its folders being in the catalog.
    this.#scan = scan
    const failedBefore = this.#failure
    this.#failure = scan.state === 'failed' ? errorCode(scan.cause) || 'error' : ''
    if (scan.state === 'failed') {
      // Every request scans again: the same failure is reported once.
      if (this.#failure !== failedBefore) this.failed.emit(scan.cause)
      this.#report(scan, scanBefore)
      return
    }
    this.#lastGood = good
    if (good !== undefined) this.#guarded?.keepLinks(good.links)
    // Stats from before would say that what moved here, or away, is still where it was.
    if (!isSameScan(good, before)) {
      this.#changeCount++
      this.#parts.phase.forget()
    }
    if (isRelocated || good?.folders !== before?.folders || !areSameNames(good?.links, before?.links)) {
      const names = good?.changedNames ?? [...before?.folders.keys() ?? []]
      const links = [...good?.links.keys() ?? []].map((name) => `${good?.realPath}/${name}`)
      this.changed.emit({ realPath: good?.realPath, links, names })
    }
    if (good !== undefined && (before === undefined || !areSameSkips(good.skipped, before.skipped))) this.skipped.emit(good.skipped)
    this.#report(scan, scanBefore)
  }

  #report (scan: RootScan, before: RootScan | undefined): void {
    if (scan.state === before?.state && !(scan.state === 'ok' && before.state === 'ok' && isOtherKind(scan, before))) return
    this.states.emit({ ...this.status(), before: before?.state, isSkill: scan.state === 'ok' && scan.isSkill })
  }

  /**
   * A network disk is asked so that nobody else waits for it. Links of the root, or a mount in it, may lead to one.
   * @returns whether it is a disk of another kind than before
   */
  #chooseDisk (): boolean {
    const { disk } = this.#parts
    if (disk !== undefined) return false
    const { isNetwork, foreign } = readNetworkMounts().survey([this.path, ...this.linkTargets, ...this.#listedOutside()])
    this.#foreign[isNetwork ? 'network' : 'local'] = foreign
    if (isNetwork === (this.#guarded !== undefined)) return false
    this.#guarded = this.#guarded === undefined ? this.#guard(createNetworkDisk()) : undefined
    this.#disk = this.#guarded ?? this.#local
    return true
  }

  /** Folders that hold skills of the listing elsewhere: unpacked packages are in the state folder. */
  #listedOutside (): readonly string[] {
    const folders = [...this.listed?.folders?.values() ?? []].filter(({ path }) => pathFrom(this.path, path) === undefined)
    return [...new Set(folders.map(({ realPath }) => dirname(realPath)))]
  }

  #guard (disk: Disk): GuardedDisk {
    return avoidForeign(guardDisk(this.#parts.guard, disk, this.path, this.linkTargets), () => this.#foreign.network)
  }
}
