import type { BigIntStats } from 'node:fs'
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { fileKind, type FileKind } from './file-kind.ts'
import { Utf8Check } from './decode.ts'
import { yieldIfNeeded } from '../shared/async.ts'
import type { Signature } from '../shared/skill.ts'
import { type Awaitable, closeQuietly, type Disk } from './disk.ts'
import { asRefused, changed, RefusedError } from './refused.ts'
import { isSameState, signatureOf } from './signature.ts'

const HASHED_CHUNK_BYTES = 1_048_576
const STREAM_CHUNK_BYTES = 65_536

/** What one pass over all bytes of a file gives. */
export interface FileChecksums {
  /** `sha256:<hex>`. */
  readonly digest: string
  /** For ZIP archives. */
  readonly crc32: number
  readonly kind: FileKind | undefined
  readonly isUtf8: boolean
}

/** A regular file inside a skill, open and verified. The caller closes it. */
export class OpenFile {
  readonly disk: Disk
  readonly descriptor: number
  readonly stats: BigIntStats

  constructor (disk: Disk, descriptor: number, stats: BigIntStats) {
    this.disk = disk
    this.descriptor = descriptor
    this.stats = stats
  }

  /**
   * All bytes of the file, if it stays as it was when it was opened.
   * @param limit most bytes
   * @throws {RefusedError} `too_large`, `changed`, `io_error`, `no_answer`
   */
  async readAll (limit: number): Promise<{ bytes: Buffer, signature: Signature }> {
    const signature = signatureOf(this.stats)
    if (signature.size > limit) throw new RefusedError('too_large', undefined, signature.size)
    const bytes = Buffer.allocUnsafeSlow(Number(signature.size))
    for (let length = 0; length < bytes.length;) length += await this.#read(bytes.subarray(length), length)
    if (!isSameState(signature, await this.#signature())) throw changed('the file changed while it was being read')
    return { bytes, signature }
  }

  /**
   * Checksums of the state that `stats` describe.
   * @throws {RefusedError} `changed`, `io_error`, `no_answer`
   */
  async checksums (): Promise<FileChecksums> {
    const checksums = await this.#hash()
    if (!isSameState(signatureOf(this.stats), await this.#signature())) {
      throw changed('the file changed while it was being read')
    }
    return checksums
  }

  /**
   * The bytes from `start` to `end`, both included, with back-pressure.
   * @param digest of the whole file when it was opened: a file in another state must still begin with these bytes
   * @throws {RefusedError} `changed` when the file changes before its last byte is read, `io_error`, `no_answer`
   */
  async * chunks (start: number, end: number, digest?: string): AsyncGenerator<Buffer> {
    for (let position = start; position <= end;) {
      const buffer = Buffer.allocUnsafe(Math.min(STREAM_CHUNK_BYTES, end - position + 1))
      const count = await this.#read(buffer, position)
      position += count
      if (position > end) await this.#confirmSent(digest)
      yield buffer.subarray(0, count)
    }
  }

  /** Never fails. */
  close (): Promise<void> {
    return closeQuietly(() => this.disk.close(this.descriptor))
  }

  /** A file that was replaced, removed or appended to has the same beginning. */
  async #confirmSent (digest: string | undefined): Promise<void> {
    const before = signatureOf(this.stats)
    const now = await this.#signature()
    if (isSameState(before, now)) return
    const isSame = digest === undefined
      ? before.size === now.size && before.mtimeNs === now.mtimeNs
      : (await this.#hash()).digest === digest
    if (!isSame) throw changed('the file changed while it was being sent')
  }

  async #hash (): Promise<FileChecksums> {
    const size = Number(this.stats.size)
    const hash = createHash('sha256')
    const buffer = Buffer.allocUnsafeSlow(Math.min(HASHED_CHUNK_BYTES, size))
    const utf8 = new Utf8Check()
    let crc = 0
    let kind: FileKind | undefined
    for (let position = 0; position < size;) {
      const bytes = buffer.subarray(0, await this.#read(buffer.subarray(0, size - position), position))
      hash.update(bytes)
      crc = crc32(bytes, crc)
      utf8.add(bytes)
      if (position === 0) kind = fileKind(bytes)
      position += bytes.length
      await yieldIfNeeded()
    }
    return { digest: `sha256:${hash.digest('hex')}`, crc32: crc, kind, isUtf8: utf8.holds }
  }

  /** @throws {RefusedError} `changed` where the file has ended */
  async #read (buffer: Buffer, position: number): Promise<number> {
    const count = await this.#ask(() => this.disk.read(this.descriptor, buffer, 0, buffer.length, position))
    if (count === 0) throw changed('the file became shorter while it was being read')
    return count
  }

  async #signature (): Promise<Signature> {
    return signatureOf(await this.#ask(() => this.disk.fstat(this.descriptor)))
  }

  async #ask<T> (question: () => Awaitable<T>): Promise<T> {
    try {
      return await question()
    } catch (error) {
      throw asRefused(error)
    }
  }
}
