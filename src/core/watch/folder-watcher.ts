import { watch } from 'node:fs'
import { basename } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { forEachInSlices } from '../shared/async.ts'
import { errorCode } from '../shared/system-errors.ts'
import type { NetworkMounts } from '../disk/network/network-mounts.ts'

/** Events of watched folders in one iteration of the event loop, and how long a folder with more is left alone, in milliseconds. */
export const MAX_EVENTS_PER_ITERATION = 1_000
const STORM_REST_MS = 100

/** What `NetworkMounts.reach` calls a folder. */
const OWN_NAME = '.'

/** The part of `fs.FSWatcher` that is used. */
export interface FolderWatch {
  on (event: 'error', listener: (error: Error) => void): unknown
  close (): void
}

/**
 * Watches the entries of one folder. `entry` is the name of the entry, or the folder's own name for a change of the folder itself.
 * @throws an operating system error when the folder cannot be watched
 */
export type WatchFolder = (folder: string, onEvent: (type: string, entry: string | null) => void) => FolderWatch

export interface FolderWatcherEvents {
  /** `entry` of `folder` may have changed. '' stands for all entries: the watch is new, and what happened before gave no event. */
  readonly onChange: (folder: string, entry: string) => void
  readonly onError: (error: unknown) => void
  /** All folders that were added are watched now. */
  readonly onIdle?: () => void
  /** There were so many events that the kernel may have dropped some, of any folder. */
  readonly onMissed: () => void
}

/**
 * Watches many folders, each without those below it. For the refresher, which has to hear of a change within 250 ms.
 *
 * Node's own `fs.watch` does it. 10,000 folders take 0.11 s of CPU and 12 MB. With chokidar 5 they take 2.2 s and 48 MB, and
 * 0.26 s more for each folder that is added later.
 *
 * libuv reads events until there are none, so a writer that is fast enough would block the event loop for as long as it writes.
 * Therefore one iteration of the loop takes MAX_EVENTS_PER_ITERATION events. After these, each folder with an event is left alone
 * for STORM_REST_MS, and the events end. A worker thread would keep the loop free as well, for 10 MB and, in a storm, a core.
 */
export class FolderWatcher {
  readonly #events: FolderWatcherEvents
  readonly #watchFolder: WatchFolder
  /** Undefined: not watched yet, resting, or not possible. */
  readonly #watches = new Map<string, FolderWatch | undefined>()
  readonly #pending = new Set<string>()
  readonly #missing = new Set<string>()
  readonly #resting = new Set<string>()
  #restTimer: NodeJS.Timeout | undefined
  #isWorking = false
  #iterationEvents = 0
  #closed = false

  constructor (events: FolderWatcherEvents, watchFolder: WatchFolder = watchWithNode) {
    this.#events = events
    this.#watchFolder = watchFolder
  }

  /** Whether no folder waits to be watched. */
  get isIdle (): boolean {
    return !this.#isWorking
  }

  get folders (): readonly string[] {
    return [...this.#watches.keys()]
  }

  /** Whether the folder was added and not removed, even if it could not be watched. */
  has (folder: string): boolean {
    return this.#watches.has(folder)
  }

  /** Whether the folder did not exist when it was to be watched. */
  isMissing (folder: string): boolean {
    return this.#missing.has(folder)
  }

  /** @param folder a real path on a local disk: the process waits until the disk answers */
  add (folder: string): void {
    if (!this.has(folder) || this.#missing.has(folder)) this.renew(folder)
  }

  /** Watches the folder that is at this path now: a watch follows the folder, not the path. */
  renew (folder: string): void {
    if (this.#closed || this.#resting.has(folder)) return
    this.#watches.get(folder)?.close()
    this.#watches.set(folder, undefined)
    this.#missing.delete(folder)
    this.#pending.add(folder)
    if (!this.#isWorking) void this.#work()
  }

  remove (folder: string): void {
    this.#watches.get(folder)?.close()
    this.#watches.delete(folder)
    for (const set of [this.#pending, this.#missing, this.#resting]) set.delete(folder)
  }

  close (): void {
    this.#closed = true
    clearTimeout(this.#restTimer)
    for (const folder of this.folders) this.remove(folder)
  }

  async #work (): Promise<void> {
    this.#isWorking = true
    // All folders that are added at the same time are one piece of work.
    await nextTurn()
    await forEachInSlices(this.#pending, (folder) => {
      this.#pending.delete(folder)
      this.#watch(folder)
    })
    this.#isWorking = false
    if (!this.#closed) this.#events.onIdle?.()
  }

  #watch (folder: string): void {
    try {
      const folderWatch = this.#watchFolder(folder, (_type, entry) => { this.#onEvent(folder, entry ?? '') })
      folderWatch.on('error', (error) => { if (!this.#closed) this.#events.onError(error) })
      this.#watches.set(folder, folderWatch)
    } catch (error) {
      if (errorCode(error) === 'ENOENT') this.#missing.add(folder)
      this.#events.onError(error)
    }
    this.#events.onChange(folder, '')
  }

  #onEvent (folder: string, entry: string): void {
    if (this.#watches.get(folder) === undefined) return
    if (this.#iterationEvents === 0) setImmediate(() => { this.#iterationEvents = 0 }).unref()
    if (++this.#iterationEvents > MAX_EVENTS_PER_ITERATION) this.#rest(folder)
    this.#events.onChange(folder, entry)
  }

  #rest (restless: string): void {
    this.#watches.get(restless)?.close()
    this.#watches.set(restless, undefined)
    this.#resting.add(restless)
    this.#restTimer ??= setTimeout(() => {
      this.#restTimer = undefined
      const rested = [...this.#resting]
      this.#resting.clear()
      for (const folder of rested) this.renew(folder)
      this.#events.onMissed()
    }, STORM_REST_MS).unref()
  }
}

/** Watches a local folder. A link may have taken its place: a watch would follow it, and wait for a disk that hangs. */
export function watchLocal (mounts: NetworkMounts, folder: string, onEvent: (type: string, entry: string | null) => void, watchFolder: WatchFolder = watchWithNode): FolderWatch {
  return mounts.reach(folder, (path) => watchFolder(path, (type, entry) => { onEvent(type, entry === OWN_NAME ? basename(folder) : entry) }))
}

export function watchWithNode (folder: string, onEvent: (type: string, entry: string | null) => void): FolderWatch {
  return watch(folder, { persistent: false }, onEvent)
}
