import { close, closeSync, constants, fstat, fstatSync, ftruncate, ftruncateSync, open, openSync, readSync, stat, write, writeSync } from 'node:fs'
import { promisify } from 'node:util'
import { Signal } from '../../core/shared/signal.ts'
import type { LogSink } from '../../log-output.ts'

/** Only owner and group may read the file: who has read what is personal. */
const MODE = 0o640

/** A write that takes longer than this counts as failing, in milliseconds. */
const SLOW_MS = 2_000

/** Appends. O_NONBLOCK makes a pipe without a reader an error (ENXIO). Otherwise opening it would wait. */
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK

const MAX_LINE_BYTES = 65_536

const NEWLINE = 0x0a

const statOf = promisify(stat)
const statOfFd = promisify(fstat)
const openFile = promisify(open)
const closeFile = promisify(close)
const truncateFile = promisify(ftruncate)
const writeTo = promisify(write)

/**
 * A file that lines are appended to. Before each batch the path is compared with the open file: after a rotation the file at the
 * path is opened, or made. All calls run in threads, so that a disk that hangs stops no request.
 */
export class AuditFile implements LogSink {
  /** Emits when writes begin to fail, with the error, and when they succeed again. */
  readonly failed = new Signal<NodeJS.ErrnoException | undefined>()
  readonly #path: string
  #fd: number
  #error: NodeJS.ErrnoException | undefined
  #since: number | undefined
  #isWithThread = false

  /** The last line in the file: the next one has its digest. */
  readonly last: string | undefined

  /** @throws the system's error when the file cannot be opened */
  constructor (path: string) {
    this.#path = path
    this.#fd = openToAppend(path)
    const tail = fstatSync(this.#fd).isFile() ? readTail(path) : ''
    // Ends a line that a crash has cut off.
    if (tail !== '' && !tail.endsWith('\n')) writeSync(this.#fd, '\n')
    this.last = tail.split('\n').findLast((line) => line !== '')
  }

  /** Whether lines are written: the last write succeeded, and none is waiting for its disk. */
  get isWorking (): boolean {
    return this.#error === undefined && (this.#since === undefined || performance.now() - this.#since < SLOW_MS)
  }

  get isWithThread (): boolean {
    return this.#isWithThread
  }

  async write (bytes: Uint8Array): Promise<number> {
    this.#since = performance.now()
    try {
      await this.#follow()
      this.#isWithThread = true
      const { bytesWritten: written } = await writeTo(this.#fd, bytes)
      const taken = written === bytes.length ? written : await this.#endWithLine(bytes, written)
      this.#note(undefined)
      return taken
    } catch (error) {
      this.#note(error as NodeJS.ErrnoException)
      throw error
    } finally {
      this.#since = undefined
      this.#isWithThread = false
    }
  }

  writeSync (bytes: Uint8Array): number {
    const written = writeSync(this.#fd, bytes)
    if (written === bytes.length) return written
    const whole = lengthOfLines(bytes, written)
    const file = fstatSync(this.#fd)
    if (!file.isFile()) return written
    try {
      ftruncateSync(this.#fd, file.size - (written - whole))
    } catch {
      return written
    }
    return takenLines(whole)
  }

  #note (error: NodeJS.ErrnoException | undefined): void {
    const hasChanged = (error === undefined) !== (this.#error === undefined)
    this.#error = error
    if (hasChanged) this.failed.emit(error)
  }

  /**
   * Takes back the part of a line that a full disk has cut off: its rest would be in another file after a rotation.
   * @returns how many bytes of whole lines are written
   */
  async #endWithLine (bytes: Uint8Array, written: number): Promise<number> {
    const whole = lengthOfLines(bytes, written)
    const file = await statOfFd(this.#fd)
    if (!file.isFile()) return written
    try {
      await truncateFile(this.#fd, file.size - (written - whole))
    } catch {
      // A file that can only be appended to.
      return written
    }
    return takenLines(whole)
  }

  async #follow (): Promise<void> {
    const [at, opened] = await Promise.all([statOf(this.#path).catch(() => undefined), statOfFd(this.#fd)])
    if (at?.ino === opened.ino && at.dev === opened.dev) return
    const fd = await openFile(this.#path, APPEND, MODE)
    await closeFile(this.#fd)
    this.#fd = fd
  }
}

function lengthOfLines (bytes: Uint8Array, written: number): number {
  return bytes.lastIndexOf(NEWLINE, written - 1) + 1
}

function takenLines (whole: number): number {
  if (whole === 0) throw Object.assign(new Error('no room for a line'), { code: 'ENOSPC' })
  return whole
}

/** A pipe with a reader, or a device, is opened again: writes to it wait, as those to a disk do. */
function openToAppend (path: string): number {
  const fd = openSync(path, APPEND, MODE)
  if (fstatSync(fd).isFile()) return fd
  try {
    return openSync(path, 'a', MODE)
  } finally {
    closeSync(fd)
  }
}

/** The end of a file, with at least one whole line: no line is this long. Empty where it may be written and not read. */
function readTail (path: string): string {
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch {
    return ''
  }
  try {
    const { size } = fstatSync(fd)
    const bytes = Buffer.alloc(Math.min(size, MAX_LINE_BYTES))
    return bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, size - bytes.length))
  } finally {
    closeSync(fd)
  }
}
