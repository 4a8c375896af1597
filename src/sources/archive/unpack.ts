import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import zlib from 'node:zlib'
import { extract } from 'tar-stream'
import { errorCode } from '../../core/disk/disk.ts'
import { SourceError } from '../source-error.ts'
import { refused, type UnpackedFiles } from './unpacked-files.ts'
import { unpackZip } from './unpack-zip.ts'

const USTAR_AT = 257
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** `ZSTD_d_windowLogMax`, as zstd numbers it. */
const WINDOW_LOG_MAX = 100
/** Logarithm of the most memory in bytes that a zstd archive may ask for: 32 MiB, four times what `zstd -19` asks for. */
const ZSTD_WINDOW_LOG = 25

/** Two empty blocks, in bytes: without them, nobody can tell where a tar archive was cut. */
const TAR_END_BYTES = 1_024

/** Unpacks an archive by what its first bytes say it is: neither its name nor its type can be trusted. */
export async function unpackArchive (path: string, into: UnpackedFiles, signal: AbortSignal): Promise<void> {
  into.addPackedBytes((await stat(path)).size)
  try {
    switch (await kindOf(path)) {
      case 'zip':
        await unpackZip(path, into)
        return
      case 'gzip':
        await unpackTar(path, [zlib.createGunzip()], into, signal)
        return
      case 'zstd':
        if (zlib.createZstdDecompress === undefined) throw new SourceError('bad_archive', 'the archive is compressed with zstd, which Node 22.15 or later unpacks')
        await unpackTar(path, [zlib.createZstdDecompress({ params: { [WINDOW_LOG_MAX]: ZSTD_WINDOW_LOG } })], into, signal)
        return
      case 'tar':
        await unpackTar(path, [], into, signal)
        return
      case undefined:
        throw new SourceError('bad_archive', 'what the host sends is no ZIP, tar, tar.gz or tar.zst archive')
    }
  } catch (error) {
    signal.throwIfAborted()
    throw asArchiveError(error)
  }
}

async function kindOf (path: string): Promise<'zip' | 'gzip' | 'zstd' | 'tar' | undefined> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(512), 0, 512, 0)
    const head = buffer.subarray(0, bytesRead)
    if (head.toString('latin1', 0, 4) === 'PK\x03\x04') return 'zip'
    if (head[0] === 0x1f && head[1] === 0x8b) return 'gzip'
    if (head.subarray(0, ZSTD.length).equals(ZSTD)) return 'zstd'
    return head.toString('latin1', USTAR_AT, USTAR_AT + 5) === 'ustar' ? 'tar' : undefined
  } finally {
    await file.close()
  }
}

/** Files and links inside; nothing else is ever in a skill. */
async function unpackTar (path: string, decompress: readonly Transform[], into: UnpackedFiles, signal: AbortSignal): Promise<void> {
  const tar = extract()
  const read = pipeline([createReadStream(path), ...decompress, requireEnd(), tar], { signal })
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
