import { type BigIntStats, constants } from 'node:fs'
import { yieldIfNeeded } from '../shared/async.ts'
import { closeQuietly, type Disk } from './disk.ts'
import { Checksummer, type FileChecksums } from './file-content.ts'
import { type FileStamp, isSettled, stampOf } from './file-stamp.ts'
import { asRefused, changed } from './refused.ts'

const HASHED_CHUNK_BYTES = 1_048_576
const STREAM_CHUNK_BYTES = 65_536

/** A FIFO must not block, and a terminal must not become that of this process. */
export const READ_ONLY = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY

/**
 * A verified open file of a skill. It has one descriptor, which is opened for reading at the first read. The caller
 * closes it. All reads throw RefusedErrors.
 */
export class OpenFile {
  readonly size: bigint
  readonly stamp: FileStamp
  /** Whether every later edit is sure to change the stamp. */
  readonly isSettled: boolean
  readonly #disk: Disk
  #descriptor: number
  #isReadable: boolean

  /** @param isReadable false for a descriptor that names a file and cannot read it (`O_PATH`) */
  constructor (disk: Disk, descriptor: number, stats: BigIntStats, isReadable: boolean) {
    this.size = stats.size
    this.stamp = stampOf(stats)
    this.isSettled = isSettled(this.stamp, Date.now())
    this.#disk = disk
    this.#descriptor = descriptor
    this.#isReadable = isReadable
  }

  /** Reads the whole file, which must be as it was when it was opened. */
  async readAll (): Promise<Buffer> {
    await this.openForReading()
    const bytes = Buffer.allocUnsafeSlow(Number(this.size))
    for (let length = 0; length < bytes.length;) length += await this.#read(bytes.subarray(length), length)
    if (!await this.#isUnchanged()) throw changed('the file changed while it was being read')
    return bytes
  }

  /** Reads as many bytes as a stream has in one piece. */
  async readHead (): Promise<Buffer> {
    await this.openForReading()
    const bytes = Buffer.allocUnsafe(Math.min(STREAM_CHUNK_BYTES, Number(this.size)))
    return bytes.subarray(0, await this.#read(bytes, 0))
  }

  /** Reads the file for its checksums. A file that changes meanwhile is given up at once. */
  async checksums (signal: AbortSignal): Promise<FileChecksums> {
    return await this.#hash(async () => {
      signal.throwIfAborted()
      if (!await this.#isUnchanged()) throw changed('the file changed while it was being read')
    })
  }

  /**
   * Reads the bytes from `start` to `end`, both included. A file that is replaced, removed or appended to meanwhile
   * must still begin with the bytes that it had, or the last piece is not sent.
   * @param digest of the whole file when it was opened
   * @param onChecksums called with checksums of all bytes when they were sent
   */
  async * chunks (
    start: number, end: number, digest?: string, onChecksums?: (checksums: FileChecksums) => void
  ): AsyncGenerator<Buffer> {
    await this.openForReading()
    const checksummer = onChecksums && new Checksummer()
    for (let position = start; position <= end;) {
      const buffer = Buffer.allocUnsafe(Math.min(STREAM_CHUNK_BYTES, end - position + 1))
      const bytes = buffer.subarray(0, await this.#read(buffer, position))
      position += bytes.length
      checksummer?.update(bytes)
      if (position > end) {
        const sent = checksummer?.end()
        const expected = digest ?? sent?.digest
        const isUnchanged = await this.#isUnchanged()
        const isSame = isUnchanged || (expected !== undefined && (await this.#hash()).digest === expected)
        if (!isSame) throw changed('the file changed while it was being sent')
        if (isUnchanged && sent !== undefined) onChecksums?.(sent)
      }
      yield bytes
    }
  }

  close (): Promise<void> {
    return closeQuietly(this.#disk, this.#descriptor)
  }

  /** Opens the checked file for reading through its descriptor, and closes that. */
  async openForReading (): Promise<void> {
    if (this.#isReadable) return
    const named = this.#descriptor
    try {
      this.#descriptor = await this.#disk.open(`/proc/self/fd/${named}`, READ_ONLY)
    } catch (error) {
      throw asRefused(error)
    }
    this.#isReadable = true
    await closeQuietly(this.#disk, named)
  }

  async #hash (onPiece?: () => Promise<void>): Promise<FileChecksums> {
    await this.openForReading()
    const size = Number(this.size)
    const buffer = Buffer.allocUnsafeSlow(Math.min(HASHED_CHUNK_BYTES, size))
    const checksummer = new Checksummer()
    for (let position = 0; position < size;) {
      const bytes = buffer.subarray(0, await this.#read(buffer.subarray(0, size - position), position))
      checksummer.update(bytes)
      position += bytes.length
      await yieldIfNeeded()
      await onPiece?.()
    }
    return checksummer.end()
  }

  async #read (buffer: Buffer, position: number): Promise<number> {
    try {
      const count = await this.#disk.read(this.#descriptor, buffer, 0, buffer.length, position)
      if (count === 0) throw changed('the file became shorter while it was being read')
      return count
    } catch (error) {
      throw asRefused(error)
    }
  }

  async #isUnchanged (): Promise<boolean> {
    try {
      return stampOf(await this.#disk.fstat(this.#descriptor)) === this.stamp
    } catch (error) {
      throw asRefused(error)
    }
  }
}
