import { isUtf8 } from 'node:buffer'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { crc32 } from 'node:zlib'
import { type Entry, fromBufferPromise, getFileNameLowLevel, openPromise, type ZipFile } from 'yauzl'
import { MAX_FILE_BYTES, MAX_LINK_BYTES, MAX_PUBLISHED_BYTES } from '../core/shared/limits.ts'
import { ArchiveError, ArchiveNames, isZip, refusedEntry } from './archive-names.ts'

/** An archive with more unpacked bytes than this, and more than this multiple of its size, counts as an attack. */
const UNPACKED_RATIO_FROM_BYTES = 10 * 1_048_576
const MAX_UNPACKED_RATIO = 200

const FILE_TYPE = 0o170000
const REGULAR = 0o100000
const SYMLINK = 0o120000

/** Flag of an entry whose sizes and checksum come after its bytes. */
const SIZES_FOLLOW = 0x8
/** Stands for a size that is in another field. */
const SIZE_ELSEWHERE = 0xffff_ffff

export const DAMAGED = 'the archive is damaged'

const STORED = 0
const DEFLATED = 8
const METHODS: Readonly<Record<number, string>> = { 9: 'Deflate64', 12: 'bzip2', 14: 'LZMA', 93: 'zstd', 95: 'XZ' }

const OPTIONS = { decodeStrings: false, validateEntrySizes: true, lazyEntries: true, autoClose: false } as const

/** An entry of a ZIP archive, with checked name and headers. */
export interface ZipItem {
  readonly path: string
  readonly kind: 'file' | 'folder' | 'link'
  /** Unpacked bytes. */
  readonly size: number
  readonly packedSize: number
  readonly isStored: boolean
  /** Offset of its packed bytes in the archive. */
  readonly start: number
  readonly entry: Entry
}

/** Reads untrusted ZIP archives: sources, packages and uploads. Throws ArchiveErrors, and errors of the disk. */
export class ZipReader {
  readonly #zip: ZipFile

  private constructor (zip: ZipFile) {
    this.#zip = zip
  }

  /** @param from path of the archive, or its bytes */
  static async open (from: string | Buffer): Promise<ZipReader> {
    const isOther = typeof from !== 'string' && !isZip(from)
    if (isOther) throw new ArchiveError('bad_archive', 'these bytes are not a ZIP archive')
    const zip = typeof from === 'string' ? openPromise(from, OPTIONS) : fromBufferPromise(from, OPTIONS)
    return new ZipReader(await zip.catch(asArchiveError))
  }

  close (): void {
    this.#zip.close()
  }

  /** Lists the entries of the central directory. Refuses local headers that differ, and entries that overlap. */
  async entries (): Promise<ZipItem[]> {
    const names = new ArchiveNames()
    const items: ZipItem[] = []
    const ranges: Array<readonly [start: number, end: number]> = []
    let bytes = 0
    try {
      for await (const entry of this.#zip.eachEntry()) {
        const item = await this.#itemOf(entry, names)
        ranges.push([entry.relativeOffsetOfLocalHeader, item.start + item.packedSize])
        bytes += item.size
        items.push(item)
      }
    } catch (error) {
      return asArchiveError(error)
    }
    checkUnpackedBytes(bytes, this.#zip.fileSize)
    let end = 0
    for (const [start, stop] of ranges.sort(([a], [b]) => a - b)) {
      if (start < end) throw new ArchiveError('bad_archive', 'the archive is refused: two of its entries overlap')
      end = stop
    }
    return items
  }

  /** Reads an entry, whose bytes must have its size and its checksum. */
  async stream ({ entry, path }: ZipItem): Promise<Readable> {
    const packed = await this.#zip.openReadStreamPromise(entry).catch(asArchiveError)
    return Readable.from((async function * () {
      let sum = 0
      try {
        for await (const chunk of packed as AsyncIterable<Buffer>) {
          sum = crc32(chunk, sum)
          yield chunk
        }
      } catch (error) {
        asArchiveError(error)
      }
      if (sum !== entry.crc32) throw refusedEntry(path, 'does not match its checksum')
    })())
  }

  async linkTarget (item: ZipItem): Promise<string> {
    if (item.size > MAX_LINK_BYTES) throw refusedEntry(item.path, `is a link of more than ${MAX_LINK_BYTES} bytes`)
    return (await buffer(await this.stream(item))).toString()
  }

  async #itemOf (entry: Entry, names: ArchiveNames): Promise<ZipItem> {
    const name = nameOf(entry)
    const { compressionMethod: method, compressedSize: packedSize, uncompressedSize: size } = entry
    const isFolder = name.endsWith('/')
    const path = names.add(name, isFolder)
    if (entry.isEncrypted()) throw refusedEntry(name, 'is encrypted')
    if (method !== STORED && method !== DEFLATED) {
      throw refusedEntry(name, `is compressed with ${METHODS[method] ?? `method ${method}`}; only Deflate is supported`)
    }
    const type = (entry.externalFileAttributes >>> 16) & FILE_TYPE
    if (isFolder && size > 0) throw refusedEntry(name, 'is a folder with content')
    if (!isFolder && ![0, REGULAR, SYMLINK].includes(type)) throw refusedEntry(name, 'is not a regular file')
    if (size > MAX_FILE_BYTES) throw tooLargeFile(name)
    const kind = isFolder ? 'folder' : type === SYMLINK ? 'link' : 'file'
    return { path, kind, size, packedSize, isStored: method === STORED, start: await this.#startOf(entry, name), entry }
  }

  /** Returns the offset of an entry's bytes. Other programs read the local header, so it must not differ. */
  async #startOf (entry: Entry, name: string): Promise<number> {
    const local = await this.#zip.readLocalFileHeaderPromise(entry)
    const hasSizes = (local.generalPurposeBitFlag & SIZES_FOLLOW) === 0
    const isSame = local.fileName.equals(entry.fileNameRaw) && local.compressionMethod === entry.compressionMethod &&
      (!hasSizes || (['crc32', 'compressedSize', 'uncompressedSize'] as const)
        .every((key) => local[key] === entry[key] || local[key] === SIZE_ELSEWHERE))
    if (!isSame) throw refusedEntry(name, 'differs between its local header and the directory of the archive')
    return local.fileDataStart
  }
}

/** A name without the flag of UTF-8 may be UTF-8, as on macOS; otherwise it is in the code page of DOS. */
function nameOf ({ generalPurposeBitFlag: flags, fileNameRaw, extraFields }: Entry): string {
  return isUtf8(fileNameRaw) ? fileNameRaw.toString() : getFileNameLowLevel(flags, fileNameRaw, extraFields, true)
}

export function tooLargeFile (name: string): ArchiveError {
  const { message } = refusedEntry(name, `is larger than ${MAX_FILE_BYTES} bytes`)
  return new ArchiveError('too_large', message)
}

/** @throws ArchiveError when an archive unpacks to too many bytes, or to so many for its size that it is an attack */
export function checkUnpackedBytes (bytes: number, packed: number): void {
  const isBomb = bytes > UNPACKED_RATIO_FROM_BYTES && bytes > packed * MAX_UNPACKED_RATIO
  if (bytes > MAX_PUBLISHED_BYTES || isBomb) {
    throw new ArchiveError('too_large', 'the archive is refused: its content is too large')
  }
}

/** Replaces errors of yauzl, whose messages may quote names of the archive. Rethrows errors of the disk. */
function asArchiveError (error: unknown): never {
  if (error instanceof ArchiveError) throw error
  if (error instanceof Error && 'syscall' in error) throw error
  throw new ArchiveError('bad_archive', DAMAGED, { cause: error })
}
