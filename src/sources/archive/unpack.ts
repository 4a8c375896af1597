import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { PassThrough, pipeline as startPipeline, Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import zlib from 'node:zlib'
import { extract } from 'tar-stream'
import { errorCode } from '../../core/shared/system-errors.ts'
import { SourceError } from '../source-error.ts'
import { refused, type UnpackedFiles } from './unpacked-files.ts'
import { unpackZip } from './unpack-zip.ts'

declare module 'node:zlib' {
  // Since Node 22.15; the types are those of Node 20.
  const createZstdDecompress: ((options: { readonly params: Readonly<Record<number, number>> }) => Transform) | undefined
}

/** Enough to tell what a file is: the first header of a tar archive. */
const HEAD_BYTES = 512
const USTAR_AT = 257
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** `ZSTD_d_windowLogMax`, as zstd numbers it. */
const WINDOW_LOG_MAX = 100
/** Logarithm of the most memory in bytes that a zstd archive may ask for: 32 MiB, four times what `zstd -19` asks for. */
const ZSTD_WINDOW_LOG = 25

/** Two empty blocks, in bytes: without them, nobody can tell where a tar archive was cut. */
const TAR_END_BYTES = 1_024

type Kind = 'zip' | 'gzip' | 'zstd' | 'tar'

/** Unpacks an archive by what its first bytes say it is: neither its name nor its type can be trusted. */
export async function unpackArchive (path: string, into: UnpackedFiles, signal: AbortSignal): Promise<void> {
  into.addPackedBytes((await stat(path)).size)
  try {
    const kind = await kindOf(path)
    if (kind === undefined) throw new SourceError('bad_archive', 'what the host sends is no ZIP, tar, tar.gz or tar.zst archive')
    if (kind === 'zip') await unpackZip(path, into)
    else await unpackTar(path, decompressorOf(kind), into, signal)
  } catch (error) {
    signal.throwIfAborted()
    throw asArchiveError(error)
  }
}

/** Whether a file is an archive, and no single file that is compressed. */
export async function isArchive (path: string): Promise<boolean> {
  const kind = await kindOf(path)
  return kind === 'gzip' || kind === 'zstd' ? await isCompressedTar(path, kind) : kind !== undefined
}

async function isCompressedTar (path: string, kind: Kind): Promise<boolean> {
  let head = Buffer.alloc(0)
  try {
    const unpacked: AsyncIterable<Buffer> = startPipeline(createReadStream(path), decompressorOf(kind), () => {})
    for await (const chunk of unpacked) {
      head = Buffer.concat([head, chunk])
      if (head.length >= HEAD_BYTES) break
    }
  } catch (error) {
    if (error instanceof SourceError) throw error
    return false
  }
  return kindOfBytes(head) === 'tar'
}

async function kindOf (path: string): Promise<Kind | undefined> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
    return kindOfBytes(buffer.subarray(0, bytesRead))
  } finally {
    await file.close()
  }
}

function kindOfBytes (head: Buffer): Kind | undefined {
  if (head.toString('latin1', 0, 4) === 'PK\x03\x04') return 'zip'
  if (head[0] === 0x1f && head[1] === 0x8b) return 'gzip'
  if (head.subarray(0, ZSTD.length).equals(ZSTD)) return 'zstd'
  return head.toString('latin1', USTAR_AT, USTAR_AT + 5) === 'ustar' ? 'tar' : undefined
}

function decompressorOf (kind: Kind): Transform {
  if (kind === 'gzip') return zlib.createGunzip()
  if (kind !== 'zstd') return new PassThrough()
  if (zlib.createZstdDecompress === undefined) throw new SourceError('bad_archive', 'the archive is compressed with zstd, which Node 22.15 or later unpacks')
  return zlib.createZstdDecompress({ params: { [WINDOW_LOG_MAX]: ZSTD_WINDOW_LOG } })
}

/** Files and links inside; nothing else is ever in a skill. */
async function unpackTar (path: string, decompress: Transform, into: UnpackedFiles, signal: AbortSignal): Promise<void> {
  const tar = extract()
  const read = pipeline([createReadStream(path), decompress, requireEnd(), tar], { signal })
  read.catch(() => {})
  for await (const entry of tar) {
    const { name, type, linkname } = entry.header
    if (type === 'file' || type === 'contiguous-file') {
      await into.addFile(name, Readable.from(entry))
      continue
    }
    entry.resume()
    if (type === 'symlink') into.addLink(name, linkname ?? '')
    else if (type === 'directory') into.addFolder(name)
    else throw refused(name, `is a ${type ?? 'thing'}, and no file`)
  }
  await read
}

/** A program that failed may have been cut off before its bytes were compressed: the end is that of the tar archive. */
function requireEnd (): Transform {
  let last: Buffer = Buffer.alloc(0)
  return new Transform({
    transform (chunk: Buffer, _, done) {
      last = chunk.length >= TAR_END_BYTES ? chunk.subarray(-TAR_END_BYTES) : Buffer.concat([last, chunk]).subarray(-TAR_END_BYTES)
      done(null, chunk)
    },
    flush (done) {
      const isWhole = last.length === TAR_END_BYTES && last.every((byte) => byte === 0)
      done(isWhole ? null : new SourceError('bad_archive', 'the archive ends before its end'))
    }
  })
}

function asArchiveError (error: unknown): unknown {
  if (error instanceof SourceError) return error
  const code = errorCode(error)
  if (/^E[A-Z]+$/.test(code) && !code.startsWith('ERR')) return error
  return new SourceError('bad_archive', 'the archive is damaged', { details: error instanceof Error ? error.message.slice(0, 200) : '', cause: error })
}
