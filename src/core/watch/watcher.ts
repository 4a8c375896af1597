import { lstatSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import type { Disk } from '../read/disk.ts'
import { isHiddenPath } from '../read/hidden.ts'
import type { RootListing } from '../roots/list-root.ts'
import type { Root } from '../roots/root.ts'
import { coalesce, yieldIfNeeded } from '../shared/async.ts'
import { ownText } from '../shared/json.ts'
import type { CoreLog } from '../shared/log.ts'
import { pathBelow, pathFrom } from '../shared/paths.ts'
import { errorCode } from '../shared/system-errors.ts'

export interface WatcherState {
  /** `degraded`: some changes cause no event. `off`: closed, or never opened. */
  readonly status: 'starting' | 'watching' | 'degraded' | 'off'
  /** `polling`: everything is compared at short intervals instead. */
  readonly mode: 'events' | 'polling'
  /** Errors since the watcher was last set up. */
  readonly errors: number
  /** Code of the latest error, such as `ENOSPC`, `FLOOD` or `NOT_READY`. Never a path. */
  readonly lastError?: string
}

/** Fixes by error code. Node's text for `ENOSPC` would blame a full disk. */
const WATCHER_REMEDIES: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'raise fs.inotify.max_user_watches'],
  ['EMFILE', 'raise fs.inotify.max_user_instances or the limit of open files'],
  ['FLOOD', 'find the program that writes to the folder without a pause'],
  ['NOT_READY', 'check the disk of the folder: setting up the watcher takes unusually long']
])

/** Pause between two checks of the watched folders' identities, in milliseconds. */
const CHECK_MS = 500

/** Time after which a watcher that is still starting is reported, in milliseconds. */
const STARTING_MS = 10_000

/** libuv reads events as long as there are any, and no request is answered meanwhile: more are a flood. */
const MAX_EVENTS_PER_TURN = 10_000
/** Pause after a flood before the root is watched again, in milliseconds. */
const FLOOD_MS = 1_000

/** Pause before a replaced folder is watched again, and time until that is set up, in milliseconds. */
const REPLACED_MS = 50
const SETUP_MS = 250

/** A folder that is watched recursively: the root, or the target of one of its links. */
interface WatchedFolder {
  /** As configured: it may lead through links. */
  readonly path: string
  readonly realPath: string
  /** Name of the skill; undefined for the root. */
  readonly name?: string
}

/**
 * Watches one root with chokidar: its folders, and those that its links lead to. Files need no watch, since their
 * folder reports changes. If a folder or one above it is replaced, the watch is lost without an event. A `stat` of the
 * root and of each link, twice a second, notices that.
 */
export class RootWatcher {
  readonly #root: Root
  readonly #log: CoreLog
  readonly #onHint: (name?: string) => void
  readonly #checkTimer: NodeJS.Timeout
  #listing: RootListing | undefined
  #places: readonly WatchedFolder[] = []
  /** Names of the skills by the real paths of the places. */
  #folders: ReadonlyMap<string, readonly string[]> = new Map()
  /** Identity of the folder at each place, by path; undefined before the first check. */
  #watched: ReadonlyMap<string, string> | undefined
  #watcher: FSWatcher | undefined
  #isReady = false
  #startTimer: NodeJS.Timeout | undefined
  #replaced: Set<string> | undefined
  #errors = 0
  /** Error codes since everything was last watched. Each is logged once. */
  readonly #failures = new Set<string>()
  #isClosed = false

  /** @param onHint called when a skill, or without a name any skill, may have changed */
  constructor (root: Root, log: CoreLog, onHint: (name?: string) => void) {
    this.#root = root
    this.#log = log
    this.#onHint = onHint
    const check = coalesce(() => this.#check())
    this.#checkTimer = setInterval(() => { void check() }, CHECK_MS).unref()
    void check()
  }

  get state (): WatcherState {
    if (this.#root.isNetwork) return { status: 'off', mode: 'events', errors: 0 }
    const lastError = [...this.#failures].at(-1)
    if (lastError !== undefined) return { status: 'degraded', mode: 'events', errors: this.#errors, lastError }
    return { status: this.#isReady ? 'watching' : 'starting', mode: 'events', errors: 0 }
  }

  /** Sets up a failed watcher again, but not one that is still starting. */
  restartIfFailed (): void {
    if (this.#errors > 0) this.#watch()
  }

  async close (): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#checkTimer)
    clearTimeout(this.#startTimer)
    await this.#watcher?.close()
  }

  /** Looks at what the root lists, and watches new and replaced folders. */
  async #check (): Promise<void> {
    const { path: rootPath, listing, disk } = this.#root
    if (listing !== this.#listing || this.#watched === undefined) {
      this.#listing = listing
      this.#places = placesOf(this.#root)
      const folders = new Map<string, string[]>()
      for (const { realPath, name } of this.#places) {
        folders.set(realPath, [...folders.get(realPath) ?? [], ...name === undefined ? [] : [name]])
      }
      this.#folders = folders
    }
    const before = this.#watched
    const watched = new Map<string, string>()
    for (const { path, realPath } of this.#places) {
      watched.set(path, `${realPath}\0${await identityAt(disk, path)}`)
      await yieldIfNeeded()
    }
    if (this.#isClosed) return
    this.#watched = watched
    if (before === undefined || before.get(rootPath) !== watched.get(rootPath)) {
      this.#watch()
      if (before !== undefined) this.#onHint()
      return
    }
    for (const [path, state] of [...before, ...watched]) {
      if (before.get(path) === watched.get(path)) continue
      const realPath = state.slice(0, state.indexOf('\0'))
      this.#renewLater(realPath)
      this.#hint(realPath)
    }
  }

  /** Sets up chokidar for all places. */
  #watch (): void {
    void this.#watcher?.close()
    this.#watcher = undefined
    clearTimeout(this.#startTimer)
    if (this.#isClosed) return
    this.#errors = 0
    // A folder that is missing is found by a later check; chokidar would never be ready.
    const folders = [...this.#folders.keys()].filter(isFolder)
    this.#isReady = folders.length === 0
    if (this.#isReady) return
    this.#startTimer = setTimeout(() => { this.#report('NOT_READY') }, STARTING_MS).unref()
    let events = 0
    const watcher = watch(folders, {
      ignoreInitial: true,
      followSymlinks: false,
      usePolling: false,
      // Watchers do not keep the process alive.
      persistent: false,
      ignored: (path, stats) => stats?.isFile() === true || this.#isIgnored(path)
    })
    this.#watcher = watcher
      .on('ready', () => { this.#ready() })
      .on('error', (error) => { this.#fail(errorCode(error)) })
      .on('all', (_event, path) => { this.#hint(path) })
      .on('raw', (event, name, details) => {
        if (events++ === 0) setImmediate(() => { events = 0 })
        if (events > MAX_EVENTS_PER_TURN) {
          void watcher.close()
          this.#fail('FLOOD')
          this.#startTimer = setTimeout(() => { this.#watch() }, FLOOD_MS).unref()
          return
        }
        const path = `${ownText(details, 'watchedPath')}/${name}`
        this.#hint(path)
        if (event === 'rename' && !this.#isIgnored(path) && isFolder(path)) this.#renewLater(path)
      })
  }

  /** Whether a path has a hidden name below a watched folder, or is not below one. */
  #isIgnored (path: string): boolean {
    if (this.#folders.has(path)) return false
    const parent = dirname(path)
    return parent === path || isHiddenPath([basename(path)]) || this.#isIgnored(parent)
  }

  #ready (): void {
    this.#isReady = true
    clearTimeout(this.#startTimer)
    // Changes before this moment caused no event.
    this.#onHint()
    if (this.#errors > 0) return
    this.#failures.clear()
    this.#log.info({ root: this.#root.path }, 'watching a skills folder')
  }

  #fail (code: string): void {
    this.#errors++
    this.#report(code)
  }

  #report (code: string): void {
    if (this.#failures.has(code)) return
    this.#failures.add(code)
    const remedy = WATCHER_REMEDIES.get(code)
    this.#log.warn({ root: this.#root.path, code, ...remedy !== undefined && { remedy } },
      'watching a skills folder failed; it is compared with the disk at intervals until watching works again')
  }

  #hint (path: string): void {
    const below = pathFrom(this.#root.listing?.realPath ?? this.#root.path, path)
    if (below === '') this.#onHint()
    else if (below !== undefined) this.#onHint(below.split('/', 1)[0])
    for (let folder = path; folder !== dirname(folder); folder = dirname(folder)) {
      for (const name of this.#folders.get(folder) ?? []) this.#onHint(name)
    }
  }

  /** Adds a folder that was replaced, which chokidar does not watch, with all below. */
  #renewLater (folder: string): void {
    this.#replaced?.add(folder)
    if (this.#replaced !== undefined) return
    const replaced = this.#replaced = new Set([folder])
    setTimeout(() => {
      this.#replaced = undefined
      const watcher = this.#watcher
      // `add` would reopen a closed watcher.
      if (watcher === undefined || watcher.closed) return
      const isReplaced = (path: string): boolean =>
        replaced.has(path) || (path !== dirname(path) && isReplaced(dirname(path)))
      const paths = [...replaced, ...Object.keys(watcher.getWatched()).filter(isReplaced)]
      watcher.unwatch(paths)
      watcher.add(paths.filter((path) => !this.#isIgnored(path) && isFolder(path)))
      // Changes while the watch is being set up cause no event.
      setTimeout(() => { for (const path of replaced) this.#hint(path) }, SETUP_MS).unref()
    }, REPLACED_MS).unref()
  }
}

/**
 * Returns what to watch: the root, its skills that are elsewhere, and its links that lead to no skill. Nothing for a
 * network disk without events, or for folders that never change.
 */
function placesOf ({ path: rootPath, listing, listed, isNetwork, folders }: Root): readonly WatchedFolder[] {
  if (isNetwork || listed?.isFixed === true) return []
  const realRoot = listing?.realPath ?? rootPath
  const elsewhere = [...folders.values()].filter(({ path, realPath }) => {
    const below = pathFrom(rootPath, path)
    return below !== undefined && realPath !== pathBelow(realRoot, below)
  })
  const skipped = [...listing?.links.keys() ?? []].filter((name) => !folders.has(name))
    .map((name) => ({ name, path: pathBelow(rootPath, name), realPath: pathBelow(realRoot, name) }))
  return [{ path: rootPath, realPath: realRoot }, ...elsewhere, ...skipped]
}

/** Returns what identifies the folder at a path, as long as it is not deleted. */
async function identityAt (disk: Disk, path: string): Promise<string> {
  try {
    const stats = await disk.stat(path)
    // With the time of birth, since the number of a deleted inode is reused.
    return stats === undefined ? '' : `${stats.dev}:${stats.ino}:${stats.birthtimeNs}`
  } catch {
    return ''
  }
}

function isFolder (path: string): boolean {
  try {
    return lstatSync(path).isDirectory()
  } catch {
    return false
  }
}
