import { createHash } from 'node:crypto'
import { on, once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough, Readable, type Transform } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { Parser, type ReadEntry } from 'tar'
import {
  ArchiveError, ArchiveNames, checkLink, commonFolder, isZip, refusedEntry, withoutMacFiles
} from '../../archive/archive-names.ts'
import { checkUnpackedBytes, DAMAGED, tooLargeFile, ZipReader } from '../../archive/zip-reader.ts'
import { MAX_FILE_BYTES } from '../../core/shared/limits.ts'
import type { SourceEntry } from '../publish/source-tree.ts'
import { SourceError } from '../source-error.ts'

export const MAX_ARCHIVE_BYTES = 512 * 1_048_576

const HEAD_BYTES = 512
const TAR_MAGIC_AT = 257

/** Our names for the parser's types; devices, FIFOs and the like are refused under the parser's names. */
const TAR_TYPES: Readonly<Record<string, Item['type']>> = {
  File: 'file', OldFile: 'file', ContiguousFile: 'file', Directory: 'folder', SymbolicLink: 'link', Link: 'hard link'
}

interface Item {
  readonly name: string
  /** `file`, `folder`, `link`, `hard link`, or the name of a type that is refused. */
  readonly type: string
  readonly content: AsyncIterable<Buffer>
  /** Target of a link. */
  readonly target: string
}

/**
 * Unpacks an archive. Its format is detected by its first bytes, since neither name nor media type can be trusted. Each
 * file is stored under a number, so that no name in an archive becomes a path before all names were checked.
 * @param folder the folder to make for the files
 * @param scope a folder: only entries below it are unpacked
 * @throws SourceError
 */
export async function unpackArchive (
  archive: string, folder: string, signal: AbortSignal, scope = ''
): Promise<readonly SourceEntry[]> {
  const names = new ArchiveNames()
  const entries = new Map<string, SourceEntry>()
  let bytes = 0
  try {
    const packedBytes = (await stat(archive)).size
    await mkdir(folder, { mode: 0o700 })
    for await (const { name, type, content, target } of itemsOf(archive, signal)) {
      const place = name.replace(/^(?:\.?\/)+/, '')
      if (place === '' || place === '.' || (scope !== '' && !place.startsWith(`${scope}/`))) continue
      const path = names.add(name, type === 'folder')
      const linked = entries.get(target.replace(/^(?:\.\/+)+/, ''))
      if (type === 'file') entries.set(path, await store(path, content, packedBytes))
      else if (type === 'link') {
        checkLink(path, target)
        entries.set(path, { path, kind: 'link', id: target, size: Buffer.byteLength(target), target })
      } else if (type === 'hard link' && linked !== undefined) entries.set(path, { ...linked, path })
      else if (type === 'hard link') throw refusedEntry(name, 'is a hard link to a file that does not come before it')
      else if (type !== 'folder') throw refusedEntry(name, `is a ${type}, not a regular file`)
    }
  } catch (error) {
    signal.throwIfAborted()
    throw asSourceError(error)
  }
  return withoutMacFiles([...entries.values()])

  async function store (path: string, content: AsyncIterable<Buffer>, packedBytes: number): Promise<SourceEntry> {
    const stored = join(folder, String(entries.size))
    const hash = createHash('sha256')
    let size = 0
    await pipeline(content, async function * (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        size += chunk.length
        bytes += chunk.length
        hash.update(chunk)
        if (size > MAX_FILE_BYTES) throw tooLargeFile(path)
        checkUnpackedBytes(bytes, packedBytes)
        yield chunk
      }
    }, createWriteStream(stored, { flags: 'wx', mode: 0o600 }), { signal })
    return { path, kind: 'file', id: hash.digest('hex'), size, stored }
  }
}

/**
 * Removes the top folder that contains all entries from their paths.
 * @param path the wanted folder: if it begins with the top folder, and this contains none of its own name, paths stay
 */
export function withoutTopFolder (entries: readonly SourceEntry[], path = ''): readonly SourceEntry[] {
  const common = commonFolder(entries)
  const hasTwice = entries.some((entry) => `${entry.path}/`.startsWith(common + common))
  const isNamed = `${path}/`.startsWith(common) && !hasTwice
  return isNamed ? entries : entries.map((entry) => ({ ...entry, path: entry.path.slice(common.length) }))
}

async function * itemsOf (archive: string, signal: AbortSignal): AsyncGenerator<Item> {
  const head = await buffer(createReadStream(archive, { end: HEAD_BYTES - 1 }))
  if (isZip(head)) yield * zipItems(archive)
  else if (head[0] === 0x1f && head[1] === 0x8b) yield * tarItems(archive, createGunzip(), signal)
  else if (head.indexOf('ustar', TAR_MAGIC_AT) === TAR_MAGIC_AT) yield * tarItems(archive, new PassThrough(), signal)
  else throw new ArchiveError('bad_archive', 'these bytes are not a ZIP, tar or tar.gz archive')
}

async function * zipItems (archive: string): AsyncGenerator<Item> {
  const zip = await ZipReader.open(archive)
  try {
    for (const item of await zip.entries()) {
      const { path: name, kind: type } = item
      const content = type === 'file' ? await zip.stream(item) : Readable.from([])
      yield { name, type, content, target: type === 'link' ? await zip.linkTarget(item) : '' }
    }
  } finally {
    zip.close()
  }
}

async function * tarItems (archive: string, decompress: Transform, signal: AbortSignal): AsyncGenerator<Item> {
  const parser = new Parser({ strict: true })
  const ended = new AbortController()
  let hasEndMark = false
  parser.on('eof', () => { hasEndMark = true })
  // The parser emits no entry for types that it does not know.
  parser.on('ignoredEntry', ({ path, meta }) => {
    if (!meta) parser.abort(refusedEntry(path, 'has an unknown entry type'))
  })
  const reading = pipeline(createReadStream(archive), decompress, async (chunks: AsyncIterable<Buffer>) => {
    for await (const chunk of chunks) if (!parser.write(chunk)) await once(parser, 'drain', ended)
    parser.end()
  }, { signal: AbortSignal.any([signal, ended.signal]) })
  reading.catch((error: Error) => { if (!ended.signal.aborted) parser.abort(error) })
  try {
    for await (const [entry] of on(parser, 'entry', { close: ['end'], signal }) as AsyncIterable<[ReadEntry]>) {
      const { path, type, linkpath = '' } = entry
      yield { name: path.replace(/\/+$/, ''), type: TAR_TYPES[type] ?? type, content: entry, target: linkpath }
      entry.resume()
    }
    await reading
  } finally {
    ended.abort()
  }
  if (hasEndMark) return
  const problem = 'the tar archive has no end mark (two empty blocks), so it may have been cut off'
  throw new ArchiveError('bad_archive', problem)
}

function asSourceError (error: unknown): unknown {
  if (error instanceof SourceError || (error instanceof Error && 'syscall' in error)) return error
  const { code, message } = error instanceof ArchiveError ? error : new ArchiveError('bad_archive', DAMAGED)
  return new SourceError(code, message, { cause: error })
}
