import { lstatSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import { isHiddenPath } from '../read/hidden.ts'
import { ownText } from '../shared/json.ts'
import { pathFrom } from '../shared/paths.ts'
import type { Root } from '../roots/root.ts'
import { errorCode } from '../shared/system-errors.ts'

export interface WatcherState {
  /** `degraded`: some changes cause no event. `off`: closed, or never opened. */
  readonly status: 'starting' | 'watching' | 'degraded' | 'off'
  /** `polling`: changes are found by comparing everything at short intervals. */
  readonly mode: 'events' | 'polling'
  /** Errors since the watcher last worked. */
  readonly errors: number
  /** Code of the latest error, such as `ENOSPC`, or `FLOOD`: something wrote without a pause. Never a path. */
  readonly lastError?: string
}

/** What makes the watcher work again: the text of `ENOSPC` speaks of a full disk. */
const REMEDIES: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'raise fs.inotify.max_user_watches'],
  ['EMFILE', 'raise fs.inotify.max_user_instances or the limit of open files'],
  ['FLOOD', 'something writes to the folder without a pause']
])

/** @param code of an error of a watcher */
export function watcherRemedy (code: string | undefined): string | undefined {
  return REMEDIES.get(code ?? '')
}

/**
 * libuv reads events for as long as there are more, and no request is answered meanwhile: more than these in one turn
 * are a flood.
 */
const MAX_EVENTS_PER_TURN = 10_000

/** How long chokidar may take to watch a folder that was added, in milliseconds. */
const SETUP_MS = 250

export interface WatcherEvents {
  /** Something happened at a skill of the root, or, without a name, to the root itself. It proves nothing. */
  readonly onHint: (name: string | undefined) => void
  /** Every folder is watched, for the first time or again. */
  readonly onReady: () => void
  /** Called once for each kind of error, until everything is watched again. */
  readonly onError: (code: string) => void
}

/**
 * Watches one root with chokidar: its folders, the folders that links in it lead to, and the folder above, since a root
 * that is deleted and made again is another folder. Files have no watch of their own: a folder reports what happens to
 * its entries.
 */
export class RootWatcher {
  readonly #root: Root
  readonly #events: WatcherEvents
  #parent: FSWatcher | undefined
  #folders: FSWatcher | undefined
  /** What is watched outside of the root's own folder, with the names of the skills there. */
  #outside = new Map<string, string>()
  /** What came, went or was replaced since `renew`. */
  readonly #renamed = new Set<string>()
  /** What events came for in this turn of the event loop. */
  readonly #changed = new Set<string>()
  #watched: { readonly realPath: string, readonly ino: bigint } | undefined
  #errors = new Map<string, number>()
  /** Errors that `onError` was called with since it worked last: a restart that fails is not news. */
  readonly #reported = new Set<string>()
  #isReady = false
  #isClosed = false

  constructor (root: Root, events: WatcherEvents) {
    this.#root = root
    this.#events = events
    this.#watchParent()
    this.follow()
  }

  get state (): WatcherState {
    const errors = [...this.#errors.values()].reduce((sum, count) => sum + count, 0)
    const lastError = [...this.#errors.keys()].at(-1)
    return {
      status: errors > 0 ? 'degraded' : this.#isReady || this.#folders === undefined ? 'watching' : 'starting',
      mode: 'events',
      errors,
      ...lastError !== undefined && { lastError }
    }
  }

  /** Watches what the last listing of the root has found. */
  follow (): void {
    // `add` would open a closed watcher again.
    if (this.#isClosed) return
    const { listing } = this.#root
    if (listing?.realPath !== this.#watched?.realPath || listing?.signature.ino !== this.#watched?.ino) {
      void this.#folders?.close()
      this.#outside = new Map()
      this.#isReady = false
      this.#watched = listing && { realPath: listing.realPath, ino: listing.signature.ino }
      this.#folders = listing && this.#watch(listing.realPath, {}).on('ready', () => { this.#ready() })
        .on('all', (_event, path) => { this.#hint(path) })
        .on('raw', (event, path, details) => { this.#collect(event, `${ownText(details, 'watchedPath')}/${path}`) })
    }
    const outside = new Map<string, string>()
    for (const { name, realPath, linked } of this.#root.folders.values()) {
      const isBelow = !linked && pathFrom(listing?.realPath ?? '', realPath) !== undefined
      if (!isBelow || this.#root.listed !== undefined) outside.set(realPath, name)
    }
    // Hidden folders of the root are not watched with it, as `..data` of a mounted ConfigMap.
    const isInside = (path: string): boolean => {
      const below = pathFrom(listing?.realPath ?? '', path)
      return below !== undefined && !isHiddenPath(below.split('/'))
    }
    this.#folders?.unwatch([...this.#outside.keys()].filter((path) => !outside.has(path) && !isInside(path)))
    const added = [...outside.keys()].filter((path) => !this.#outside.has(path) && !isInside(path))
    this.#folders?.add(added)
    this.#outside = outside
    this.#compareLater(added)
  }

  /**
   * A folder that was replaced is another one, which chokidar does not watch: what was renamed is added once more, with
   * all below.
   */
  renew (): void {
    if (this.#isClosed) return
    const replaced = new Set([...this.#renamed].filter((path) => path !== this.#watched?.realPath && isFolder(path)))
    this.#renamed.clear()
    if (this.#folders === undefined || replaced.size === 0) return
    const isBelow = (path: string): boolean => replaced.has(path) || (path !== dirname(path) && isBelow(dirname(path)))
    const below = Object.keys(this.#folders.getWatched()).filter(isBelow)
    this.#folders.unwatch([...replaced, ...below])
    // A path that is missing would have chokidar watch the folder above in another way.
    this.#folders.add([...replaced, ...below.filter(isFolder)])
    this.#compareLater([...replaced])
  }

  /** What happens until a new folder is watched causes no event. */
  #compareLater (folders: readonly string[]): void {
    if (folders.length > 0) setTimeout(() => { for (const folder of folders) this.#hint(folder) }, SETUP_MS).unref()
  }

  /** Sets everything up anew: the only way out of `degraded`. */
  restart (): void {
    if (this.#isClosed) return
    this.#errors = new Map()
    this.#watched = undefined
    this.#watchParent()
    this.follow()
  }

  async close (): Promise<void> {
    this.#isClosed = true
    await Promise.all([this.#parent?.close(), this.#folders?.close()])
  }

  #watchParent (): void {
    void this.#parent?.close()
    const { path: root } = this.#root
    const parent = dirname(root)
    const hint = (_event: string, path: string): void => {
      if (basename(path) === basename(root)) this.#events.onHint(undefined)
    }
    this.#parent = this.#watch(parent, { depth: 0, ignored: (path: string) => path !== parent && path !== root })
      .on('all', hint)
      .on('raw', hint)
  }

  #ready (): void {
    this.#isReady = true
    // What has happened before caused no event.
    this.#events.onHint(undefined)
    if (this.#errors.size > 0) return
    this.#reported.clear()
    this.#events.onReady()
  }

  #watch (path: string, options: { readonly depth?: number, readonly ignored?: (path: string) => boolean }): FSWatcher {
    const watcher = watch(path, {
      ignoreInitial: true,
      followSymlinks: false,
      usePolling: false,
      // The server keeps the process running, and nothing else has to.
      persistent: false,
      ...options,
      ignored: (path, stats) => {
        return stats?.isFile() === true || isHiddenPath([basename(path)]) || options.ignored?.(path) === true
      }
    })
    let events = 0
    watcher.on('raw', () => {
      if (events++ === 0) setImmediate(() => { events = 0 })
      if (events !== MAX_EVENTS_PER_TURN) return
      void watcher.close()
      // `add` would open it again; `restart` makes another one.
      if (watcher === this.#folders) this.#folders = undefined
      this.#fail('FLOOD')
    })
    return watcher.on('error', (error) => { this.#fail(errorCode(error)) })
  }

  #fail (code: string): void {
    if (!this.#reported.has(code)) this.#events.onError(code)
    this.#reported.add(code)
    this.#errors.set(code, (this.#errors.get(code) ?? 0) + 1)
  }

  /**
   * Thousands of events of one path may come in one turn of the event loop, and libuv reads on while there are more.
   */
  #collect (event: string, path: string): void {
    if (event === 'rename') this.#renamed.add(path)
    if (this.#changed.size === 0) {
      setImmediate(() => {
        for (const changed of this.#changed) this.#hint(changed)
        this.#changed.clear()
      })
    }
    this.#changed.add(path)
  }

  #hint (path: string): void {
    const below = pathFrom(this.#watched?.realPath ?? '', path)
    if (below === '') this.#events.onHint(undefined)
    // Where the skills of a listing lie is its owner's matter.
    else if (below !== undefined && this.#root.listed === undefined) this.#events.onHint(below.split('/', 1)[0])
    for (let folder = path; folder !== dirname(folder); folder = dirname(folder)) {
      const name = this.#outside.get(folder)
      if (name !== undefined) this.#events.onHint(name)
    }
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
