import type { BigIntStats } from 'node:fs'
import { constants } from 'node:fs'
import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { errorCode, type Disk } from './disk.ts'
import { isHiddenFile, isHiddenPath } from './relative-path.ts'
import { isSameState, signatureOf } from './signature.ts'
import type { Signature } from '../skill.ts'

/** Why a file was not opened or read. Each door has its own sentence for it. */
export type Refusal = 'not_found' | 'outside' | 'permission_denied' | 'is_directory' | 'not_regular' | 'too_large' | 'io_error'

export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  readonly refusal: Refusal
  /** Size in bytes, for `too_large`. */
  readonly size: bigint

  constructor (refusal: Refusal, cause?: unknown, size = 0n) {
    super(refusal, { cause })
    this.refusal = refusal
    this.size = size
  }
}

/** Linux on x64 and arm64; not in `fs.constants`. Opens a name without touching what it names. */
const O_PATH = 0o10000000
/** A FIFO must not block, a terminal must not become ours. */
const READ_ONLY = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY
const NO_FOLLOW = constants.O_NOFOLLOW

const CHUNK_BYTES = 1_048_576
const MIN_CHUNK_BYTES = 4_096
const STREAM_CHUNK_BYTES = 65_536

/** What one pass over all bytes of a file in one state gives. */
export interface Checksums {
  /** `sha256:<hex>`. */
  readonly digest: string
  /** As ZIP archives want it. */
  readonly crc32: number
}

/** A regular file inside a skill, open and verified. Close it. */
export class OpenFile {
  readonly disk: Disk
  readonly descriptor: number
  readonly stats: BigIntStats
  /** Path below the skill's real folder after all links; equal to the one asked for when no link was on the way. */
  readonly realPath: string

  constructor (disk: Disk, descriptor: number, stats: BigIntStats, realPath: string) {
    this.disk = disk
    this.descriptor = descriptor
    this.stats = stats
    this.realPath = realPath
  }

  /**
   * All bytes, at most `limit` of them, of one state of the file: what changed while it was read is read
   * once more. Reads to the end of the file rather than to its size, which is 0 for files that the kernel makes up.
   */
  async readAll (limit: number): Promise<{ bytes: Buffer, signature: Signature }> {
    let before = signatureOf(this.stats)
    for (let attempt = 0; ; attempt++) {
      if (before.size > limit) throw new RefusedError('too_large', undefined, before.size)
      const bytes = await this.#readOnce(Number(before.size), limit)
      const after = await this.#signature()
      if (isSameState(before, after)) return { bytes, signature: after }
      if (attempt === 1) throw new RefusedError('io_error', new Error('the file changed while it was being read, twice'))
      before = after
    }
  }

  /** Of all bytes, read in chunks, of the state that `stats` describe. */
  async checksums (signal?: AbortSignal): Promise<Checksums> {
    const hash = createHash('sha256')
    const size = Number(this.stats.size)
    // No larger than it takes: a megabyte for each of ten thousand small files keeps the garbage collector busy. One byte more
    // than its size shows that a file has grown.
    const buffer = Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, Math.max(MIN_CHUNK_BYTES, size + 1)))
    let crc = 0
    let position = 0
    for (let isComplete = false; !isComplete;) {
      const count = await this.#read(buffer, 0, buffer.length, position)
      const bytes = buffer.subarray(0, count)
      hash.update(bytes)
      crc = crc32(bytes, crc)
      position += count
      // Not only at the end: a file that grows as fast as it is read has none.
      await this.confirmUnchanged()
      // Where the size says nothing, as of files that the kernel makes up, only an empty read is the end.
      isComplete = count === 0 || (position === size && count < buffer.length)
      if (count === CHUNK_BYTES) await nextTurn()
      signal?.throwIfAborted()
    }
    return { digest: `sha256:${hash.digest('hex')}`, crc32: crc }
  }

  /** The bytes from `start` to `end`, both included, with back-pressure; fails when the file changes under it. */
  async * chunks (start: number, end: number): AsyncGenerator<Buffer> {
    for (let position = start; position <= end;) {
      const buffer = Buffer.allocUnsafe(Math.min(STREAM_CHUNK_BYTES, end - position + 1))
      const count = await this.#read(buffer, 0, buffer.length, position)
      if (count === 0) throw new RefusedError('io_error', new Error('the file became shorter while it was being sent'))
      position += count
      if (position > end) await this.confirmUnchanged()
      yield buffer.subarray(0, count)
    }
  }

  async confirmUnchanged (): Promise<void> {
    if (!isSameState(signatureOf(this.stats), await this.#signature())) {
      throw new RefusedError('io_error', new Error('the file changed while it was being read'))
    }
  }

  async #readOnce (size: number, limit: number): Promise<Buffer> {
    let buffer = Buffer.allocUnsafeSlow(size + 1)
    let length = 0
    for (;;) {
      if (length === buffer.length) {
        if (length > limit) throw new RefusedError('too_large', undefined, BigInt(length))
        buffer = Buffer.concat([buffer], Math.min(limit + 1, Math.max(length * 2, 4096)))
      }
      const count = await this.#read(buffer, length, Math.min(buffer.length - length, CHUNK_BYTES), length)
      if (count === 0) return length + 1 === buffer.length ? buffer.subarray(0, length) : Buffer.from(buffer.subarray(0, length))
      length += count
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

  close (): void | Promise<void> {
    return this.disk.close(this.descriptor)
  }
}

/**
 * The one door to the disk: opens a file of a skill, or refuses. Inode and path are checked on what was opened, never
 * on a name that could be swapped in between.
 *
 * @param folder real path of the skill's folder, itself verified to lie below its root
 * @param path relative and lexically inside, from `parseRelativePath` or a directory listing
 * @throws {RefusedError}
 */
export async function openInside (disk: Disk, folder: string, path: string): Promise<OpenFile> {
  const segments = path.split('/')
  if (isHiddenPath(segments)) throw new RefusedError('not_found')
  try {
    const open = disk.hasProc ? openThroughProc : openByComparison
    return await open(disk, folder, path)
  } catch (error) {
    const refused = asRefused(error)
    // The folder itself was moved between opening and asking where: nobody tried to get out.
    if (refused.refusal === 'outside' && !await hasLink(disk, folder, segments)) throw new RefusedError('io_error', new Error('the skill was moved while its file was opened'))
    // Whether a link leads to a place that may not be searched says something about the outside: refuse it as a link.
    if (refused.refusal === 'permission_denied' && await mayLeave(disk, folder, segments)) throw new RefusedError('outside', error)
    throw refused
  }
}

/** Whether a path that could not be opened leads out of the skill, or has a link on the way and nobody can tell. */
async function mayLeave (disk: Disk, folder: string, segments: readonly string[]): Promise<boolean> {
  try {
    pathBelow(folder, await disk.realpath(`${folder}/${segments.join('/')}`))
    return false
  } catch (error) {
    return error instanceof RefusedError || await hasLink(disk, folder, segments)
  }
}

async function hasLink (disk: Disk, folder: string, segments: readonly string[]): Promise<boolean> {
  try {
    for (let depth = 1; depth <= segments.length; depth++) {
      const stats = await disk.lstat(`${folder}/${segments.slice(0, depth).join('/')}`)
      if (stats === undefined || stats.isSymbolicLink()) return stats !== undefined
    }
  } catch {
    // The first segment that cannot be searched: what comes after it is inside all the same.
  }
  return false
}

/**
 * Linux: the kernel says where an opened file really is. `O_PATH` first, so that a device or FIFO that is in the place
 * of a file is never opened for reading at all; then the very object that was checked is opened through its number.
 */
async function openThroughProc (disk: Disk, folder: string, path: string): Promise<OpenFile> {
  const handle = await disk.open(`${folder}/${path}`, O_PATH)
  try {
    const link = `/proc/self/fd/${handle}`
    const where = await disk.readlink(link)
    const realPath = pathBelow(folder, where)
    const stats = await disk.fstat(handle)
    checkServable(path, stats.nlink === 0n ? realPath.replace(/ \(deleted\)$/, '') : realPath, stats)
    const descriptor = await disk.open(link, READ_ONLY)
    return new OpenFile(disk, descriptor, stats, realPath)
  } finally {
    await disk.close(handle)
  }
}

/**
 * Elsewhere nothing tells where an opened file is: the path is resolved before and after, and compared with what was
 * opened. That closes accidents and most races, not a determined swap; said once at start.
 */
async function openByComparison (disk: Disk, folder: string, path: string): Promise<OpenFile> {
  const where = await disk.realpath(`${folder}/${path}`)
  const realPath = pathBelow(folder, where)
  const descriptor = await disk.open(where, READ_ONLY | NO_FOLLOW)
  try {
    const stats = await disk.fstat(descriptor)
    const named = await disk.lstat(where)
    if (await disk.realpath(where) !== where || named?.ino !== stats.ino || named.dev !== stats.dev) throw new RefusedError('outside')
    checkServable(path, realPath, stats)
    return new OpenFile(disk, descriptor, stats, realPath)
  } catch (error) {
    await disk.close(descriptor)
    throw error
  }
}

/** Containment is decided first, so that a link to the outside tells nothing about its target. */
function pathBelow (folder: string, where: string): string {
  if (where === folder) return '.'
  if (!where.startsWith(`${folder}/`)) throw new RefusedError('outside')
  return where.slice(folder.length + 1)
}

/** K8 counts for the name asked for and for what a link led to. */
function checkServable (path: string, realPath: string, stats: BigIntStats): void {
  const segments = realPath.split('/')
  if (isHiddenPath(segments)) throw new RefusedError('not_found')
  if (stats.isDirectory()) throw new RefusedError('is_directory')
  if (isHiddenFile(segments.at(-1)) || isHiddenFile(path.split('/').at(-1))) throw new RefusedError('not_found')
  if (!stats.isFile()) throw new RefusedError('not_regular')
}

/** An error of the operating system as a refusal; a refusal as it is. */
export function asRefused (error: unknown): RefusedError {
  return error instanceof RefusedError ? error : new RefusedError(refusalOf(error), error)
}

/** What the operating system's error means. Its text and code go no further than the log. */
function refusalOf (error: unknown): Refusal {
  switch (errorCode(error)) {
    case 'ENOENT':
    case 'ENOTDIR':
    case 'ENAMETOOLONG':
    case 'ELOOP':
    case 'ERR_INVALID_ARG_VALUE':
      return 'not_found'
    case 'EACCES':
    case 'EPERM':
      return 'permission_denied'
    case 'EISDIR':
      return 'is_directory'
    case 'ENXIO':
    case 'ENODEV':
      return 'not_regular'
    default:
      return 'io_error'
  }
}
