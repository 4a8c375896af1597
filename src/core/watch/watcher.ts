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
  /** `polling`: changes are found by comparing everything at short intervals. */
  readonly mode: 'events' | 'polling'
  /** Errors since the watcher was last set up. */
  readonly errors: number
  /** Code of the latest error, such as `ENOSPC`, `FLOOD` or `NOT_READY`. Never a path. */
  readonly lastError?: string
}

/** What makes the watcher work again, by code: the text of `ENOSPC` speaks of a full disk. */
const WATCHER_REMEDIES: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'raise fs.inotify.max_user_watches'],
  ['EMFILE', 'raise fs.inotify.max_user_instances or the limit of open files'],
  ['FLOOD', 'find the program that writes to the folder without a pause'],
  ['NOT_READY', 'check the disk of the folder: setting up the watcher takes unusually long']
])

/** Pause between two checks of the watched folders' identities, in milliseconds. */
const CHECK_MS = 500

/** How long setting up a watcher may take until it is reported, in milliseconds. */
const STARTING_MS = 10_000

/** libuv reads events as long as there are any, and no request is answered meanwhile: more are a flood. */
const MAX_EVENTS_PER_TURN = 10_000
/** Until a root is watched again after a flood, in milliseconds. */
const FLOOD_MS = 1_000

/** Until a folder that was replaced is watched again, and until that has happened, in milliseconds. */
const REPLACED_MS = 50
const SETUP_MS = 250

/** What is watched with all below: the root, or what one of its links leads to. */
interface WatchedFolder {
  /** As configured: it may lead through links. */
  readonly path: string
  readonly realPath: string
  /** The skill; undefined for the root. */
  readonly name?: string
}

/**
 * Watches one root with chokidar: its folders, and those elsewhere that links lead to. Files have no watch of their
 * own, since a folder reports what happens to them. A folder that is replaced, or one above it, takes its watch with it
 * without an event: one `stat` of the root and of each link, twice a second, finds that.
 */
export class RootWatcher {
  readonly #root: Root
  readonly #log: CoreLog
  readonly #onHint: (name?: string) => void
  readonly #checkTimer: NodeJS.Timeout
  /** Watches what the root has listed last, and watches again what was replaced since. */
  readonly check = coalesce(() => this.#check())
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
  /** Codes of what went wrong since everything was watched: a restart that fails is not news. */
  readonly #failures = new Set<string>()
  #isClosed = false

  /** @param onHint something happened at a skill of the root, or, without a name, anywhere: it proves nothing */
  constructor (root: Root, log: CoreLog, onHint: (name?: string) => void) {
    this.#root = root
    this.#log = log
    this.#onHint = onHint
    this.#checkTimer = setInterval(() => { void this.check() }, CHECK_MS).unref()
    void this.check()
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

  /** Whether a path is hidden in its place, or in no place at all. */
  #isIgnored (path: string): boolean {
    if (this.#folders.has(path)) return false
    const parent = dirname(path)
    return parent === path || isHiddenPath([basename(path)]) || this.#isIgnored(parent)
  }

  #ready (): void {
    this.#isReady = true
    clearTimeout(this.#startTimer)
    // What has happened before caused no event.
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
      // `add` would open a closed watcher again.
      if (watcher === undefined || watcher.closed) return
      const isReplaced = (path: string): boolean =>
        replaced.has(path) || (path !== dirname(path) && isReplaced(dirname(path)))
      const paths = [...replaced, ...Object.keys(watcher.getWatched()).filter(isReplaced)]
      watcher.unwatch(paths)
      watcher.add(paths.filter((path) => !this.#isIgnored(path) && isFolder(path)))
      // What happens meanwhile causes no event.
      setTimeout(() => { for (const path of replaced) this.#hint(path) }, SETUP_MS).unref()
    }, REPLACED_MS).unref()
  }
}

/**
 * The root, its skills that lie elsewhere, and its links that lead to no skill now. A disk without events, and what
 * never changes, is not watched.
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
    // The number of a deleted inode is used again.
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
