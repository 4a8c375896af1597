import pLimit from 'p-limit'
import type { Root } from '../roots/root.ts'
import type { CoreLog } from '../shared/log.ts'
import { RootWatcher, type WatcherState } from './watcher.ts'

/** Time after an event in which further ones are collected before a comparison, in milliseconds. */
const COLLECT_MS = 50

interface FollowerOptions {
  readonly root: Root
  /** Compares skills of the root with the disk. Default: all skills. */
  readonly compare: (names?: ReadonlySet<string>) => Promise<void>
  readonly isWatched: boolean
  readonly tickMs: number
  readonly log: CoreLog
}

/** Compares one root with the disk: for its first index, when its watcher reports something, and at intervals. */
export class RootFollower {
  readonly #options: FollowerOptions
  readonly #limit = pLimit(1)
  /** Names of skills that may have changed; undefined stands for any. */
  #hints = new Set<string | undefined>()
  #hintTimer: NodeJS.Timeout | undefined
  #tickTimer: NodeJS.Timeout | undefined
  #watcher: RootWatcher | undefined
  #isClosed = false
  #settle = { resolve: (): void => {}, reject: (_error: Error): void => {} }
  /** Resolves after the first index: from then on, every change of any file is found. */
  readonly indexed = new Promise<void>((resolve, reject) => { this.#settle = { resolve, reject } })

  constructor (options: FollowerOptions) {
    this.#options = options
    // No unhandled rejection if nobody awaits it.
    this.indexed.catch(() => {})
  }

  /** Indexes the root if that has not been done, and begins to follow it. */
  async start (): Promise<void> {
    const { root, compare, isWatched, log } = this.#options
    if (!root.isIndexed) await this.#run(() => compare())
    if (this.#isClosed) return
    root.isIndexed = true
    this.#settle.resolve()
    root.source?.on('changed', this.#onSourceChanged)
    this.#scheduleTick()
    if (!isWatched) return
    this.#watcher = new RootWatcher(root, log, (name) => {
      root.source?.hint?.()
      this.hint(name)
    })
  }

  get watcherState (): WatcherState | undefined {
    return this.#watcher?.state
  }

  /** Schedules the comparison of one skill, or of all. */
  hint (name?: string): void {
    if (this.#isClosed) return
    this.#hints.add(name)
    this.#hintTimer ??= setTimeout(() => { void this.#run(() => this.#follow()) }, COLLECT_MS).unref()
  }

  async listed (): Promise<void> {
    await this.#watcher?.check()
  }

  /** Stops following. Resolves when no comparison is running. */
  async close (): Promise<void> {
    this.#isClosed = true
    this.#settle.reject(new Error('SkillManager was closed before the first index'))
    clearTimeout(this.#hintTimer)
    clearTimeout(this.#tickTimer)
    this.#options.root.source?.off('changed', this.#onSourceChanged)
    await this.#watcher?.close()
    await this.#limit(() => {})
  }

  readonly #onSourceChanged = (): void => { this.hint() }

  async #follow (): Promise<void> {
    const hints = this.#hints
    this.#hints = new Set()
    this.#hintTimer = undefined
    const names = [...hints].filter((name) => name !== undefined)
    await this.#options.compare(hints.has(undefined) ? undefined : new Set(names))
  }

  #scheduleTick (): void {
    this.#tickTimer = setTimeout(() => { void this.#tick() }, this.#options.tickMs).unref()
  }

  async #tick (): Promise<void> {
    await this.#run(() => this.#options.compare())
    if (this.#isClosed) return
    this.#watcher?.restartIfFailed()
    this.#scheduleTick()
  }

  /** Runs one job at a time. Logs errors instead of throwing them. */
  async #run (job: () => Promise<void>): Promise<void> {
    await this.#limit(async () => {
      if (this.#isClosed) return
      try {
        await job()
      } catch (err) {
        const { log, root: { path: root } } = this.#options
        log.warn({ err, root }, 'rescan of a skills folder failed; serving its last good index')
      }
    })
  }
}
