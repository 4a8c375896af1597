import type { BigIntStats } from 'node:fs'
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { yieldIfNeeded } from '../shared/async.ts'
import type { FileStamp } from '../shared/skill.ts'
import { closeQuietly, type Disk } from './disk.ts'
import { fileKind, type FileKind } from './file-kind.ts'
import { asRefused, changed } from './refused.ts'
import { isSameState, stampOf } from './file-stamp.ts'

const HASHED_CHUNK_BYTES = 1_048_576
const STREAM_CHUNK_BYTES = 65_536

/** What one pass over all bytes of a file gives. */
export interface FileChecksums {
  readonly size: bigint
  /** `sha256:<hex>`. */
  readonly digest: string
  /** For ZIP archives. */
  readonly crc32: number
  readonly kind: FileKind | undefined
  readonly isUtf8: boolean
}

/** A regular file inside a skill, open and verified; the caller closes it. All readings throw RefusedErrors. */
export class OpenFile {
  readonly size: bigint
  /** The state that it was opened in. */
  readonly stamp: FileStamp
  readonly #disk: Disk
  readonly #descriptor: number

  constructor (disk: Disk, descriptor: number, stats: BigIntStats) {
    this.size = stats.size
    this.stamp = stampOf(stats)
    this.#disk = disk
    this.#descriptor = descriptor
  }

  /** All bytes of the file, if it stays as it was when it was opened. */
  async readAll (): Promise<Buffer> {
    const bytes = Buffer.allocUnsafeSlow(Number(this.size))
    for (let length = 0; length < bytes.length;) length += await this.#read(bytes.subarray(length), length)
    if (!await this.#isUnchanged()) throw changed('the file changed while it was being read')
    return bytes
  }

  /** Checksums of the state that it was opened in. */
  async checksums (): Promise<FileChecksums> {
    const checksums = await this.#hash()
    if (!await this.#isUnchanged()) throw changed('the file changed while it was being read')
    return checksums
  }

  /**
   * The bytes from `start` to `end`, both included, with back-pressure.
   * @param digest of the whole file when it was opened: one that is replaced, removed or appended to meanwhile must
   * still begin with these bytes when the last of them is sent
   */
  async * chunks (start: number, end: number, digest?: string): AsyncGenerator<Buffer> {
    for (let position = start; position <= end;) {
      const buffer = Buffer.allocUnsafe(Math.min(STREAM_CHUNK_BYTES, end - position + 1))
      const count = await this.#read(buffer, position)
      position += count
      const isSame = position <= end || await this.#isUnchanged() ||
        (digest !== undefined && (await this.#hash()).digest === digest)
      if (!isSame) throw changed('the file changed while it was being sent')
      yield buffer.subarray(0, count)
    }
  }

  close (): Promise<void> {
    return closeQuietly(this.#disk, this.#descriptor)
  }

  async #hash (): Promise<FileChecksums> {
    const size = Number(this.size)
    const hash = createHash('sha256')
    const buffer = Buffer.allocUnsafeSlow(Math.min(HASHED_CHUNK_BYTES, size))
    const decoder = new TextDecoder('utf-8', { fatal: true })
    let isUtf8 = true
    const decode = (bytes?: Buffer): void => {
      try {
        decoder.decode(bytes, { stream: bytes !== undefined })
      } catch {
        isUtf8 = false
      }
    }
    let crc = 0
    let kind: FileKind | undefined
    for (let position = 0; position < size;) {
      const bytes = buffer.subarray(0, await this.#read(buffer.subarray(0, size - position), position))
      hash.update(bytes)
      crc = crc32(bytes, crc)
      decode(bytes)
      if (position === 0) kind = fileKind(bytes)
      position += bytes.length
      await yieldIfNeeded()
    }
    decode()
    return { size: this.size, digest: `sha256:${hash.digest('hex')}`, crc32: crc, kind, isUtf8 }
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
      return isSameState(this.stamp, stampOf(await this.#disk.fstat(this.#descriptor)))
    } catch (error) {
      throw asRefused(error)
    }
  }
}
