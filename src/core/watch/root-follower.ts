import pLimit from 'p-limit'
import type { Catalog } from '../catalog.ts'
import type { Root } from '../roots/root.ts'
import type { CoreLog } from '../shared/log.ts'
import { RootWatcher, type WatcherState } from './watcher.ts'

/** Time after an event in which further ones are collected before a comparison, in milliseconds. */
const COLLECT_MS = 50

interface FollowerOptions {
  readonly root: Root
  readonly catalog: Catalog
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
    const { root, isWatched, log } = this.#options
    if (!root.isIndexed) await this.#compare()
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
    this.#hintTimer ??= setTimeout(() => { void this.#compare(() => this.#takeHints()) }, COLLECT_MS).unref()
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

  #takeHints (): ReadonlySet<string> | undefined {
    const hints = this.#hints
    this.#hints = new Set()
    this.#hintTimer = undefined
    return hints.has(undefined) ? undefined : new Set([...hints].filter((name) => name !== undefined))
  }

  #scheduleTick (): void {
    this.#tickTimer = setTimeout(() => { void this.#tick() }, this.#options.tickMs).unref()
  }

  async #tick (): Promise<void> {
    await this.#compare()
    if (this.#isClosed) return
    this.#watcher?.restartIfFailed()
    this.#scheduleTick()
  }

  /**
   * Compares skills with the disk, one comparison at a time. Logs errors instead of throwing them.
   * @param takeNames returns the names to compare, when it is the turn; undefined stands for all
   */
  async #compare (takeNames = (): ReadonlySet<string> | undefined => undefined): Promise<void> {
    await this.#limit(async () => {
      if (this.#isClosed) return
      const { root, catalog, log } = this.#options
      try {
        await catalog.refresh(root, takeNames())
      } catch (err) {
        log.warn({ err, root: root.path }, 'rescan of a skills folder failed; serving its last good index')
      }
    })
  }
}
