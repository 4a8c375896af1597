import { basename, dirname, join } from 'node:path'
import { type NetworkMounts, readNetworkMounts } from '../disk/network/network-mounts.ts'
import { FolderWatcher, type WatchFolder, watchLocal } from './folder-watcher.ts'
import { InsideWatch } from './inside-watch.ts'

/** What a root consists of. */
export interface WatchTargets {
  /** Undefined while the root is missing. */
  readonly realPath: string | undefined
  /** Real paths of the skill folders, by the name of the skill. */
  readonly folders: ReadonlyMap<string, { readonly realPath: string }>
  /** Paths of the links in the root, below its real path: what they lead to may come, go, or be exchanged elsewhere. */
  readonly links?: readonly string[]
}

interface RootWatchEvents {
  /** The skill of this name may have changed; without a name, the root itself. */
  readonly onHint: (name?: string) => void
  readonly onError: (error: unknown) => void
  /** Events were lost: anything may have changed. */
  readonly onMissed: () => void
  /** All that is to be watched is watched, or is so again. */
  readonly onReady: () => void
}

export interface RootWatchOptions {
  /** Default: Node's `fs.watch`. */
  readonly watchFolder?: WatchFolder
  /** Text of `/proc/self/mountinfo`. */
  readonly readMountInfo?: () => string
}

/** Pause before a path is traced again that led to a missing folder, in milliseconds. */
const RETRACE_MS = 50

/** Watches one root: the folders that decide where it is, the root, each skill folder, and on demand the folders inside of those. */
export class RootWatch {
  readonly #root: string
  readonly #events: RootWatchEvents
  readonly #options: RootWatchOptions
  readonly #watcher: FolderWatcher
  readonly #watchFolder: WatchFolder = (folder, onEvent) => watchLocal(this.#mounts, folder, onEvent, this.#options.watchFolder)

  #inside: InsideWatch | undefined
  #targets: WatchTargets = { realPath: undefined, folders: new Map() }
  /** Names of the skills by the real path of their folder. Two names can be links to one folder. */
  #names: ReadonlyMap<string, readonly string[]> = new Map()
  /** Paths that decide where the root is. */
  #decisive: ReadonlySet<string> = new Set()
  #decisiveFolders: ReadonlySet<string> = new Set()
  /** Names of the links by the paths outside of the root that decide what they lead to. */
  #linkPaths: ReadonlyMap<string, readonly string[]> = new Map()
  #linkFolders: ReadonlySet<string> = new Set()
  #mounts: NetworkMounts
  #update: NodeJS.Immediate | undefined
  #retry: NodeJS.Timeout | undefined
  #isReady = false
  #isRelocated = false
  #closed = false

  constructor (root: string, events: RootWatchEvents, options: RootWatchOptions) {
    this.#root = root
    this.#events = events
    this.#options = options
    this.#mounts = readNetworkMounts(options.readMountInfo?.())
    this.#watcher = new FolderWatcher({
      onChange: (folder, entry) => { this.#onChange(folder, entry) },
      onError: events.onError,
      onMissed: events.onMissed,
      onIdle: () => { this.#onIdle() }
    }, this.#watchFolder)
    this.#scheduleUpdate()
  }

  /** Folders of the root lie on a network disk. They are not watched: most changes there give no event, and a call may never return. */
  get isRemote (): boolean {
    const { realPath = this.#root, links } = this.#targets
    return this.#mounts.touches(realPath) || (links !== undefined && links.length > 0 && [...this.#names.keys()].some((folder) => this.#mounts.has(folder)))
  }

  follow (targets: WatchTargets): void {
    const names = new Map<string, string[]>()
    for (const [name, { realPath }] of targets.folders) {
      const others = names.get(realPath)
      if (others === undefined) names.set(realPath, [name])
      else others.push(name)
    }
    this.#targets = targets
    this.#names = names
    this.#inside?.keep(names)
    this.#scheduleUpdate()
  }

  /** The folders that are followed inside of skills, by skill folder. */
  get inside (): ReadonlyMap<string, readonly string[]> {
    return this.#inside?.folders ?? new Map()
  }

  /** Watches these folders inside of a skill too, until `leaveInside` or the next call for the same skill. */
  followInside (skillFolder: string, folders: readonly string[]): void {
    if (this.#closed || !this.#names.has(skillFolder)) return
    this.#inside ??= new InsideWatch({
      onChange: (folder, isNew) => { if (this.#isReady || !isNew) this.#hintSkills(folder) },
      onError: this.#events.onError,
      onMissed: this.#events.onMissed,
      onIdle: () => { this.#onInsideIdle() }
    }, this.#watchFolder)
    this.#inside.follow(skillFolder, folders.filter((folder) => !this.#mounts.has(folder)))
  }

  leaveInside (): void {
    this.#inside?.close()
    this.#inside = undefined
    this.#onInsideIdle()
  }

  close (): void {
    this.#closed = true
    this.#cancelUpdate()
    this.#watcher.close()
    this.leaveInside()
  }

  #onChange (folder: string, entry: string): void {
    if (this.#closed) return
    if (entry === '') {
      this.#onNewWatch(folder)
      return
    }
    const path = join(folder, entry)
    if (this.#decisive.has(path)) this.#relocate()
    else this.#renew(path)
    // The last event of a folder that is moved or removed carries its own name.
    if (entry === basename(folder)) this.#renew(folder)
    if (folder === this.#targets.realPath) this.#events.onHint(entry)
    this.#hintSkills(folder)
    const names = this.#linkPaths.get(path)
    // Other paths may decide from now on what the links lead to, also where that is nothing before and after.
    if (names !== undefined || this.#targets.links?.includes(path) === true) this.#scheduleUpdate()
    for (const name of names ?? []) this.#events.onHint(name)
  }

  #onNewWatch (folder: string): void {
    // The folder may have been replaced between the trace and the watch.
    if (this.#decisiveFolders.has(folder) || this.#linkFolders.has(folder)) this.#scheduleUpdate(this.#watcher.isMissing(folder) ? RETRACE_MS : 0)
    // Until everything has been watched once, changes are found by the comparison that follows.
    if (!this.#isReady) return
    if (folder === this.#targets.realPath || this.#decisiveFolders.has(folder)) this.#events.onHint()
    this.#hintSkills(folder)
    if (!this.#linkFolders.has(folder)) return
    for (const [path, names] of this.#linkPaths) if (dirname(path) === folder) for (const name of names) this.#events.onHint(name)
  }

  #hintSkills (folder: string): void {
    for (const name of this.#names.get(folder) ?? []) this.#events.onHint(name)
  }

  #renew (folder: string): void {
    if (this.#watcher.has(folder)) this.#watcher.renew(folder)
    this.#inside?.renew(folder)
  }

  /** The root may be another folder now, and with it all that is in it. */
  #relocate (): void {
    this.#isRelocated = true
    this.#scheduleUpdate()
    this.#events.onHint()
  }

  #scheduleUpdate (delayMs = 0): void {
    if (this.#closed) return
    if (delayMs > 0) this.#retry ??= setTimeout(() => { this.#updateWatches() }, delayMs).unref()
    else this.#update ??= setImmediate(() => { this.#updateWatches() })
  }

  #cancelUpdate (): void {
    clearImmediate(this.#update)
    clearTimeout(this.#retry)
    this.#update = undefined
    this.#retry = undefined
  }

  #updateWatches (): void {
    this.#cancelUpdate()
    this.#mounts = readNetworkMounts(this.#options.readMountInfo?.())
    this.#decisive = this.#mounts.trace(this.#root)
    this.#decisiveFolders = new Set([...this.#decisive].map((path) => dirname(path)))
    const { realPath } = this.#targets
    this.#linkPaths = this.#traceLinks()
    this.#linkFolders = new Set([...this.#linkPaths.keys()].map((path) => dirname(path)))
    const folders = [...this.#decisiveFolders, ...this.#linkFolders, ...realPath === undefined ? [] : [realPath], ...this.#names.keys()]
    const wanted = new Set(folders.filter((folder) => !this.#mounts.has(folder)))
    for (const folder of this.#watcher.folders) {
      if (!wanted.has(folder)) this.#watcher.remove(folder)
      else if (this.#isRelocated) this.#renew(folder)
    }
    this.#isRelocated = false
    for (const folder of wanted) this.#watcher.add(folder)
    if (this.#watcher.isIdle) this.#onIdle()
  }

  #traceLinks (): ReadonlyMap<string, readonly string[]> {
    const { realPath, links = [] } = this.#targets
    const names = new Map<string, string[]>()
    for (const link of links) {
      for (const path of this.#mounts.trace(link)) {
        // What is in the root is watched with the root.
        if (dirname(path) === realPath) continue
        const others = names.get(path)
        if (others === undefined) names.set(path, [basename(link)])
        else others.push(basename(link))
      }
    }
    return names
  }

  #onInsideIdle (): void {
    if (!this.#isReady && this.#watcher.isIdle) this.#onIdle()
  }

  #onIdle (): void {
    if (this.#closed || this.#update !== undefined) return
    // Folders inside that cannot be watched would otherwise be found out after the report that all is well, each time.
    if (!this.#isReady && this.#inside?.isIdle === false) return
    this.#isReady = true
    this.#events.onReady()
  }
}
