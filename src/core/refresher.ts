import { coalesce } from './async.ts'
import { DEBOUNCE_MS, MAX_DEBOUNCE_MS, RECONCILE_DEGRADED_MS, RECONCILE_HEALTHY_MS } from './limits.ts'
import type { CoreLog } from './log.ts'
import type { RootView } from './watch/root-watch.ts'
import { createWatcher, type Watcher, type WatcherFactory, type WatcherState } from './watch/watcher.ts'

/** In milliseconds; the defaults are those of `limits.ts`. */
export interface RefreshTimes {
  readonly debounce?: number
  readonly maxDebounce?: number
  readonly reconcileHealthy?: number
  readonly reconcileDegraded?: number
}

export interface RefresherStatus {
  readonly watcher: WatcherState
}

export interface RefresherOptions {
  readonly roots: readonly string[]
  readonly polling: boolean
  readonly watcher?: WatcherFactory | false
  readonly times?: RefreshTimes
  readonly log: CoreLog
  /** Compares these entries of a root, and the root itself, with the disk. */
  readonly lookAgain: (root: string, names: ReadonlySet<string>) => Promise<void>
  /** Compares everything with the disk. */
  readonly lookAtAll: () => Promise<void>
}

/** What is due at the next refresh. */
interface Hints {
  readonly byRoot: Map<string, Set<string>>
  everything: boolean
}

/** The `root` under which the manager's own hints run: names alone, no root to list. */
const NO_ROOT = ''

/**
 * Keeps the index near the disk between requests: hints of the watcher are collected until it is quiet, but
 * never for long, and a walk over everything finds what no hint told. One refresh runs at a time.
 */
export class Refresher {
  readonly #options: RefresherOptions
  readonly #times: Required<RefreshTimes>
  readonly #refresh = coalesce(() => this.#refreshOnce())
  readonly #views = new Map<string, RootView>()
  #hints: Hints = { byRoot: new Map(), everything: false }
  #watcher: Watcher | undefined
  #debounce: NodeJS.Timeout | undefined
  #reconcile: NodeJS.Timeout | undefined
  #firstHintAt = 0
  #restarts = 0
  #wantsInside = false
  #closed = false

  constructor (options: RefresherOptions) {
    this.#options = options
    this.#times = {
      debounce: DEBOUNCE_MS,
      maxDebounce: MAX_DEBOUNCE_MS,
      reconcileHealthy: RECONCILE_HEALTHY_MS,
      reconcileDegraded: RECONCILE_DEGRADED_MS,
      ...options.times
    }
  }

  get status (): RefresherStatus {
    const mode = this.#options.polling ? 'polling' : 'events'
    return { watcher: this.#watcher?.state ?? { status: 'off', mode, errors: 0 } }
  }

  /** Begins to watch. What changed before a watch stood is found by one walk after it. */
  start (): void {
    if (this.#closed) return
    const { watcher, roots, polling } = this.#options
    if (watcher !== false) {
      const factory = watcher ?? createWatcher
      this.#watcher = factory({
        roots,
        polling,
        onHint: (root, name) => this.#hint(root, name),
        onState: (state) => this.#onState(state)
      })
      for (const [root, view] of this.#views) this.#watcher.follow(root, view)
    }
    this.#scheduleReconcile()
  }

  /** These skills are due, whatever the watcher says. */
  hintAt (names: readonly string[]): void {
    for (const name of names) this.#hint(NO_ROOT, name)
  }

  /** What there is to watch in a root from now on. */
  follow (root: string, view: RootView): void {
    this.#views.set(root, view)
    this.#watcher?.follow(root, view)
  }

  /** Whether changes inside of skills' folders are wanted too: then `followInside` says where to watch. */
  wantInside (wanted: boolean): void {
    if (wanted === this.#wantsInside) return
    this.#wantsInside = wanted
    if (!wanted) this.#watcher?.leaveInside()
    if (this.#reconcile !== undefined && this.#options.polling) this.#scheduleReconcile()
  }

  /** The folders inside of a skill's own, by their real paths. */
  followInside (root: string, skillFolder: string, inside: readonly string[]): void {
    if (this.#wantsInside) this.#watcher?.followInside(root, skillFolder, inside)
  }

  async close (): Promise<void> {
    this.#closed = true
    clearTimeout(this.#debounce)
    clearTimeout(this.#reconcile)
    await this.#watcher?.close()
  }

  #hint (root: string, name: string | undefined): void {
    if (this.#closed) return
    const names = this.#hints.byRoot.get(root)
    if (names === undefined) this.#hints.byRoot.set(root, new Set(name === undefined ? [] : [name]))
    else if (name !== undefined) names.add(name)
    const now = performance.now()
    if (this.#debounce === undefined) this.#firstHintAt = now
    // A trailing debounce alone would starve in a storm of events.
    else if (now - this.#firstHintAt + this.#times.debounce > this.#times.maxDebounce) return
    clearTimeout(this.#debounce)
    this.#debounce = setTimeout(() => {
      this.#debounce = undefined
      void this.#refresh()
    }, this.#times.debounce)
  }

  async #refreshOnce (): Promise<void> {
    const { byRoot, everything } = this.#hints
    this.#hints = { byRoot: new Map(), everything: false }
    try {
      if (everything) await this.#options.lookAtAll()
      else for (const [root, names] of byRoot) await this.#options.lookAgain(root, names)
    } catch (err) {
      this.#options.log.warn({ err }, 'a refresh failed; what was there before is served')
    }
  }

  #onState (state: WatcherState): void {
    const { log } = this.#options
    if (state.status === 'degraded') {
      log.warn({ watcher: state }, 'the watcher does not work; the folders are compared with the index at intervals')
    } else if (state.status === 'watching') {
      log.info({ watcher: state }, 'watching the skills folders')
      this.#restarts = 0
    }
    if (this.#closed || state.status === 'off') return
    // Whatever the watcher missed until now.
    this.#hints.everything = true
    void this.#refresh()
    this.#scheduleReconcile()
  }

  #scheduleReconcile (): void {
    clearTimeout(this.#reconcile)
    if (this.#closed) return
    // Who polls sees names and main files, and no edit of another file: only the walks find it.
    const blind = this.#wantsInside && this.#options.polling
    const healthy = this.#watcher?.state.status === 'watching' && !blind
    this.#reconcile = setTimeout(() => { void this.#reconcileOnce() }, healthy ? this.#times.reconcileHealthy : this.#times.reconcileDegraded)
    this.#reconcile.unref()
  }

  async #reconcileOnce (): Promise<void> {
    this.#hints.everything = true
    await this.#refresh()
    if (this.#watcher?.state.status === 'degraded') await this.#tryWatcherAgain(this.#watcher)
    this.#scheduleReconcile()
  }

  /** With growing pauses: at the 1st, 2nd, 4th, 8th … walk, at most every 16th. */
  async #tryWatcherAgain (watcher: Watcher): Promise<void> {
    this.#restarts++
    if (this.#restarts % 16 === 0 || (this.#restarts & (this.#restarts - 1)) === 0) await watcher.restart()
  }
}
