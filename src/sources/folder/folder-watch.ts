import { basename, dirname } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import { errorCode } from '../../core/shared/system-errors.ts'

/** Quiet time after an event before folders are searched, and the longest wait in a storm, in milliseconds. */
const DEBOUNCE_MS = 50
const MAX_DEBOUNCE_MS = 150

/** Pause between two comparisons that no event asks for, in milliseconds: with polling, and otherwise. */
const POLL_MS = 1_000
const TICK_MS = 20_000

/** Folders without skills that change often, or hold many files. */
const UNWATCHED = new Set(['.git', '.hg', '.svn', 'node_modules', '__pycache__'])

interface FolderWatchOptions {
  /** Absolute, as configured. */
  readonly path: string
  readonly polling: boolean
  readonly onChange: () => void
  /** Called once for the first error; the comparisons at intervals go on. */
  readonly onError: (code: string) => void
}

/** Calls `onChange` after something happened below a folder, and at intervals. */
export class FolderWatch {
  readonly #options: FolderWatchOptions
  readonly #tick: NodeJS.Timeout
  #watcher: FSWatcher | undefined
  #watched = ''
  #timer: NodeJS.Timeout | undefined
  #firstEventAt = Infinity
  #hasFailed = false

  constructor (options: FolderWatchOptions) {
    this.#options = options
    this.#tick = setInterval(options.onChange, options.polling ? POLL_MS : TICK_MS).unref()
  }

  /** @param realPath where the folder is now; undefined while it is missing */
  follow (realPath: string | undefined): void {
    const { path, polling } = this.#options
    const now = `${realPath ?? ''}`
    if (polling || (this.#watcher !== undefined && now === this.#watched)) return
    void this.#watcher?.close()
    this.#watched = now
    const parent = dirname(path)
    const isPart = (each: string): boolean =>
      each === parent || each === path || each === realPath || each.startsWith(`${realPath ?? path}/`)
    // A watched folder reports the files in it. The one above reports that it comes, goes, or is another link.
    this.#watcher = watch([parent, realPath ?? path], {
      ignored: (each, stats) => stats?.isFile() === true || !isPart(each) || UNWATCHED.has(basename(each)),
      followSymlinks: false,
      ignoreInitial: true
    })
    this.#watcher
      .on('error', (error) => {
        if (!this.#hasFailed) this.#options.onError(errorCode(error))
        this.#hasFailed = true
      })
      .on('all', () => { this.#schedule() })
      .on('raw', () => { this.#schedule() })
  }

  async close (): Promise<void> {
    clearInterval(this.#tick)
    clearTimeout(this.#timer)
    await this.#watcher?.close()
  }

  #schedule (): void {
    const now = performance.now()
    this.#firstEventAt = Math.min(this.#firstEventAt, now)
    clearTimeout(this.#timer)
    const wait = Math.max(0, Math.min(DEBOUNCE_MS, this.#firstEventAt + MAX_DEBOUNCE_MS - now))
    this.#timer = setTimeout(() => {
      this.#firstEventAt = Infinity
      this.#options.onChange()
    }, wait).unref()
  }
}
