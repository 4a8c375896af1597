import { errorCode } from '../disk/disk.ts'
import type { CreateFsWatcher } from './folder-watcher.ts'
import { RootWatch, type RootView } from './root-watch.ts'

export interface WatcherState {
  /** `degraded`: some changes give no hint. `off`: closed, or never opened. */
  readonly status: 'starting' | 'watching' | 'degraded' | 'off'
  readonly mode: 'events' | 'polling'
  /** Errors since the watcher last worked; 0 while it does. */
  readonly errors: number
  /** Code of the latest error, such as `ENOSPC`; never a path. */
  readonly lastError?: string
}

export interface WatcherOptions {
  /** Absolute paths, as configured; they need not exist. */
  readonly roots: readonly string[]
  /** Look again and again instead of waiting for events. */
  readonly polling: boolean
  /**
   * Look again: at the entry `name` of `root`, skill or not, or, without a name, at the root itself. Comes
   * undebounced, any number of times; must not throw.
   */
  readonly onHint: (root: string, name: string | undefined) => void
  /**
   * Called when the status changes: at `watching`, compare everything once, since what changed before gave no hint.
   * And once for each kind of error until it works again. Must not throw.
   */
  readonly onState: (state: WatcherState) => void
  /** Makes one of chokidar's watchers: the seam for tests. */
  readonly createFsWatcher?: CreateFsWatcher
}

export interface Watcher {
  readonly state: WatcherState
  /** What there is to watch in a root from now on. */
  follow (root: string, view: RootView): void
  /**
   * What there is to watch inside of the skill with this folder, all by their real paths, from now on and until
   * `leaveInside`. A restart forgets it, and its `watching` asks for it again.
   */
  followInside (root: string, skillFolder: string, inside: readonly string[]): void
  leaveInside (): void
  /** Sets up everything anew: the way out of `degraded`. */
  restart (): Promise<void>
  /** Ends everything; nothing is called afterwards. */
  close (): Promise<void>
}

export type WatcherFactory = (options: WatcherOptions) => Watcher

/** Not errors of a watcher: a folder that is gone, or is not ours to read, is the business of whoever reads it. */
const UNWATCHABLE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES', 'EPERM'])

/**
 * Watches the roots and says "look again". It reads no skill and promises nothing: chokidar misses changes of
 * several kinds (a root that is made again, files in folders just made), and what its hints leave out is found by the
 * check on each request and by the regular comparison of index and disk.
 */
export function createWatcher (options: WatcherOptions): Watcher {
  const { roots, polling, onHint, onState, createFsWatcher } = options
  const mode = polling ? 'polling' : 'events'
  const kinds = new Set<string>()
  const views = new Map<string, RootView>()
  const watches = new Map<string, RootWatch>()
  let state: WatcherState = { status: 'starting', mode, errors: 0 }

  for (const root of roots) open(root)

  return {
    get state () { return state },

    follow (root, view) {
      views.set(root, view)
      watches.get(root)?.follow(view)
    },

    followInside (root, skillFolder, inside) {
      watches.get(root)?.followInside(skillFolder, inside)
    },

    leaveInside () {
      for (const watch of watches.values()) void watch.leaveInside()
    },

    async restart () {
      await closeAll()
      if (state.status === 'off') return
      state = { status: 'starting', mode, errors: 0 }
      for (const root of roots) open(root)
    },

    async close () {
      if (state.status === 'off') return
      setState({ ...state, status: 'off' })
      await closeAll()
    }
  }

  function open (root: string): void {
    const watch = new RootWatch({
      root,
      polling,
      ...createFsWatcher && { createFsWatcher },
      onHint: (name) => { if (state.status !== 'off') onHint(root, name) },
      onError: fail,
      onReady: settle
    })
    watches.set(root, watch)
    const view = views.get(root)
    if (view !== undefined) watch.follow(view)
  }

  async function closeAll (): Promise<void> {
    await Promise.all([...watches.values()].map((watch) => watch.close()))
  }

  function settle (): void {
    if (state.status !== 'starting' || ![...watches.values()].every(({ isReady }) => isReady)) return
    kinds.clear()
    setState({ status: 'watching', mode, errors: 0 })
  }

  /** Thousands of errors are one piece of news: each kind is told once until the watcher works again. */
  function fail (error: unknown): void {
    const code = errorCode(error) || 'UNKNOWN'
    if (state.status === 'off' || UNWATCHABLE.has(code)) return
    state = { status: 'degraded', mode, errors: state.errors + 1, lastError: code }
    if (kinds.has(code)) return
    kinds.add(code)
    onState(state)
  }

  function setState (next: WatcherState): void {
    state = next
    onState(next)
  }
}
