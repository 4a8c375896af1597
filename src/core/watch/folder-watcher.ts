import { basename, dirname } from 'node:path'
import { FSWatcher, type ChokidarOptions } from 'chokidar'
import type { Stats } from 'node:fs'
import { MAX_FOLDER_EVENTS, POLL_MS, STORM_REST_MS, WATCH_BATCH } from '../limits.ts'

export type CreateFsWatcher = (options: ChokidarOptions) => FSWatcher

export interface FolderWatcherOptions {
  readonly polling: boolean
  readonly createFsWatcher?: CreateFsWatcher
  /** Something about `entry` of `folder` is different; '' when only the folder is known. */
  readonly onChange: (folder: string, entry: string) => void
  readonly onError: (error: unknown) => void
}

interface Group {
  readonly watcher: FSWatcher
  readonly folders: Set<string>
  /** Ends the wait for `ready`, which a closed watcher never says. */
  settle: () => void
}

const MAIN_FILE = /[/\\]skill\.md$/i

/** How long `ready` is waited for, in milliseconds: where a folder cannot be listed, chokidar never says it. */
const READY_MS = 5_000

/**
 * Takes the kernel's events and nothing else. chokidar's own answer to one is to list the folder and look at each entry
 * in it: among 10,000 skills that is most of the work of a watcher, and a link to `file/x` in a folder breaks the list
 * off before the folder is under watch. Whatever its throttle holds back is not done.
 */
class EventWatcher extends FSWatcher {
  override _throttle (): false {
    return false
  }
}

/**
 * Watches folders, each for itself: the entries in it, nothing below them. One of chokidar's watchers serves a group of
 * folders, since one for each costs three times the memory, and one for all says `ready` only once.
 */
export class FolderWatcher {
  readonly #options: FolderWatcherOptions
  readonly #groups = new Map<string, Group>()
  /** Events by folder, of this turn of the event loop. */
  readonly #heard = new Map<string, number>()
  /** Folders that had too many, until they are put under watch again. */
  readonly #resting = new Map<string, NodeJS.Timeout>()
  #closed = false

  constructor (options: FolderWatcherOptions) {
    this.#options = options
  }

  /** What was added and not removed, whether it could be put under watch or not. */
  get folders (): readonly string[] {
    return [...this.#groups.keys(), ...this.#resting.keys()]
  }

  has (folder: string): boolean {
    return this.#groups.has(folder) || this.#resting.has(folder)
  }

  /** Puts folders under watch, by their real paths; returns when they are. A folder that is not there is left out. */
  async add (folders: readonly string[]): Promise<void> {
    for (let start = 0; start < folders.length && !this.#closed; start += WATCH_BATCH) {
      const batch = folders.slice(start, start + WATCH_BATCH)
      // Polling, chokidar watches main files of its own accord, and forgets them only together with the whole group.
      const groups = this.#options.polling ? batch.map((folder) => [folder]) : [batch]
      await Promise.all(groups.map((group) => this.#watch(new Set(group))))
    }
  }

  remove (folder: string): void {
    clearTimeout(this.#resting.get(folder))
    this.#resting.delete(folder)
    const group = this.#groups.get(folder)
    if (group === undefined) return
    this.#groups.delete(folder)
    group.folders.delete(folder)
    if (group.folders.size > 0) group.watcher.unwatch(folder)
    else {
      void group.watcher.close()
      group.settle()
    }
  }

  async close (): Promise<void> {
    this.#closed = true
    for (const timer of this.#resting.values()) clearTimeout(timer)
    this.#resting.clear()
    const groups = new Set(this.#groups.values())
    this.#groups.clear()
    await Promise.all([...groups].map(({ watcher }) => watcher.close()))
  }

  async #watch (folders: Set<string>): Promise<void> {
    const { polling, createFsWatcher = createDefaultFsWatcher, onChange, onError } = this.#options
    const watcher = createFsWatcher({
      depth: 0,
      // Polling sees only the names in a folder: an edit in place shows at the file alone.
      ignored: (path, stats) => !folders.has(path) && !(polling && isMainFile(path, stats)),
      usePolling: polling,
      interval: POLL_MS,
      binaryInterval: POLL_MS,
      ignoreInitial: true,
      followSymlinks: false,
      // Otherwise names that look like an editor's temporary files are left out, `skill~` for one.
      atomic: false,
      persistent: false
    })
    watcher.on('error', (error) => { if (!this.#closed) onError(error) })
    // A watched folder reports its entries here; to all other events they are ignored.
    watcher.on('raw', (_event, path: string | null, details) => {
      const [folder, entry] = locate(folders, path, details)
      if (!folders.has(folder)) return
      if (this.#isStorm(folder)) this.#rest(folder)
      onChange(folder, entry)
    })
    const group: Group = { watcher, folders, settle () {} }
    for (const folder of folders) this.#groups.set(folder, group)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, READY_MS).unref()
      group.settle = () => {
        clearTimeout(timer)
        resolve()
      }
      watcher.once('ready', group.settle)
      watcher.add([...folders])
    })
  }

  #isStorm (folder: string): boolean {
    if (this.#heard.size === 0) setImmediate(() => { this.#heard.clear() }).unref()
    const events = (this.#heard.get(folder) ?? 0) + 1
    this.#heard.set(folder, events)
    return events > MAX_FOLDER_EVENTS
  }

  /** Leaves a folder alone for a moment. What changes meanwhile is made up for when it is under watch again. */
  #rest (folder: string): void {
    this.remove(folder)
    this.#resting.set(folder, setTimeout(() => {
      this.#resting.delete(folder)
      void this.#watchAgain(folder)
    }, STORM_REST_MS).unref())
  }

  async #watchAgain (folder: string): Promise<void> {
    await this.add([folder])
    if (!this.#closed && this.has(folder)) this.#options.onChange(folder, '')
  }
}

function createDefaultFsWatcher (options: ChokidarOptions): FSWatcher {
  return options.usePolling === true ? new FSWatcher(options) : new EventWatcher(options)
}

function isMainFile (path: string, stats: Stats | undefined): boolean {
  return MAIN_FILE.test(path) && stats?.isDirectory() !== true
}

/** Folder and entry of a raw event: with events a name in `watchedPath`, polling the absolute path of what was looked at. */
function locate (folders: ReadonlySet<string>, path: string | null, details: unknown): [folder: string, entry: string] {
  if (typeof details === 'object' && details !== null && 'watchedPath' in details) return [String(details.watchedPath), path ?? '']
  if (path === null || folders.has(path)) return [path ?? '', '']
  return [dirname(path), basename(path)]
}
