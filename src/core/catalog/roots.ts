import { coalesce } from '../async.ts'
import { createLocalDisk, createNetworkDisk, errorCode, type Disk } from '../disk/disk.ts'
import type { DiskGuard } from '../disk/guard.ts'
import { resolveLinkedFolder, scanRoot, type Root, type RootScan, type SkillFolder } from './scan-root.ts'
import { folderError, type SkillError } from '../errors.ts'
import { isOnNetwork } from '../disk/network-mounts.ts'
import type { PhaseStats } from '../disk/poll-phase.ts'
import type { RootView } from '../watch/root-watch.ts'
import { isSameState } from '../disk/signature.ts'
import type { Signature } from '../skill.ts'

/** How often roots that change while they are looked at are looked at anew. */
const MAX_TURNS = 8

type GoodScan = Extract<RootScan, { state: 'ok' }>

/** What is known of a root: for /readyz and the log. */
export interface RootStatus {
  readonly type: Root['type']
  readonly state: 'ok' | 'missing' | 'unreadable' | 'failed'
  readonly skills: number
}

interface RootState extends Root {
  disk: Disk
  /** The root is not known to lie on a disk that answers at once, nor does a mount in it. */
  isGuarded: boolean
  scan: RootScan | undefined
  /** The last look that succeeded: what is served while looks fail for other reasons than a missing root. */
  good: GoodScan | undefined
  /** Code of the error of the last look that failed, '' when it did not. */
  failure: string
  readonly rescan: () => Promise<void>
}

export interface RootSetOptions {
  readonly projectRoots: readonly string[]
  readonly personalRoot?: string
  /** Given: used for all roots. Otherwise each root gets the disk that fits its file system. */
  readonly disk?: Disk
  readonly guard: DiskGuard
  readonly stats: PhaseStats
  /** Called after a root has other folders than before, or is another folder itself. */
  readonly onChange: (root: Root, view: RootView) => void
  readonly onFailure: (root: Root, cause: unknown) => void
}

/** The configured roots in their order, each with the folders that it was last seen to hold. */
export class RootSet {
  readonly #roots: readonly RootState[]
  readonly #stats: PhaseStats
  readonly #options: RootSetOptions

  constructor (options: RootSetOptions) {
    this.#options = options
    this.#stats = options.stats
    const personal = options.personalRoot === undefined ? [] : [{ path: options.personalRoot, type: 'personal' as const }]
    const roots = [...options.projectRoots.map((path) => ({ path, type: 'project' as const })), ...personal]
    this.#roots = roots.map((root, index) => ({
      ...root,
      index,
      ...options.disk === undefined ? { disk: createLocalDisk(), isGuarded: false } : { disk: options.guard.guard(options.disk, root.path), isGuarded: true },
      scan: undefined,
      good: undefined,
      failure: '',
      rescan: coalesce(() => this.#scan(index))
    }))
  }

  get status (): readonly RootStatus[] {
    return this.#roots.map(({ type, scan, good }) => ({ type, state: scan?.state ?? 'missing', skills: good?.folders.size ?? 0 }))
  }

  /** Codes of the looks that failed last time, without paths. */
  get failures (): readonly string[] {
    return this.#roots.map(({ failure }) => failure).filter((failure) => failure !== '')
  }

  diskOf (folder: SkillFolder): Disk {
    return this.#at(folder.root).disk
  }

  /** As configured. */
  pathOf (folder: SkillFolder): string {
    return this.#at(folder.root).path
  }

  /**
   * Looks again at each of the first `count` roots that is not as it was seen last, until all of them are as they were when
   * the turn began: then what moves from one root to another is in one of them.
   */
  async sync (count = this.#roots.length, links = false): Promise<void> {
    const roots = this.#roots.slice(0, count)
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      const before = roots.map(({ good }) => good)
      for (const root of roots) if (!await this.#isFresh(root, links)) await root.rescan()
      if (count < 2 || roots.every(({ good }, index) => isSameLook(good, before[index]))) return
      this.#stats.forget()
    }
  }

  /** The state in which a skill's root was seen last. */
  signatureOf (folder: SkillFolder): Signature | undefined {
    return this.#at(folder.root).good?.signature
  }

  rescan (index: number): Promise<void> {
    return this.#at(index).rescan()
  }

  indexOf (path: string): number {
    return this.#roots.findIndex((root) => root.path === path)
  }

  /** The error of a catalog that has no root to look in; undefined while one root is there. */
  get unavailable (): SkillError | undefined {
    if (this.#roots.some(({ good }) => good !== undefined)) return undefined
    if (this.#roots.some(({ scan }) => scan?.state === 'unreadable')) return folderError.permissionDenied()
    return folderError.notFound(this.#roots[0]?.path ?? '')
  }

  /** @throws {SkillError} when there is no root to look in */
  requireOne (): void {
    const { unavailable } = this
    if (unavailable !== undefined) throw unavailable
  }

  /** The folders of all roots by name, and the names for which there is another one in a later root. */
  merge (): { folders: ReadonlyMap<string, SkillFolder>, shadowing: ReadonlySet<string> } {
    const folders = new Map<string, SkillFolder>()
    const shadowing = new Set<string>()
    for (const { good } of this.#roots) {
      for (const folder of good?.folders.values() ?? []) {
        if (folders.has(folder.name)) shadowing.add(folder.name)
        else folders.set(folder.name, folder)
      }
    }
    return { folders, shadowing }
  }

  async #isFresh (root: RootState, links: boolean): Promise<boolean> {
    const { scan, disk } = root
    if (scan?.state !== 'ok' || !scan.settled) return false
    const now = await this.#stats.stat(disk, root.path)
    if (now === undefined || !isSameState(now, scan.signature)) return false
    return !links || await this.#areLinksFresh(root, scan)
  }

  /** A link to a folder may change its meaning without a change to the root. */
  async #areLinksFresh ({ disk, path }: RootState, scan: GoodScan): Promise<boolean> {
    for (const [name, realPath] of scan.links) {
      if (await resolveLinkedFolder(disk, scan.realPath, `${path}/${name}`, realPath) !== realPath) return false
    }
    return true
  }

  async #scan (index: number): Promise<void> {
    const root = this.#at(index)
    const before = root.good
    // Before the first touch: a dead mount would hold the whole process.
    const place = before?.realPath ?? root.path
    this.#chooseDisk(root, place)
    const scan = await scanRoot(root.disk, root, before?.links)
    const good = scan.state === 'ok' ? keepObjects(scan, before) : undefined
    const relocated = good?.realPath !== before?.realPath || good?.signature.ino !== before?.signature.ino
    // All at once: whoever finds the new scan relies on its folders being in the catalog.
    root.scan = scan
    const failedBefore = root.failure
    root.failure = scan.state === 'failed' ? errorCode(scan.cause) || 'error' : ''
    if (scan.state === 'failed') {
      // Every request looks again: the same failure is told once.
      if (root.failure !== failedBefore) this.#options.onFailure(root, scan.cause)
      return
    }
    root.good = good
    if (good !== undefined && good.realPath !== place) this.#chooseDisk(root, good.realPath)
    if (relocated || good?.folders !== before?.folders) {
      this.#options.onChange(root, { realPath: good?.realPath, folders: good?.folders ?? new Map() })
    }
  }

  /** A root with a network disk, or a mount of one in it, is asked so that nobody else waits. */
  #chooseDisk (root: RootState, path: string): void {
    const { disk, guard } = this.#options
    if (disk !== undefined || isOnNetwork(path) === root.isGuarded) return
    root.isGuarded = !root.isGuarded
    root.disk = root.isGuarded ? guard.guard(createNetworkDisk(), root.path) : createLocalDisk()
  }

  #at (index: number): RootState {
    const root = this.#roots[index]
    if (root === undefined) throw new RangeError(`no root ${index}`)
    return root
  }
}

function isSameLook (a: GoodScan | undefined, b: GoodScan | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && a.folders === b.folders && isSameState(a.signature, b.signature))
}

/** A look that found what was there before keeps the old objects: everything that hangs on their identity stays. */
function keepObjects (scan: GoodScan, before: GoodScan | undefined): GoodScan {
  if (before === undefined) return scan
  const folders = new Map<string, SkillFolder>()
  let kept = 0
  for (const [name, folder] of scan.folders) {
    const old = before.folders.get(name)
    const same = old?.realPath === folder.realPath && old.linked === folder.linked
    folders.set(name, same ? old : folder)
    if (same) kept++
  }
  const unchanged = kept === folders.size && kept === before.folders.size
  return { ...scan, folders: unchanged ? before.folders : folders }
}
