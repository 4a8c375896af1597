/**
 * The records of a ZIP archive (PKWARE's APPNOTE 6.3.9) of files that are stored without compression. Names, sizes and
 * checksums decide on every byte. Deflate differs between versions of Node.
 *
 * `yazl` does not fit. It turns `\` in a name into `/` and refuses `C:`; both are legal here. It writes checksums
 * behind the contents, where readers of streams cannot find the end of a stored file. It cannot start in the middle
 * of an archive.
 */

export const ZIP_MEDIA_TYPE = 'application/zip'

export interface ZipEntry {
  /** UTF-8, `/` between segments, at most 65,535 bytes. */
  readonly name: Buffer
  /** In bytes. */
  readonly size: number
  readonly crc32: number
}

const LOCAL_HEADER_BYTES = 30
const CENTRAL_HEADER_BYTES = 46
const END_BYTES = 22

/** What any reader of the last thirty years knows (2.0), made on Unix: so that `\` is a letter and modes count. */
const VERSION_NEEDED = 20
const MADE_BY_UNIX = 3 << 8 | VERSION_NEEDED
/** The name is UTF-8 (bit 11). */
const FLAGS = 0x0800
const STORED = 0
/** 1 January 1980, midnight: the format's earliest. */
const TIME = 0
const DATE = 0x0021
/** A regular file, `rw-r--r--`, in the upper half. */
const ATTRIBUTES = 0o100644 * 0x10000

/** Size in bytes of the archive of these entries. */
export function zipSize (entries: ReadonlyArray<Pick<ZipEntry, 'name' | 'size'>>): number {
  return entries.reduce((size, entry) => size + localSize(entry) + centralSize(entry), END_BYTES)
}

/** Of the header and the content that follows it. */
export function localSize ({ name, size }: Pick<ZipEntry, 'name' | 'size'>): number {
  return LOCAL_HEADER_BYTES + name.length + size
}

export function centralSize ({ name }: Pick<ZipEntry, 'name'>): number {
  return CENTRAL_HEADER_BYTES + name.length
}

/** What stands before the content of a file. */
export function localHeader (entry: ZipEntry): Buffer {
  const header = Buffer.alloc(LOCAL_HEADER_BYTES + entry.name.length)
  header.writeUInt32LE(0x04034b50, 0)
  writeCommon(header, 4, entry)
  entry.name.copy(header, LOCAL_HEADER_BYTES)
  return header
}

/** @param offset of the entry's local header, in bytes */
export function centralHeader (entry: ZipEntry, offset: number): Buffer {
  const header = Buffer.alloc(centralSize(entry))
  header.writeUInt32LE(0x02014b50, 0)
  header.writeUInt16LE(MADE_BY_UNIX, 4)
  writeCommon(header, 6, entry)
  header.writeUInt32LE(ATTRIBUTES, 38)
  header.writeUInt32LE(offset, 42)
  entry.name.copy(header, CENTRAL_HEADER_BYTES)
  return header
}

/** @param directory of the central headers, both in bytes */
export function endOfArchive (count: number, directory: { readonly offset: number, readonly size: number }): Buffer {
  const record = Buffer.alloc(END_BYTES)
  record.writeUInt32LE(0x06054b50, 0)
  record.writeUInt16LE(count, 8)
  record.writeUInt16LE(count, 10)
  record.writeUInt32LE(directory.size, 12)
  record.writeUInt32LE(directory.offset, 16)
  return record
}

/** The fields that both headers have, in the same order. No extra fields. */
function writeCommon (header: Buffer, at: number, { name, size, crc32 }: ZipEntry): void {
  header.writeUInt16LE(VERSION_NEEDED, at)
  header.writeUInt16LE(FLAGS, at + 2)
  header.writeUInt16LE(STORED, at + 4)
  header.writeUInt16LE(TIME, at + 6)
  header.writeUInt16LE(DATE, at + 8)
  header.writeUInt32LE(crc32, at + 10)
  header.writeUInt32LE(size, at + 14)
  header.writeUInt32LE(size, at + 18)
  header.writeUInt16LE(name.length, at + 22)
}
