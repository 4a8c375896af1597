import { basename, dirname } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import { isHiddenPath } from '../../core/read/hidden.ts'

/** Reports that something happened to a folder or below it. Hidden folders are not watched. */
export class FolderWatch {
  readonly #path: string
  readonly #onEvent: () => void
  readonly #onError: (error: unknown) => void
  #watcher: FSWatcher | undefined
  #realPath: string | undefined

  /** @param path absolute, as configured */
  constructor (path: string, onEvent: () => void, onError: (error: unknown) => void) {
    this.#path = path
    this.#onEvent = onEvent
    this.#onError = onError
  }

  /** @param realPath where the folder is now; undefined while it is missing */
  follow (realPath: string | undefined): void {
    if (this.#watcher !== undefined && realPath === this.#realPath) return
    void this.#watcher?.close()
    this.#realPath = realPath
    const top = realPath ?? this.#path
    // A watched folder reports the files in it. The one above reports that it comes, goes, or is another link.
    const watched = [dirname(this.#path), this.#path, top]
    this.#watcher = watch(watched, {
      ignored: (path, stats) => stats?.isFile() === true || (!watched.includes(path) &&
        (!path.startsWith(`${top}/`) || isHiddenPath([basename(path)]))),
      followSymlinks: false,
      ignoreInitial: true,
      // The server keeps the process running, and nothing else has to.
      persistent: false
    })
      .on('error', this.#onError)
      .on('all', this.#onEvent)
      .on('raw', this.#onEvent)
  }

  async close (): Promise<void> {
    await this.#watcher?.close()
  }
}
