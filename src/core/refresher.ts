import { PAUSE_FACTOR, RECONCILE_MS } from './shared/limits.ts'
import type { CoreLog } from './shared/log.ts'
import { Signal } from './shared/signal.ts'
import type { WatchTargets } from './watch/root-watch.ts'
import { createWatcher, type RefreshHints, type Watcher, type WatcherFactory, watcherRemedy, type WatcherState } from './watch/watcher.ts'

/** Quiet time after a watcher event before skills are compared, and the longest wait in a storm, in milliseconds. */
const DEBOUNCE_MS = 50
const MAX_DEBOUNCE_MS = 150

/** Pause between two comparisons of everything when there is no watcher, in milliseconds. */
const POLL_MS = 1_000

/** In milliseconds; the defaults are those of `limits.ts`. */
export interface RefreshTimes {
  readonly debounce?: number
  readonly maxDebounce?: number
  readonly reconcileHealthy?: number
  readonly reconcileDegraded?: number
  readonly poll?: number
}

/** A refresh that has ended. */
export interface Refresh {
  readonly milliseconds: number
  /** What was there before is served. */
  readonly isFailed: boolean
}

/** What a refresher keeps near the disk: the catalog, or the listing of one folder. */
interface RefreshedIndex {
  /** Compares with the disk what may have changed. An error is logged, and the next refresh comes as always. */
  refresh (hints: RefreshHints): Promise<void>
}

export interface RefresherOptions {
  /** Absolute path, as configured. */
  readonly root: string
  /** Compare everything at short intervals instead of watching. */
  readonly polling: boolean
  /** Default: `createWatcher`. `false`: only intervals, the long ones. */
  readonly watcher?: WatcherFactory | false | undefined
  readonly times?: RefreshTimes
  readonly log: CoreLog
  readonly index: RefreshedIndex
}

/**
 * Keeps the index near the disk between requests. One loop with one timer. A hint of the watcher, a tick, or a new state of the
 * watcher makes a refresh due. One refresh runs at a time. Hints are collected until none has come for a moment, but not for
 * long. Ticks compare everything, since a watcher misses changes.
 */
export class Refresher {
  readonly refreshed = new Signal<Refresh>()
  readonly #options: RefresherOptions
  readonly #times: Required<RefreshTimes>
  #targets: WatchTargets | undefined
  #watcher: Watcher | undefined
  /** What hints have named; '' is the root itself. */
  #hinted = new Set<string>()
  /** Times of `performance.now()`: of the first and the last hint, of the next tick, and before which no tick may come. */
  #firstHintAt = Infinity
  #lastHintAt = 0
  #tickAt = Infinity
  #restUntil = 0
  #timer: NodeJS.Timeout | undefined
  #wakesAt = Infinity
  #isRefreshing = false
  #degradedTicks = 0
  /** The last comparison of everything has found a watcher that works. */
  #wasHealthy = false
  #wantsInside = false
  #isStarted = false
  #closed = false

  constructor (options: RefresherOptions) {
    this.#options = options
    this.#times = {
      debounce: DEBOUNCE_MS,
      maxDebounce: MAX_DEBOUNCE_MS,
      reconcileHealthy: RECONCILE_MS,
      reconcileDegraded: RECONCILE_MS,
      poll: POLL_MS,
      ...options.times
    }
  }

  get watcher (): WatcherState {
    const { polling } = this.#options
    const status = polling && this.#isStarted && !this.#closed ? 'watching' : 'off'
    return this.#watcher?.state ?? { status, mode: polling ? 'polling' : 'events', errors: 0 }
  }

  /** Begins to watch, or to poll. */
  start (): void {
    if (this.#closed || this.#isStarted) return
    this.#isStarted = true
    const { watcher = createWatcher, root, polling, log } = this.#options
    if (polling) log.info({ root, watcher: this.watcher }, 'polling a skills folder')
    else if (watcher !== false) {
      this.#watcher = watcher({ root })
      this.#watcher.hints.subscribe((name) => { this.#hint(name) })
      this.#watcher.missed.subscribe(() => { this.#everythingWithin(this.#times.debounce) })
      this.#watcher.states.subscribe((state) => { this.#onState(state) })
      if (this.#targets !== undefined) this.#watcher.follow(this.#targets)
    }
    this.#tickBy(performance.now() + this.#pause)
    this.#schedule()
  }

  /** These skills may have changed. Before the start nothing is known that may be outdated. */
  hintAt (names: readonly string[]): void {
    if (!this.#isStarted) return
    for (const name of names) this.#hint(name)
  }

  /** Replaces what is watched in the root. */
  follow (targets: WatchTargets): void {
    this.#targets = targets
    this.#watcher?.follow(targets)
  }

  /** Whether `followInside` has an effect: watches on the folders inside of skills, for changes of any file. */
  wantInside (wanted: boolean): void {
    this.#wantsInside = wanted
    if (!wanted) this.#watcher?.leaveInside()
  }

  /** @param folders all folders inside of the skill's own, by real path */
  followInside (skillFolder: string, folders: readonly string[]): void {
    if (this.#wantsInside) this.#watcher?.followInside(skillFolder, folders)
  }

  async close (): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#watcher?.close()
  }

  /** The pause between two ticks. */
  get #pause (): number {
    const { status, mode } = this.watcher
    if (mode === 'polling' && status === 'watching') return this.#times.poll
    return status === 'watching' ? this.#times.reconcileHealthy : this.#times.reconcileDegraded
  }

  #hint (name: string): void {
    if (this.#closed) return
    const now = performance.now()
    this.#hinted.add(name)
    this.#firstHintAt = Math.min(this.#firstHintAt, now)
    this.#lastHintAt = now
    this.#schedule()
  }

  #everythingWithin (milliseconds: number): void {
    if (this.#closed) return
    this.#tickBy(performance.now() + milliseconds)
    this.#schedule()
  }

  #tickBy (time: number): void {
    this.#tickAt = Math.max(this.#restUntil, Math.min(this.#tickAt, time))
  }

  #onState (state: WatcherState): void {
    if (this.#closed) return
    const { root, log } = this.#options
    if (state.status === 'degraded') {
      const remedy = watcherRemedy(state.lastError)
      log.warn({ root, watcher: state }, `the watcher does not work; the folder is compared with the index at intervals${remedy === undefined ? '' : `; ${remedy}`}`)
    } else if (state.status === 'watching') log.info({ root, watcher: state }, 'watching a skills folder')
    // The watcher has missed what changed until now.
    this.#everythingWithin(0)
  }

  get #dueAt (): number {
    const { debounce, maxDebounce } = this.#times
    // Without a maximum, hints that keep coming would put the refresh off for ever.
    const hintsAt = this.#firstHintAt === Infinity ? Infinity : Math.min(this.#lastHintAt + debounce, this.#firstHintAt + maxDebounce)
    return Math.min(hintsAt, this.#tickAt)
  }

  /** Thousands of hints cost one timer: it may be early, and is set again then. */
  #schedule (): void {
    const dueAt = this.#dueAt
    if (this.#closed || this.#isRefreshing || dueAt >= this.#wakesAt) return
    clearTimeout(this.#timer)
    this.#wakesAt = dueAt
    this.#timer = setTimeout(() => { void this.#wake() }, Math.max(0, dueAt - performance.now())).unref()
  }

  async #wake (): Promise<void> {
    this.#wakesAt = Infinity
    const now = performance.now()
    if (this.#dueAt <= now) {
      this.#isRefreshing = true
      await this.#refresh(this.#tickAt <= now)
      this.#isRefreshing = false
    }
    this.#schedule()
  }

  async #refresh (everything: boolean): Promise<void> {
    const names = this.#hinted
    const start = performance.now()
    this.#hinted = new Set()
    this.#firstHintAt = Infinity
    if (everything) this.#tickAt = Infinity
    names.delete('')
    let isFailed = false
    try {
      await this.#options.index.refresh({ everything, names })
    } catch (err) {
      isFailed = true
      this.#options.log.warn({ err, root: this.#options.root }, 'a refresh failed; what was there before is served')
      // Nobody names these skills again.
      if (!everything) this.#tickBy(performance.now() + this.#times.poll)
    }
    const end = performance.now()
    this.refreshed.emit({ milliseconds: end - start, isFailed })
    if (!everything || this.#closed) return
    this.#restUntil = end + Math.min((end - start) * PAUSE_FACTOR, this.#times.reconcileDegraded)
    this.#restartWatcher()
    this.#tickBy(end + this.#pause)
  }

  /** With growing pauses: at the 1st, 2nd, 4th, 8th and each 16th tick. They begin anew when it has worked from one tick to the next. */
  #restartWatcher (): void {
    const status = this.#watcher?.state.status
    const isHealthy = status === 'watching'
    if (isHealthy && this.#wasHealthy) this.#degradedTicks = 0
    this.#wasHealthy = isHealthy
    if (status !== 'degraded') return
    const tick = ++this.#degradedTicks
    if (tick % 16 === 0 || (tick & (tick - 1)) === 0) this.#watcher?.restart()
  }
}
