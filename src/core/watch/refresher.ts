import type { Catalog } from '../catalog.ts'
import type { CoreLog } from '../shared/log.ts'
import { RootWatcher, watcherRemedy, type WatcherState } from './watcher.ts'

/** Quiet time after an event before skills are compared, and the longest wait in a storm, in milliseconds. */
const DEBOUNCE_MS = 50
const MAX_DEBOUNCE_MS = 150

/**
 * Pause between two comparisons of everything, in milliseconds: with a watcher, which misses changes, and instead of
 * one.
 */
const TICK_MS = 20_000
const POLL_MS = 1_000

/** A comparison of everything rests afterwards for this many times as long as it took. */
const REST_FACTOR = 4

/** A comparison of a root with the disk. */
export interface Refresh {
  readonly root: number
  readonly milliseconds: number
  readonly isFailed: boolean
}

export interface RefresherOptions {
  readonly catalog: Catalog
  /** Compare everything each second instead of watching. */
  readonly polling: boolean
  /** Pause between two comparisons of everything, in milliseconds. Default 20,000, with polling 1,000. */
  readonly tickMs?: number | undefined
  /** `false` for neither events nor polling: only the comparison every 20 seconds. */
  readonly isWatching: boolean
  readonly log: CoreLog
  /** After each refresh of a root. */
  readonly onRefreshed: (refresh: Refresh) => void
}

/** Keeps the catalog near the disk: it collects what the watchers report, and compares everything from time to time. */
export class Refresher {
  readonly #options: RefresherOptions
  readonly #watchers = new Map<number, RootWatcher>()
  /**
   * What may have changed, by the position of the root: names of skills; `undefined` for anything, `''` for what is
   * listed anew.
   */
  #hints = new Map<number, Set<string | undefined>>()
  #firstHintAt = 0
  #hintTimer: NodeJS.Timeout | undefined
  #tickTimer: NodeJS.Timeout | undefined
  #running: Promise<void> = Promise.resolve()
  #settle = (): void => {}
  /** Resolves when all files have been compared with the disk once, or when it is closed. */
  readonly compared = new Promise<void>((resolve) => { this.#settle = resolve })
  #isClosed = false

  constructor (options: RefresherOptions) {
    this.#options = options
  }

  /** Begins to watch. The first comparison of everything follows immediately: nothing was watched before. */
  start (): void {
    const { catalog, polling, isWatching } = this.#options
    if (this.#isClosed) return
    for (const [index, root] of catalog.roots.entries()) {
      if (isWatching && !polling && !root.isNetwork) this.#watch(index)
      root.source?.changed.subscribe(() => { this.#hint(index, '') })
    }
    catalog.on('listed', (root) => { this.#watchers.get(catalog.roots.indexOf(root))?.follow() })
    this.#tickIn(0)
  }

  get state (): WatcherState {
    const { polling, isWatching } = this.#options
    if (polling) return { status: 'watching', mode: 'polling', errors: 0 }
    const states = [...this.#watchers.values()].map(({ state }) => state)
    if (!isWatching || states.length === 0) return { status: 'off', mode: 'events', errors: 0 }
    const byStatus = (wanted: WatcherState['status']) => states.find(({ status }) => status === wanted)
    const worst = byStatus('degraded') ?? byStatus('starting') ?? states[0]
    return { status: 'off', mode: 'events', ...worst, errors: states.reduce((sum, { errors }) => sum + errors, 0) }
  }

  /** Whether changes in a root cause events, or it is polled. */
  isWatching (root: number): boolean {
    return this.#options.polling || this.#watchers.get(root)?.state.status === 'watching'
  }

  async close (): Promise<void> {
    this.#isClosed = true
    this.#settle()
    clearTimeout(this.#hintTimer)
    clearTimeout(this.#tickTimer)
    await Promise.all([...this.#watchers.values()].map((watcher) => watcher.close()))
    await this.#running
  }

  #watch (index: number): void {
    const { catalog, log } = this.#options
    const root = catalog.roots[index]
    if (root === undefined) return
    this.#watchers.set(index, new RootWatcher(root, {
      onHint: (name) => { this.#hint(index, name) },
      onReady: () => { log.info({ root: root.path }, 'watching a skills folder') },
      onError: (code) => {
        const remedy = watcherRemedy(code)
        const sentence = 'watching a skills folder failed; its skills are compared with the disk every 20 seconds'
        log.warn({ root: root.path, code, ...remedy !== undefined && { remedy } }, sentence)
        // A flood is over soon.
        if (code === 'FLOOD') this.#tickIn(POLL_MS)
      }
    }))
  }

  #hint (index: number, name: string | undefined): void {
    if (this.#isClosed) return
    const now = performance.now()
    if (this.#hints.size === 0) this.#firstHintAt = now
    const names = this.#hints.get(index) ?? new Set()
    this.#hints.set(index, names.add(name))
    clearTimeout(this.#hintTimer)
    const wait = Math.max(0, Math.min(DEBOUNCE_MS, this.#firstHintAt + MAX_DEBOUNCE_MS - now))
    this.#hintTimer = setTimeout(() => { this.#run(() => this.#follow()) }, wait).unref()
  }

  async #follow (): Promise<void> {
    const hints = this.#hints
    this.#hints = new Map()
    for (const [index, names] of hints) {
      this.#watchers.get(index)?.renew()
      await this.#refresh(index, names.has(undefined) ? undefined : this.#due(index, names))
    }
  }

  /** What events have named, and what a new listing of the root has that was not read yet. */
  * #due (index: number, names: Iterable<string | undefined>): Generator<string> {
    for (const name of names) if (name !== undefined) yield name
    const { catalog } = this.#options
    const known = catalog.skillsIn(index)
    for (const [name, folder] of catalog.roots[index]?.folders ?? []) if (known.get(name)?.folder !== folder) yield name
  }

  #tick (): void {
    this.#run(async () => {
      const startedAt = performance.now()
      for (const index of this.#options.catalog.roots.keys()) {
        await this.#refresh(index, undefined)
        const watcher = this.#watchers.get(index)
        if (watcher?.state.status === 'degraded') watcher.restart()
        if (this.#isClosed) return
      }
      this.#options.catalog.isCompared = true
      this.#settle()
      const { polling, tickMs = polling ? POLL_MS : TICK_MS } = this.#options
      const rest = Math.max(tickMs, REST_FACTOR * (performance.now() - startedAt))
      this.#tickIn(rest)
    })
  }

  #tickIn (milliseconds: number): void {
    clearTimeout(this.#tickTimer)
    this.#tickTimer = setTimeout(() => { this.#tick() }, milliseconds).unref()
  }

  async #refresh (root: number, names: Iterable<string> | undefined): Promise<void> {
    const startedAt = performance.now()
    let isFailed = false
    try {
      await this.#options.catalog.refresh(root, names)
      isFailed = this.#options.catalog.roots[root]?.failure?.state === 'failed'
    } catch (err) {
      isFailed = true
      this.#options.log.warn({ err }, 'the skills could not be compared with the disk; what was there before is served')
    }
    this.#options.onRefreshed({ root, milliseconds: performance.now() - startedAt, isFailed })
  }

  /** One refresh at a time. */
  #run (refresh: () => Promise<void>): void {
    this.#running = this.#running.then(async () => { if (!this.#isClosed) await refresh() })
  }
}
