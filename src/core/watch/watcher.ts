import { errorCode } from '../disk/disk.ts'
import { Signal } from '../ground/signal.ts'
import { RootWatch, type RootWatchOptions, type WatchTargets } from './root-watch.ts'

export interface WatcherState {
  /** `degraded`: some changes give no hint. `off`: closed, or never opened. */
  readonly status: 'starting' | 'watching' | 'degraded' | 'off'
  /** `polling`: changes are found by comparing index and disk at short intervals; with network disks, in these alone. */
  readonly mode: 'events' | 'polling'
  /** Errors since the watcher last worked; 0 while it does. */
  readonly errors: number
  /** Code of the latest error, such as `ENOSPC`; never a path. */
  readonly lastError?: string
}

/** What may have changed: a skill, or an entry of the root that is none; without `name` the root itself; without `root` anything. */
export interface WatchHint {
  readonly root?: string
  readonly name?: string
}

/** What may have changed since the last refresh. */
export interface RefreshHints {
  /** Anything may have changed; `byRoot` is of no interest. */
  readonly everything: boolean
  /** Names of skills by the path of their root, '' for any root. No name: the root itself. */
  readonly byRoot: ReadonlyMap<string, ReadonlySet<string>>
}

export interface Watcher {
  readonly state: WatcherState
  /** Not debounced. A hint proves nothing, and its absence neither. */
  readonly hints: Signal<WatchHint>
  /** Each new status or mode, and each new kind of error. At `watching`, changes from before have given no hint. */
  readonly states: Signal<WatcherState>
  /** Replaces what is watched in a root. */
  follow (root: string, targets: WatchTargets): void
  /** Watches these folders inside of a skill too, all by real path, until `leaveInside` or the next restart. */
  followInside (root: string, skillFolder: string, folders: readonly string[]): void
  leaveInside (): void
  /** Sets up everything anew: the only way out of `degraded`. */
  restart (): void
  close (): void
}

export interface WatcherOptions extends RootWatchOptions {
  /** Absolute paths, as configured; they need not exist. */
  readonly roots: readonly string[]
}

export type WatcherFactory = (options: WatcherOptions) => Watcher

/** No errors of the watcher: a folder that is missing or may not be read is the business of its reader. */
const UNWATCHABLE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES', 'EPERM'])

/** Watches roots and gives hints for the refresher. It reads no skill. */
export function createWatcher ({ roots, ...options }: WatcherOptions): Watcher {
  const hints = new Signal<WatchHint>()
  const states = new Signal<WatcherState>()
  const reportedErrors = new Set<string>()
  const targetsOf = new Map<string, WatchTargets>()
  const watches = new Map<string, RootWatch>()
  let status: WatcherState['status'] = 'starting'
  let errors = 0
  let lastError: string | undefined
  let reportedMode: WatcherState['mode'] | undefined

  for (const root of roots) open(root)

  return {
    hints,
    states,
    get state () { return state() },

    follow (root, targets) {
      targetsOf.set(root, targets)
      watches.get(root)?.follow(targets)
    },

    followInside (root, skillFolder, folders) {
      watches.get(root)?.followInside(skillFolder, folders)
    },

    leaveInside () {
      for (const watch of watches.values()) watch.leaveInside()
    },

    restart () {
      if (status === 'off') return
      closeAll()
      status = 'starting'
      for (const root of roots) open(root)
    },

    close () {
      if (status === 'off') return
      closeAll()
      status = 'off'
      states.emit(state())
    }
  }

  function state (): WatcherState {
    return { status, mode: mode(), errors, ...lastError !== undefined && { lastError } }
  }

  function mode (): WatcherState['mode'] {
    return [...watches.values()].some(({ isRemote }) => isRemote) ? 'polling' : 'events'
  }

  function open (root: string): void {
    const watch = new RootWatch(root, {
      onHint: (name) => { hints.emit({ root, ...name !== undefined && { name } }) },
      onMissed: () => { hints.emit({}) },
      onError,
      onReady
    }, options)
    watches.set(root, watch)
    const targets = targetsOf.get(root)
    if (targets !== undefined) watch.follow(targets)
  }

  function closeAll (): void {
    for (const watch of watches.values()) watch.close()
  }

  function onReady (): void {
    const isStarted = status === 'starting' && [...watches.values()].every(({ isReady }) => isReady)
    if (isStarted) {
      status = 'watching'
      errors = 0
      lastError = undefined
      reportedErrors.clear()
    }
    if (status !== 'watching' || (!isStarted && reportedMode === mode())) return
    reportedMode = mode()
    states.emit(state())
  }

  /** Thousands of errors can come at once: each kind is reported once until the watcher works again. */
  function onError (error: unknown): void {
    const code = errorCode(error) || 'UNKNOWN'
    if (UNWATCHABLE.has(code)) return
    status = 'degraded'
    errors++
    lastError = code
    if (reportedErrors.has(code)) return
    reportedErrors.add(code)
    states.emit(state())
  }
}
