import { EventEmitter } from 'node:events'
import type { Catalog } from '../catalog.ts'
import type { Root, RootOptions } from '../roots/root.ts'
import { type CoreLog, SILENT } from '../shared/log.ts'
import { RootWatcher, type WatcherState } from './watcher.ts'

/** What happens within this time after an event is compared with it, in milliseconds. */
const COLLECT_MS = 50

/** Pause between two comparisons of everything, in milliseconds: with a watcher, which misses changes, and without. */
const TICK_MS = 20_000
const POLL_MS = 1_000

/** A comparison of a root with the disk. */
export interface Refresh {
  readonly root: Root
  readonly milliseconds: number
  /** What was there before is served. */
  readonly isFailed: boolean
}

export interface RefresherOptions {
  /** Compare everything each second instead of asking the kernel for events. */
  readonly polling?: boolean
  /** `false` runs without a watcher: everything is compared every 20 seconds. */
  readonly watcher?: boolean
  /** Pause between two comparisons of everything, in milliseconds. Default 20,000, with polling 1,000. */
  readonly tickMs?: number | undefined
  readonly log?: CoreLog
}

/** Keeps the catalog near the disk: it compares what the watchers report, and everything from time to time. */
export class Refresher extends EventEmitter<{ refreshed: [refresh: Refresh] }> {
  readonly #catalog: Catalog
  readonly #options: Required<Omit<RefresherOptions, 'tickMs'>>
  readonly #tickMs: number
  /** The roots that are followed, with the watchers of those that are watched. */
  readonly #watchers = new Map<Root, RootWatcher | undefined>()
  /** Names of skills that may have changed, by their root; `undefined` stands for any. */
  #hints = new Map<Root, Set<string | undefined>>()
  #hintTimer: NodeJS.Timeout | undefined
  #tickTimer: NodeJS.Timeout | undefined
  #running: Promise<void> = Promise.resolve()
  #isStarted = false
  #isClosed = false
  #settle = { resolve: (): void => {}, reject: (_error: Error): void => {} }
  /** Resolves after the first index: from then on, every change of any file is found. */
  readonly indexed = new Promise<void>((resolve, reject) => { this.#settle = { resolve, reject } })
  isIndexed = false

  constructor (catalog: Catalog, { polling = false, watcher = true, tickMs, log = SILENT }: RefresherOptions) {
    super()
    this.#catalog = catalog
    this.#options = { polling, watcher, log }
    this.#tickMs = tickMs ?? (polling ? POLL_MS : TICK_MS)
    // Whoever waits gets the error, and nobody has to wait.
    this.indexed.catch(() => {})
  }

  /** Makes the first index, and begins to watch. */
  async start (): Promise<void> {
    const catalog = this.#catalog
    if (this.#isStarted) return
    this.#isStarted = true
    for (const root of catalog.roots) await catalog.refresh(root)
    this.isIndexed = true
    this.#settle.resolve()
    if (this.#isClosed) return
    this.#followRoots()
    catalog.on('stale', ({ root, name }) => { this.#hint(root, name) })
    catalog.on('listed', (root) => { this.#watchers.get(root)?.follow() })
    this.#scheduleTick()
  }

  /** Replaces the roots, while none is compared. */
  async setRoots (roots: readonly RootOptions[]): Promise<void> {
    await this.indexed
    await this.#run(async () => {
      await this.#catalog.setRoots(roots)
      this.#followRoots()
    })
  }

  #followRoots (): void {
    const { polling, watcher: isWatching, log } = this.#options
    const { roots } = this.#catalog
    for (const [root, watcher] of this.#watchers) {
      if (roots.includes(root)) continue
      this.#watchers.delete(root)
      void watcher?.close()
    }
    for (const root of roots) {
      if (this.#isClosed || this.#watchers.has(root)) continue
      const onHint = (name?: string): void => { this.#hint(root, name) }
      const onEvent = (name?: string): void => {
        root.source?.hint?.()
        onHint(name)
      }
      const isWatched = isWatching && !polling && !root.isNetwork
      this.#watchers.set(root, isWatched ? new RootWatcher(root, log, onEvent) : undefined)
      root.source?.on('changed', onHint)
    }
  }

  get state (): WatcherState {
    const { polling, watcher } = this.#options
    if (polling) return { status: 'watching', mode: 'polling', errors: 0 }
    const states = [...this.#watchers.values()].flatMap((watcher) => watcher?.state ?? [])
    if (!watcher || states.length === 0) return { status: 'off', mode: 'events', errors: 0 }
    const worst = ['degraded', 'starting'].flatMap((wanted) => states.find(({ status }) => status === wanted) ?? [])[0]
    const errors = states.reduce((sum, state) => sum + state.errors, 0)
    return { status: 'watching', mode: 'events', ...worst, errors }
  }

  /** Whether changes in a root cause events, or it is polled. */
  isWatching (root: Root): boolean {
    return this.#options.polling || this.#watchers.get(root)?.state.status === 'watching'
  }

  async close (): Promise<void> {
    this.#isClosed = true
    this.#settle.reject(new Error('the skills were closed before the first index'))
    clearTimeout(this.#hintTimer)
    clearTimeout(this.#tickTimer)
    await Promise.all([...this.#watchers.values()].map((watcher) => watcher?.close()))
    await this.#running
  }

  #hint (root: Root, name?: string): void {
    if (this.#isClosed) return
    this.#hints.set(root, (this.#hints.get(root) ?? new Set()).add(name))
    this.#hintTimer ??= setTimeout(() => { void this.#run(() => this.#follow()) }, COLLECT_MS).unref()
  }

  async #follow (): Promise<void> {
    const hints = this.#hints
    this.#hints = new Map()
    this.#hintTimer = undefined
    for (const [root, names] of hints) {
      await this.#refresh(root, names.has(undefined) ? undefined : names as ReadonlySet<string>)
    }
  }

  #scheduleTick (): void {
    this.#tickTimer = setTimeout(() => { void this.#run(() => this.#tick()) }, this.#tickMs).unref()
  }

  async #tick (): Promise<void> {
    for (const root of this.#catalog.roots) {
      await this.#refresh(root)
      const watcher = this.#watchers.get(root)
      if (watcher?.state.status === 'degraded') watcher.restart()
    }
    if (!this.#isClosed) this.#scheduleTick()
  }

  async #refresh (root: Root, names?: ReadonlySet<string>): Promise<void> {
    if (this.#isClosed || !this.#catalog.roots.includes(root)) return
    const startedAt = performance.now()
    let isFailed = false
    try {
      await this.#catalog.refresh(root, names)
      isFailed = root.failure?.state === 'failed'
    } catch (err) {
      isFailed = true
      this.#options.log.warn({ err }, 'the skills could not be compared with the disk; what was there before is served')
    }
    this.emit('refreshed', { root, milliseconds: performance.now() - startedAt, isFailed })
  }

  /** One refresh at a time. */
  #run (refresh: () => Promise<void>): Promise<void> {
    const refreshed = this.#running.then(refresh)
    this.#running = refreshed.catch(() => {})
    return refreshed
  }
}
