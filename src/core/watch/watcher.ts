import { lstatSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import { isHiddenPath } from '../read/hidden.ts'
import type { Root } from '../roots/root.ts'
import { ownText } from '../shared/json.ts'
import type { CoreLog } from '../shared/log.ts'
import { pathFrom } from '../shared/paths.ts'
import { errorCode } from '../shared/system-errors.ts'

export interface WatcherState {
  /** `degraded`: some changes cause no event. `off`: closed, or never opened. */
  readonly status: 'starting' | 'watching' | 'degraded' | 'off'
  /** `polling`: changes are found by comparing everything at short intervals. */
  readonly mode: 'events' | 'polling'
  /** Errors since the watcher was last set up. */
  readonly errors: number
  /** Code of the latest error, such as `ENOSPC`, or `FLOOD`: something wrote without a pause. Never a path. */
  readonly lastError?: string
}

/** What makes the watcher work again, by code: the text of `ENOSPC` speaks of a full disk. */
const WATCHER_REMEDIES: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'raise fs.inotify.max_user_watches'],
  ['EMFILE', 'raise fs.inotify.max_user_instances or the limit of open files'],
  ['FLOOD', 'something writes to the folder without a pause']
])

/** libuv reads events while there are more, and no request is answered meanwhile: more than these are a flood. */
const MAX_EVENTS_PER_TURN = 10_000
/** Until a root is watched again after a flood, in milliseconds. */
const FLOOD_MS = 1_000

/** Until a folder that was replaced is watched again, and until that has happened, in milliseconds. */
const REPLACED_MS = 50
const SETUP_MS = 250

/**
 * Watches one root with chokidar: its folders, those that links in it lead to, and the folder above, since a root that
 * is deleted and made again is another folder. Files have no watch of their own: a folder reports what happens to them.
 */
export class RootWatcher {
  readonly #root: Root
  readonly #log: CoreLog
  readonly #onHint: (name?: string) => void
  #watcher: FSWatcher | undefined
  #isReady = false
  /** Identifies what is watched. */
  #watched: string | undefined
  /** The names of the skills that links lead to, by real path. */
  #linked = new Map<string, string[]>()
  #replaced: Set<string> | undefined
  #errors = 0
  /** Codes of errors since everything was watched: a restart that fails is not news. */
  readonly #failures = new Set<string>()
  #isClosed = false

  /** @param onHint something happened at a skill of the root, or, without a name, anywhere: it proves nothing */
  constructor (root: Root, log: CoreLog, onHint: (name?: string) => void) {
    this.#root = root
    this.#log = log
    this.#onHint = onHint
    this.follow()
  }

  get state (): WatcherState {
    const lastError = [...this.#failures].at(-1)
    if (lastError !== undefined) return { status: 'degraded', mode: 'events', errors: this.#errors, lastError }
    return { status: this.#isReady ? 'watching' : 'starting', mode: 'events', errors: 0 }
  }

  /** Watches what the last listing of the root has found. What never changes once it is listed needs no watch. */
  follow (): void {
    const { path, listing, listed, folders } = this.#root
    const linked = new Map<string, string[]>()
    for (const { name, linked: isLinked, realPath } of folders.values()) {
      if (isLinked) linked.set(realPath, [...linked.get(realPath) ?? [], name])
    }
    const deep = listing === undefined || listed?.isFixed === true ? [] : [listing.realPath, ...linked.keys()]
    const watched = [listing?.stamp.ino, ...deep].join('\0')
    if (this.#isClosed || watched === this.#watched) return
    this.#watched = watched
    this.#linked = linked
    void this.#watcher?.close()
    this.#watch(dirname(path), path, deep)
  }

  /** Sets everything up anew: the only way out of `degraded`. */
  restart (): void {
    this.#watched = undefined
    this.follow()
  }

  async close (): Promise<void> {
    this.#isClosed = true
    await this.#watcher?.close()
  }

  /** @param deep folders that are watched with all below. The root is reached from its parent. */
  #watch (parent: string, root: string, deep: readonly string[]): void {
    const asked = new Set([parent, root, ...deep])
    const shallow = new Set([parent, root].filter((path) => !deep.includes(path)))
    const isIgnored = (path: string): boolean =>
      !asked.has(path) && (shallow.has(dirname(path)) || isHiddenPath([basename(path)]))
    this.#isReady = false
    this.#errors = 0
    let events = 0
    const watcher = watch([...asked].filter((path) => path !== root), {
      ignoreInitial: true,
      followSymlinks: false,
      usePolling: false,
      // The server keeps the process running, and nothing else has to.
      persistent: false,
      ignored: (path, stats) => stats?.isFile() === true || isIgnored(path)
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
          setTimeout(() => { this.restart() }, FLOOD_MS).unref()
          return
        }
        const path = `${ownText(details, 'watchedPath')}/${name}`
        this.#hint(path)
        if (event === 'rename' && !isIgnored(path) && isFolder(path)) this.#renewLater(watcher, path)
      })
  }

  #ready (): void {
    this.#isReady = true
    // What has happened before caused no event.
    this.#onHint()
    if (this.#errors > 0) return
    this.#failures.clear()
    this.#log.info({ root: this.#root.path }, 'watching a skills folder')
  }

  #fail (code: string): void {
    this.#errors++
    if (this.#failures.has(code)) return
    this.#failures.add(code)
    const remedy = WATCHER_REMEDIES.get(code)
    this.#log.warn({ root: this.#root.path, code, ...remedy !== undefined && { remedy } },
      'watching a skills folder failed; its skills are compared with the disk every 20 seconds')
  }

  #hint (path: string): void {
    const { path: rootPath, listing } = this.#root
    const below = path === rootPath ? '' : pathFrom(listing?.realPath ?? rootPath, path)
    if (below === '') this.#onHint()
    else if (below !== undefined) this.#onHint(below.split('/', 1)[0])
    for (let folder = path; folder !== dirname(folder); folder = dirname(folder)) {
      for (const name of this.#linked.get(folder) ?? []) this.#onHint(name)
    }
  }

  /** A folder that was replaced is another one, which chokidar does not watch: it is added anew, with all below. */
  #renewLater (watcher: FSWatcher, folder: string): void {
    this.#replaced?.add(folder)
    if (this.#replaced !== undefined) return
    const replaced = this.#replaced = new Set([folder])
    setTimeout(() => {
      this.#replaced = undefined
      // `add` would open a closed watcher again.
      if (watcher.closed) return
      const isReplaced = (path: string): boolean =>
        replaced.has(path) || (path !== dirname(path) && isReplaced(dirname(path)))
      const paths = [...replaced, ...Object.keys(watcher.getWatched()).filter(isReplaced)]
      watcher.unwatch(paths)
      watcher.add(paths.filter(isFolder))
      // What happens meanwhile causes no event.
      setTimeout(() => { for (const path of replaced) this.#hint(path) }, SETUP_MS).unref()
    }, REPLACED_MS).unref()
  }
}

function isFolder (path: string): boolean {
  try {
    return lstatSync(path).isDirectory()
  } catch {
    // Gone, below what is a file now, or not to be looked at: whatever it is, there is nothing to watch.
    return false
  }
}
