import { constants, fstatSync, openSync, write, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { DestinationStream } from 'pino'
import { errorCode } from './core/shared/system-errors.ts'
import type { Awaitable } from './core/shared/async.ts'
import { Signal } from './core/shared/signal.ts'

/** Lines wait for each other until they are this many bytes, or the first has waited this many milliseconds. */
const JOIN_BYTES = 262_144
const JOIN_MS = 100

/** No UTF-16 unit takes more bytes in UTF-8. */
const MAX_BYTES_PER_UNIT = 3

/** Beyond this many bytes lines are dropped, until half of them are written. The bound holds some seconds of full load. */
const MAX_BACKLOG_BYTES = 8 * 1024 * 1024

/** Pauses between attempts while a pipe is full, or a disk; doubled from the first to the last, in milliseconds. */
const FIRST_RETRY_MS = 1
const LAST_RETRY_MS = 100

/** A write that takes longer than this counts as failing, in milliseconds. */
const SLOW_MS = 2_000

/** How long the end of the process waits for the reader of the log, in milliseconds. */
const EXIT_WAIT_MS = 500

const STANDARD_OUTPUT = 1

/** Where lines go: standard output, or what stands for it in a test. Both functions write a part at least, or throw. */
export interface LogSink {
  /** Returns the number of bytes written, at once or when a thread has written them. Never stops the event loop. */
  write (bytes: Uint8Array): Awaitable<number>
  writeSync (bytes: Uint8Array): number
  /** Whether a thread has the bytes of a write that has not returned; absent, it has. */
  readonly isWithThread?: boolean
}

/**
 * Standard output for pino. A reader that does not read, or a full disk, costs lines of the log and nothing else. What does
 * not fit into the backlog is dropped and counted.
 *
 * The destination that pino has writes in a thread, and has no such bound by time: a write that hangs keeps the process from
 * ending. Its joining of lines (`minLength`) measures all that waits with each line: 15 to 20 % of the CPU of a tool call.
 */
export class LogOutput implements DestinationStream {
  /** The number of lines dropped, when lines are taken again. A line written by a listener marks the gap in the log. */
  readonly dropped = new Signal<number>()
  readonly #sink: LogSink
  /**
   * Lines that wait are the bytes between start and end. In a joined string, one line that is not Latin-1 would
   * make all lines two bytes a character. That took 10 % of the CPU of a tool call.
   */
  #chunk = Buffer.allocUnsafeSlow(JOIN_BYTES)
  #start = 0
  #end = 0
  #timer: NodeJS.Timeout | undefined
  /** Joined lines, the oldest first, of which the start may be written. */
  readonly #backlog: Uint8Array[] = []
  #backlogBytes = 0
  #droppedLines = 0
  #lost = 0
  #isDraining = false
  /** When the write was begun that has not succeeded yet. */
  #writingSince: number | undefined
  #isWithThread = false

  constructor (sink: LogSink = standardOutput()) {
    this.#sink = sink
  }

  /** Lines dropped so far. */
  get lost (): number {
    return this.#lost
  }

  /** Whether lines are written: there is room for as many again as wait, and none of them waits for long. */
  get keepsUp (): boolean {
    const isSlow = this.#writingSince !== undefined && performance.now() - this.#writingSince > SLOW_MS
    return !isSlow && this.#droppedLines === 0 && this.#backlogBytes <= MAX_BACKLOG_BYTES / 2
  }

  write (line: string): void {
    if (this.#droppedLines > 0 || this.#backlogBytes > MAX_BACKLOG_BYTES) {
      this.#droppedLines++
      this.#lost++
      return
    }
    const longest = line.length * MAX_BYTES_PER_UNIT
    if (longest > this.#chunk.length - this.#end) {
      this.flush()
      this.#chunk = Buffer.allocUnsafeSlow(Math.max(longest, JOIN_BYTES))
      this.#start = this.#end = 0
    }
    this.#end += this.#chunk.write(line, this.#end)
    this.#timer ??= setTimeout(() => { this.flush() }, JOIN_MS).unref()
  }

  /** Writes what waits at once: somebody looks for these lines now. */
  flush (): void {
    this.#join()
    if (!this.#isDraining) void this.#drain()
  }

  /** Writes what waits, at the end of the process: as much as the reader takes within half a second. */
  flushSync (): void {
    this.#join()
    // The end of the process waits for the threads: what a thread has is not written a second time.
    if (this.#isWithThread && this.#sink.isWithThread !== false) this.#backlog.shift()
    this.#isWithThread = false
    const end = performance.now() + EXIT_WAIT_MS
    for (let [bytes] = this.#backlog; bytes !== undefined; [bytes] = this.#backlog) {
      try {
        this.#remove(bytes, this.#sink.writeSync(bytes))
        this.#join()
      } catch (error) {
        if (!isFull(error) || performance.now() > end) return
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FIRST_RETRY_MS)
      }
    }
  }

  #join (): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#start === this.#end) return
    const bytes = this.#chunk.subarray(this.#start, this.#end)
    this.#start = this.#end
    this.#backlog.push(bytes)
    this.#backlogBytes += bytes.length
  }

  async #drain (): Promise<void> {
    this.#isDraining = true
    let pause = FIRST_RETRY_MS
    for (let [bytes] = this.#backlog; bytes !== undefined; [bytes] = this.#backlog) {
      this.#writingSince ??= performance.now()
      try {
        const written = this.#sink.write(bytes)
        const length = typeof written === 'number' ? written : await this.#whenWritten(written)
        this.#writingSince = undefined
        this.#remove(bytes, length)
        pause = FIRST_RETRY_MS
      } catch {
        // Whatever the reason: a pipe is read again, a disk has space again, or nobody misses the lines.
        await sleep(pause, undefined, { ref: false })
        pause = Math.min(pause * 2, LAST_RETRY_MS)
      }
    }
    this.#isDraining = false
  }

  async #whenWritten (written: PromiseLike<number>): Promise<number> {
    this.#isWithThread = true
    try {
      return await written
    } finally {
      this.#isWithThread = false
    }
  }

  #remove (first: Uint8Array, written: number): void {
    if (written < first.length) this.#backlog[0] = first.subarray(written)
    else this.#backlog.shift()
    this.#backlogBytes -= written
    if (this.#droppedLines === 0 || this.#backlogBytes > MAX_BACKLOG_BYTES / 2) return
    const count = this.#droppedLines
    this.#droppedLines = 0
    this.dropped.emit(count)
  }
}

/**
 * Standard output with writes that never wait. What cannot be put into that mode is written in a thread: files, whose disk may
 * hang, and terminals where there is no /proc.
 */
function standardOutput (): LogSink {
  const fd = openNonBlocking()
  if (fd === undefined) {
    const writeLater = promisify(write)
    return {
      write: async (bytes) => (await writeLater(STANDARD_OUTPUT, bytes)).bytesWritten,
      writeSync: (bytes) => writeSync(STANDARD_OUTPUT, bytes)
    }
  }
  const writeNow = (bytes: Uint8Array): number => writeSync(fd, bytes)
  return { write: writeNow, writeSync: writeNow }
}

function openNonBlocking (): number | undefined {
  const stats = fstatSync(STANDARD_OUTPUT)
  if (stats.isFile()) return undefined
  try {
    // Opened again, so that other processes with the same pipe or terminal keep their mode.
    return openSync(`/proc/self/fd/${STANDARD_OUTPUT}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch {
    // A socket cannot be opened again, and another user's pipe may not. Node puts both into this mode for its own stream.
    return stats.isSocket() || stats.isFIFO() ? process.stdout.fd : undefined
  }
}

function isFull (error: unknown): boolean {
  return errorCode(error) === 'EAGAIN'
}
