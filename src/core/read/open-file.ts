import type { BigIntStats } from 'node:fs'
import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { fileKind, type FileKind } from './file-kind.ts'
import { Utf8Check } from './utf8-check.ts'
import type { Signature } from '../shared/skill.ts'
import { closeQuietly, type Disk } from './disk.ts'
import { asRefused, changed, RefusedError } from './refused.ts'
import { isSameState, signatureOf } from './signature.ts'

const CHUNK_BYTES = 1_048_576
const MIN_CHUNK_BYTES = 4_096
const STREAM_CHUNK_BYTES = 65_536

/** What one pass over all bytes of a file gives. */
export interface Checksums {
  /** `sha256:<hex>`. */
  readonly digest: string
  /** For ZIP archives. */
  readonly crc32: number
  readonly kind: FileKind | undefined
}

export interface FileChecksums extends Checksums {
  readonly isUtf8: boolean
}

/** A regular file inside a skill, open and verified. The caller closes it. */
export class OpenFile {
  readonly disk: Disk
  readonly descriptor: number
  readonly stats: BigIntStats
  /** Path below the skill's real folder after all links; equal to the path asked for when no link led to the file. */
  readonly realPath: string

  constructor (disk: Disk, descriptor: number, stats: BigIntStats, realPath: string) {
    this.disk = disk
    this.descriptor = descriptor
    this.stats = stats
    this.realPath = realPath
  }

  /**
   * All bytes of one state of the file. A file that changes while it is read is read once more. One that grows without
   * pause gives what it had when it was opened, if that is still its beginning.
   * @param limit most bytes
   * @throws {RefusedError} `too_large`, `changed`, `io_error`
   */
  async readAll (limit: number): Promise<{ bytes: Buffer, signature: Signature }> {
    let before = signatureOf(this.stats)
    let first: Buffer | undefined
    for (let attempt = 0; attempt < 2; attempt++) {
      if (before.size > limit) {
        if (first !== undefined && await this.#stillBeginsWith(first, before.size)) return { bytes: first, signature: signatureOf(this.stats) }
        throw new RefusedError('too_large', undefined, before.size)
      }
      const bytes = await this.#readOnce(Number(before.size), limit)
      const after = await this.#signature()
      if (isSameState(before, after)) return { bytes, signature: after }
      const hasGrown = before.size > this.stats.size && after.size > before.size
      if (hasGrown && first?.equals(bytes.subarray(0, first.length))) return { bytes: first, signature: signatureOf(this.stats) }
      first = bytes
      before = after
    }
    throw changed('the file changed while it was being read, twice')
  }

  /**
   * Checksums of the state that `stats` describe.
   * @param mayGrow whether a file that grows meanwhile counts with the bytes that it had when it was opened
   * @throws {RefusedError} `changed`, `io_error`
   */
  async checksums (mayGrow = false): Promise<FileChecksums> {
    const hash = createHash('sha256')
    const size = Number(this.stats.size)
    // No larger than the file: a megabyte for each of ten thousand small files would keep the garbage collector busy. One
    // byte more than the size shows that a file has grown.
    const buffer = Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, Math.max(MIN_CHUNK_BYTES, size + 1)))
    let crc = 0
    const utf8 = new Utf8Check()
    let kind: FileKind | undefined
    let position = 0
    for (let isComplete = false; !isComplete;) {
      const count = await this.#read(buffer, 0, mayGrow ? Math.min(buffer.length, size - position) : buffer.length, position)
      const bytes = buffer.subarray(0, count)
      hash.update(bytes)
      crc = crc32(bytes, crc)
      utf8.add(bytes)
      if (position === 0) kind = fileKind(bytes)
      position += count
      // Not only at the end: a file that grows as fast as it is read has no end.
      await this.#confirmUnchanged(mayGrow)
      // Files that the kernel makes up have size 0: only an empty read is their end.
      isComplete = count === 0 || (position === size && (mayGrow || count < buffer.length))
      if (count === CHUNK_BYTES) await nextTurn()
    }
    return { digest: `sha256:${hash.digest('hex')}`, crc32: crc, kind, isUtf8: utf8.holds }
  }

  /**
   * The bytes from `start` to `end`, both included, with back-pressure. A file that has grown is read as far as it went, and one that was
   * replaced or removed to its end.
   * @param digest of the whole file when it was opened: a file in another state must still begin with these bytes
   * @throws {RefusedError} `changed` when the file changes otherwise before its last byte is read, `io_error`
   */
  async * chunks (start: number, end: number, digest?: string): AsyncGenerator<Buffer> {
    for (let position = start; position <= end;) {
      const buffer = Buffer.allocUnsafe(Math.min(STREAM_CHUNK_BYTES, end - position + 1))
      const count = await this.#read(buffer, 0, buffer.length, position)
      if (count === 0) throw changed('the file became shorter while it was being sent')
      position += count
      if (position > end && !await this.#isUnchanged()) {
        await this.#confirmUnchanged(true)
        if (digest !== undefined && (await this.checksums(true)).digest !== digest) throw changed('the file was rewritten while it was being sent')
      }
      yield buffer.subarray(0, count)
    }
  }

  /** Never fails. */
  close (): Promise<void> {
    return closeQuietly(() => this.disk.close(this.descriptor))
  }

  /** Whether the file has only grown since it was opened, when it had these bytes: only these are read. */
  async #stillBeginsWith (bytes: Buffer, grownSize: bigint): Promise<boolean> {
    if (this.stats.size !== BigInt(bytes.length) || grownSize <= this.stats.size) return false
    const again = await this.#readOnce(bytes.length, bytes.length)
    return bytes.equals(again) && (await this.#signature()).size >= grownSize
  }

  async #isUnchanged (): Promise<boolean> {
    return isSameState(signatureOf(this.stats), await this.#signature())
  }

  async #confirmUnchanged (mayGrow: boolean): Promise<void> {
    const before = signatureOf(this.stats)
    const now = await this.#signature()
    // What takes its name from a file changes nothing but its `ctime`.
    const mayBeSame = now.size > before.size || (now.size === before.size && now.mtimeNs === before.mtimeNs)
    if (!isSameState(before, now) && !(mayGrow && mayBeSame)) throw changed('the file changed while it was being read')
  }

  /** As far as the file went; one that the kernel makes up has size 0 and is read to its end. */
  async #readOnce (size: number, limit: number): Promise<Buffer> {
    let buffer = Buffer.allocUnsafeSlow(size + 1)
    let length = 0
    for (;;) {
      // A disk that says another size than it has (a network's) is read to the end.
      if (size > 0 && length === size + 1 && (await this.#signature()).size > size) return Buffer.from(buffer.subarray(0, size))
      if (length === buffer.length) {
        if (length > limit) throw new RefusedError('too_large', undefined, BigInt(length))
        buffer = Buffer.concat([buffer], Math.min(limit + 1, Math.max(length * 2, MIN_CHUNK_BYTES)))
      }
      const wanted = Math.min(buffer.length - length, CHUNK_BYTES)
      const count = await this.#read(buffer, length, wanted, length)
      length += count
      // A short read that ends at the size is the end of a regular file.
      if (count === 0 || (length === size && count < wanted)) return length + 1 === buffer.length ? buffer.subarray(0, length) : Buffer.from(buffer.subarray(0, length))
      if (count === CHUNK_BYTES) await nextTurn()
    }
  }

  async #read (buffer: Buffer, offset: number, length: number, position: number): Promise<number> {
    try {
      return await this.disk.read(this.descriptor, buffer, offset, length, position)
    } catch (error) {
      throw asRefused(error)
    }
  }

  async #signature (): Promise<Signature> {
    try {
      return signatureOf(await this.disk.fstat(this.descriptor))
    } catch (error) {
      throw asRefused(error)
    }
  }
}
