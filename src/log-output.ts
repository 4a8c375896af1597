import { type DestinationStream, pino } from 'pino'

/** Lines are written together: up to this many bytes, or this many milliseconds, wait for each other. */
const FLUSH_BYTES = 8_192
const FLUSH_MS = 100

/** Room for what waits, and for the line that makes it enough. */
const ROOM = FLUSH_BYTES + 4_096

/** In UTF-8 a UTF-16 unit takes at most so many bytes. */
const MAX_UNIT_BYTES = 3

/** Where whole pieces of the log go. */
export interface LogSink {
  write (bytes: Buffer): void
  /** Returns when everything is written. */
  flushSync (): void
}

/** Standard output, written behind the back of the requests. */
function standardOutput (): LogSink {
  // Of strings it would count the bytes, twice. Its types know nothing but strings.
  return pino.destination({ sync: false, contentMode: 'buffer' }) as unknown as LogSink
}

/**
 * The lines of the log on their way out. They go to the sink together: sonic-boom measures all that waits anew with each
 * write, which for short lines is more work than making them. Each becomes bytes by itself: one with an ellipsis in it
 * would make two-byte text of all that it is joined to.
 */
export class LogOutput implements DestinationStream {
  readonly #sink: LogSink
  #bytes = Buffer.allocUnsafe(ROOM)
  #length = 0
  #timer: NodeJS.Timeout | undefined

  constructor (sink: LogSink = standardOutput()) {
    this.#sink = sink
  }

  write (line: string): void {
    const most = line.length * MAX_UNIT_BYTES
    if (this.#bytes.length - this.#length < most) this.#grow(most)
    this.#length += this.#bytes.write(line, this.#length)
    if (this.#length >= FLUSH_BYTES) this.#flush()
    else this.#timer ??= setTimeout(() => { this.#flush() }, FLUSH_MS)
  }

  /** Writes what waits, and returns when it is written. */
  flushSync (): void {
    this.#flush()
    this.#sink.flushSync()
  }

  #flush (): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#length === 0) return
    this.#sink.write(this.#bytes.subarray(0, this.#length))
    // The sink keeps what it was given until it is written.
    this.#bytes = Buffer.allocUnsafe(ROOM)
    this.#length = 0
  }

  #grow (bytes: number): void {
    const larger = Buffer.allocUnsafe(this.#length + bytes)
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}
