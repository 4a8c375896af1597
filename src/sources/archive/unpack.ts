import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { PassThrough, pipeline as startPipeline, Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import zlib from 'node:zlib'
import { extract } from 'tar-stream'
import { ArchiveError, refusedEntry } from '../../core/archive/archive-names.ts'
import { asArchiveError, isZip, ZipReader } from '../../core/archive/zip-reader.ts'
import { SourceError } from '../source-error.ts'
import type { UnpackedFiles } from './unpacked-files.ts'

declare module 'node:zlib' {
  // Since Node 22.15; the types are those of Node 20.
  const createZstdDecompress: ((options: { params: Readonly<Record<number, number>> }) => Transform) | undefined
}

/** A header of a tar archive, which says more than the first bytes of other formats. */
const HEAD_BYTES = 512
const CHECKSUM_AT = 148
const CHECKSUM_BYTES = 8
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** `ZSTD_d_windowLogMax`, as zstd numbers it. */
const WINDOW_LOG_MAX = 100
/** Logarithm of the most memory that a zstd archive may ask for: 32 MiB, four times what `zstd -19` asks for. */
const ZSTD_WINDOW_LOG = 25

/** Two empty blocks, in bytes: without them, nobody can tell where a tar archive was cut. */
const TAR_END_BYTES = 1_024

type Kind = 'zip' | 'gzip' | 'zstd' | 'tar'

/** Unpacks an archive by what its first bytes say it is: neither its name nor its type can be trusted. */
export async function unpackArchive (path: string, into: UnpackedFiles, signal: AbortSignal): Promise<void> {
  into.addPackedBytes((await stat(path)).size)
  try {
    const kind = await kindOf(path)
    const expected = 'a ZIP, tar, tar.gz or tar.zst archive'
    if (kind === undefined) throw new ArchiveError('bad_archive', `these bytes are not ${expected}`)
    if (kind === 'zip') await unpackZip(path, into)
    else await unpackTar(path, decompressorOf(kind), into, signal)
  } catch (error) {
    signal.throwIfAborted()
    throw asSourceError(error)
  }
}

/** Whether a file is an archive, and not a single file that is compressed. */
export async function isArchive (path: string): Promise<boolean> {
  const kind = await kindOf(path)
  if (kind !== 'gzip' && kind !== 'zstd') return kind !== undefined
  let head = Buffer.alloc(0)
  try {
    const unpacked: AsyncIterable<Buffer> = startPipeline(createReadStream(path), decompressorOf(kind), () => {})
    for await (const chunk of unpacked) {
      head = Buffer.concat([head, chunk])
      if (head.length >= HEAD_BYTES) break
    }
  } catch (error) {
    if (error instanceof ArchiveError) throw asSourceError(error)
    return false
  }
  return isTar(head)
}

async function kindOf (path: string): Promise<Kind | undefined> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    return archiveKindOf(buffer.subarray(0, bytesRead))
  } finally {
    await file.close()
  }
}

/** @param head the first bytes of a file, or all of them */
export function archiveKindOf (head: Buffer): Kind | undefined {
  if (isZip(head)) return 'zip'
  if (head[0] === 0x1f && head[1] === 0x8b) return 'gzip'
  if (head.subarray(0, ZSTD.length).equals(ZSTD)) return 'zstd'
  return isTar(head) ? 'tar' : undefined
}

/** By the checksum of its header, as the first tar archives have no other mark. */
function isTar (head: Buffer): boolean {
  if (head.length < HEAD_BYTES) return false
  const end = CHECKSUM_AT + CHECKSUM_BYTES
  const expected = Number.parseInt(head.toString('latin1', CHECKSUM_AT, end).replaceAll('\0', ' ').trim(), 8)
  const blank = Buffer.from(head.subarray(0, HEAD_BYTES)).fill(' ', CHECKSUM_AT, end)
  return blank.reduce((sum, byte) => sum + byte, 0) === expected
}

function decompressorOf (kind: Kind): Transform {
  if (kind === 'gzip') return zlib.createGunzip()
  if (kind !== 'zstd') return new PassThrough()
  if (zlib.createZstdDecompress !== undefined) {
    return zlib.createZstdDecompress({ params: { [WINDOW_LOG_MAX]: ZSTD_WINDOW_LOG } })
  }
  throw new ArchiveError('bad_archive', 'the archive is compressed with zstd, which Node 22.15 or later unpacks')
}

async function unpackZip (path: string, into: UnpackedFiles): Promise<void> {
  const zip = await ZipReader.open(path)
  try {
    for (const item of await zip.entries()) {
      if (item.kind === 'folder') into.addFolder(item.path)
      else if (item.kind === 'link') into.addLink(item.path, await zip.linkTarget(item))
      else await into.addFile(item.path, await zip.stream(item))
    }
  } finally {
    zip.close()
  }
}

/** Files and links inside; nothing else is ever in a skill. */
async function unpackTar (
  path: string, decompress: Transform, into: UnpackedFiles, signal: AbortSignal
): Promise<void> {
  const tar = extract({ allowUnknownFormat: true } as object)
  const read = pipeline([createReadStream(path), decompress, requireEnd(), tar], { signal })
  read.catch(() => {})
  for await (const entry of tar) {
    const { name, type, linkname } = entry.header
    const isWanted = into.isInScope(name)
    if (isWanted && (type === 'file' || type === 'contiguous-file')) {
      await into.addFile(name, Readable.from(entry))
      continue
    }
    entry.resume()
    if (!isWanted) continue
    if (type === 'symlink') into.addLink(name, linkname ?? '')
    else if (type === 'link') into.addHardLink(name, linkname ?? '')
    else if (type === 'directory') into.addFolder(name)
    else throw refusedEntry(name, `is a ${type ?? 'thing'}, not a regular file`)
  }
  await read
}

/** A program that failed may have been cut off before its bytes were compressed: the end is that of the tar archive. */
function requireEnd (): Transform {
  let last: Buffer = Buffer.alloc(0)
  return new Transform({
    transform (chunk: Buffer, _, done) {
      const tail = chunk.length >= TAR_END_BYTES ? chunk : Buffer.concat([last, chunk])
      last = tail.subarray(-TAR_END_BYTES)
      done(null, chunk)
    },
    flush (done) {
      const isWhole = last.length === TAR_END_BYTES && last.every((byte) => byte === 0)
      const problem = 'the tar archive has no end mark (two empty blocks), so it may have been cut off'
      done(isWhole ? null : new ArchiveError('bad_archive', problem))
    }
  })
}

function asSourceError (error: unknown): unknown {
  if (error instanceof SourceError) return error
  try {
    return asArchiveError(error)
  } catch (refused) {
    if (!(refused instanceof ArchiveError)) return refused
    const { code, message, cause } = refused
    const details = cause instanceof Error ? cause.message.slice(0, 200) : undefined
    return new SourceError(code, message, { cause, ...details !== undefined && { details } })
  }
}
