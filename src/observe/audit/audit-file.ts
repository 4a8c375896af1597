import { close, fstat, open, openSync, stat, write, writeSync } from 'node:fs'
import { promisify } from 'node:util'
import type { LogSink } from '../../log-output.ts'

/** Of a file that only its owner and group read: who read what is personal. */
const MODE = 0o640

/** A write that takes longer than this counts as failing, in milliseconds. */
const SLOW_MS = 2_000

const statOf = promisify(stat)
const statOfFd = promisify(fstat)
const openFile = promisify(open)
const closeFile = promisify(close)

/**
 * A file that lines are appended to. Before each batch the path is compared with the open file: after a rotation the file at the
 * path is opened, or made. All calls run in threads, so that a disk that hangs stops no request.
 */
export class AuditFile implements LogSink {
  readonly #path: string
  #fd: number
  #hasFailed = false
  #since: number | undefined

  /** @throws the system's error when the file cannot be opened */
  constructor (path: string) {
    this.#path = path
    this.#fd = openSync(path, 'a', MODE)
  }

  /** Whether lines are written: the last write succeeded, and none is waiting for its disk. */
  get isWorking (): boolean {
    return !this.#hasFailed && (this.#since === undefined || performance.now() - this.#since < SLOW_MS)
  }

  async write (bytes: Uint8Array): Promise<number> {
    this.#since = performance.now()
    try {
      await this.#follow()
      const written = await new Promise<number>((resolve, reject) => {
        write(this.#fd, bytes, (error, count) => { if (error) reject(error); else resolve(count) })
      })
      this.#hasFailed = false
      return written
    } catch (error) {
      this.#hasFailed = true
      throw error
    } finally {
      this.#since = undefined
    }
  }

  writeSync (bytes: Uint8Array): number {
    return writeSync(this.#fd, bytes)
  }

  async #follow (): Promise<void> {
    const [at, opened] = await Promise.all([statOf(this.#path).catch(() => undefined), statOfFd(this.#fd)])
    if (at?.ino === opened.ino && at.dev === opened.dev) return
    const fd = await openFile(this.#path, 'a', MODE)
    await closeFile(this.#fd)
    this.#fd = fd
  }
}
