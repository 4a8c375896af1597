import { errorCode } from '../shared/system-errors.ts'
import { Signal } from '../shared/signal.ts'
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

/** What lets the kernel watch again: the text of `ENOSPC` speaks of a full disk. */
const REMEDIES: ReadonlyMap<string | undefined, string> = new Map([
  ['ENOSPC', 'raise fs.inotify.max_user_watches'],
  ['EMFILE', 'raise fs.inotify.max_user_instances or the limit of open files']
])

/** @param code of an error of a watcher */
export function watcherRemedy (code: string | undefined): string | undefined {
  return REMEDIES.get(code)
}

/** What may have changed since the last refresh. */
export interface RefreshHints {
  /** Anything may have changed; `names` is of no interest. */
  readonly everything: boolean
  /** Of skills, or of entries of the root that are none. Without any, the root itself may have changed. */
  readonly names: ReadonlySet<string>
}

export interface Watcher {
  readonly state: WatcherState
  /** Names of skills, or of other entries of the root; '' for the root itself. Not debounced. A hint proves nothing, and its absence neither. */
  readonly hints: Signal<string>
  /** Events were lost: anything may have changed. */
  readonly missed: Signal<void>
  /** Each new status or mode, and each new kind of error. At `watching`, changes from before have given no hint. */
  readonly states: Signal<WatcherState>
  /** Replaces what is watched in the root. */
  follow (targets: WatchTargets): void
  /** Watches these folders inside of a skill too, all by real path, until `leaveInside`. */
  followInside (skillFolder: string, folders: readonly string[]): void
  leaveInside (): void
  /** Sets up everything anew: the only way out of `degraded`. */
  restart (): void
  close (): void
}

export interface WatcherOptions extends RootWatchOptions {
  /** Absolute path, as configured; it need not exist. */
  readonly root: string
}

export type WatcherFactory = (options: WatcherOptions) => Watcher

/** Not errors of the watcher: whoever reads a missing or unreadable folder reports it. */
const UNWATCHABLE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES', 'EPERM'])

/** Watches a root and gives hints for the refresher. It reads no skill. */
export function createWatcher ({ root, ...options }: WatcherOptions): Watcher {
  const hints = new Signal<string>()
  const missed = new Signal<void>()
  const states = new Signal<WatcherState>()
  const reportedErrors = new Set<string>()
  let targets: WatchTargets | undefined
  let status: WatcherState['status'] = 'starting'
  let errors = 0
  let lastError: string | undefined
  let reportedMode: WatcherState['mode'] | undefined
  let watch = open()

  return {
    hints,
    missed,
    states,
    get state () { return state() },

    follow (wanted) {
      targets = wanted
      watch.follow(wanted)
    },

    followInside (skillFolder, folders) {
      watch.followInside(skillFolder, folders)
    },

    leaveInside () {
      watch.leaveInside()
    },

    restart () {
      if (status === 'off') return
      const { inside } = watch
      watch.close()
      status = 'starting'
      watch = open()
      for (const [skillFolder, folders] of inside) watch.followInside(skillFolder, folders)
    },

    close () {
      if (status === 'off') return
      watch.close()
      status = 'off'
      states.emit(state())
    }
  }

  function state (): WatcherState {
    return { status, mode: mode(), errors, ...lastError !== undefined && { lastError } }
  }

  function mode (): WatcherState['mode'] {
    return watch.isRemote ? 'polling' : 'events'
  }

  function open (): RootWatch {
    const opened = new RootWatch(root, { onHint: (name = '') => { hints.emit(name) }, onMissed: () => { missed.emit() }, onError, onReady }, options)
    if (targets !== undefined) opened.follow(targets)
    return opened
  }

  function onReady (): void {
    const isStarted = status === 'starting'
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
