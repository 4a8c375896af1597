import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { Catalog, SkillRef } from '../catalog.ts'
import type { Root, RootOptions } from '../roots/root.ts'
import { type CoreLog, SILENT } from '../shared/log.ts'
import { RootFollower } from './root-follower.ts'
import type { WatcherState } from './watcher.ts'

/** Pause between two full comparisons, in milliseconds: with a watcher, which can miss changes, and with polling. */
const TICK_MS = 20_000
const POLL_MS = 1_000

/** How long lists wait for the first index of a slow root, in milliseconds: as long as a disk may take for a call. */
const SLOW_INDEX_MS = 5_000

export interface RefresherOptions {
  /** Compare everything each second instead of asking the kernel for events. */
  readonly polling?: boolean
  /** `false`: no watcher, everything is compared every 20 seconds. */
  readonly watcher?: boolean
  /** Pause between two comparisons of everything, in milliseconds. Default 20,000, with polling 1,000. */
  readonly tickMs?: number
  readonly log?: CoreLog
}

/** Has a follower for each root. No root waits for another. */
export class Refresher {
  readonly #catalog: Catalog
  readonly #options: Required<RefresherOptions>
  readonly #followers = new Map<Root, RootFollower>()
  readonly #limitSetRoots = pLimit(1)
  #slowStart = new Promise<unknown>(() => {})
  #isStarted = false
  #isClosed = false

  constructor (catalog: Catalog, options: RefresherOptions) {
    const { polling = false, watcher = true, tickMs = polling ? POLL_MS : TICK_MS, log = SILENT } = options
    this.#catalog = catalog
    this.#options = { polling, watcher, tickMs, log }
    for (const root of catalog.roots) this.#followers.set(root, this.#createFollower(root))
    catalog.on('stale', this.#onStale)
  }

  /** Starts the followers: each indexes its root, and then follows it. */
  start (): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#slowStart = sleep(SLOW_INDEX_MS, undefined, { ref: false })
    for (const follower of this.#followers.values()) void follower.start()
  }

  async setRoots (roots: readonly RootOptions[]): Promise<void> {
    await this.#limitSetRoots(async () => {
      await this.#catalog.setRoots(roots)
      if (this.#isClosed) return
      const followed = new Set(this.#catalog.roots)
      const gone = [...this.#followers].filter(([root]) => !followed.has(root))
      for (const [root] of gone) this.#followers.delete(root)
      for (const root of followed) {
        if (this.#followers.has(root)) continue
        const follower = this.#createFollower(root)
        this.#followers.set(root, follower)
        void follower.start()
      }
      await Promise.all(gone.map(([, follower]) => follower.close()))
    })
  }

  /** Resolves after the first index of these roots. Rejects when the skills are closed before. */
  async indexed (roots: readonly Root[]): Promise<void> {
    await Promise.all(roots.map((root) => this.#followers.get(root)?.indexed))
  }

  /** As `indexed`, but waits for slow roots until SLOW_INDEX_MS after the start only. */
  async mostlyIndexed (roots: readonly Root[]): Promise<void> {
    await Promise.race([this.indexed(roots), this.#slowStart])
  }

  get state (): WatcherState {
    const { polling, watcher } = this.#options
    if (polling) return { status: 'watching', mode: 'polling', errors: 0 }
    const states = [...this.#followers.values()].flatMap(({ watcherState }) => watcherState ?? [])
      .filter(({ status }) => status !== 'off')
    if (!watcher || states.length === 0) return { status: 'off', mode: 'events', errors: 0 }
    const worst = ['degraded', 'starting'].flatMap((wanted) => states.find(({ status }) => status === wanted) ?? [])[0]
    const errors = states.reduce((sum, state) => sum + state.errors, 0)
    return { status: 'watching', mode: 'events', ...worst, errors }
  }

  /** Whether changes in a root are noticed by events or by polling. */
  isWatching (root: Root): boolean {
    return this.#options.polling || this.#followers.get(root)?.watcherState?.status === 'watching'
  }

  async close (): Promise<void> {
    this.#isClosed = true
    this.#catalog.off('stale', this.#onStale)
    await Promise.all([...this.#followers.values()].map((follower) => follower.close()))
  }

  readonly #onStale = ({ root, name }: SkillRef): void => { this.#followers.get(root)?.hint(name) }

  #createFollower (root: Root): RootFollower {
    const { polling, watcher, tickMs, log } = this.#options
    return new RootFollower({ root, catalog: this.#catalog, isWatched: watcher && !polling, tickMs, log })
  }
}
