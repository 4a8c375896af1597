/**
 * The records of a ZIP archive (PKWARE's APPNOTE 6.3.9) of files that are stored without compression: names, sizes and
 * checksums decide on every byte. Libraries rewrite names that are legal here, compress by the Node at hand, or write
 * checksums where readers of streams cannot find them.
 */

export const ZIP_MEDIA_TYPE = 'application/zip'

export interface ZipEntry {
  /** UTF-8, `/` between segments, at most 65,535 bytes. */
  readonly name: Buffer
  /** In bytes. */
  readonly size: number
  readonly crc32: number
}

/** A field of a record: how many bytes it has, and its number. */
type Field = readonly [bytes: 2 | 4, value: number]

const LOCAL_HEADER_BYTES = 30
const CENTRAL_HEADER_BYTES = 46
const END_BYTES = 22

/** Version 2.0, which every reader knows, made on Unix: a `\` is part of a name there, and modes count. */
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
export function zipSize (entries: readonly ZipEntry[]): number {
  return entries.reduce((size, entry) => size + localSize(entry) + CENTRAL_HEADER_BYTES + entry.name.length, END_BYTES)
}

/** Bytes of the local header and of the content that follows it. */
export function localSize ({ name, size }: ZipEntry): number {
  return LOCAL_HEADER_BYTES + name.length + size
}

/** The local header, before the content of a file. */
export function localHeader (entry: ZipEntry): Buffer {
  return Buffer.concat([record([[4, 0x04034b50], ...commonFields(entry)]), entry.name])
}

/** The central directory, after the contents of all files. */
export function centralDirectory (entries: readonly ZipEntry[]): Buffer {
  let offset = 0
  const headers = entries.flatMap((entry) => {
    const header = record([
      [4, 0x02014b50], [2, MADE_BY_UNIX], ...commonFields(entry),
      // No comment, the first disk, no internal attributes.
      [2, 0], [2, 0], [2, 0], [4, ATTRIBUTES], [4, offset]
    ])
    offset += localSize(entry)
    return [header, entry.name]
  })
  const size = headers.reduce((sum, { length }) => sum + length, 0)
  const count = entries.length
  const end = record([[4, 0x06054b50], [2, 0], [2, 0], [2, count], [2, count], [4, size], [4, offset], [2, 0]])
  return Buffer.concat([...headers, end])
}

/** The fields that both headers have, in the same order. No extra fields. */
function commonFields ({ name, size, crc32 }: ZipEntry): readonly Field[] {
  return [
    [2, VERSION_NEEDED], [2, FLAGS], [2, STORED], [2, TIME], [2, DATE], [4, crc32], [4, size], [4, size],
    [2, name.length], [2, 0]
  ]
}

function record (fields: readonly Field[]): Buffer {
  const bytes = Buffer.alloc(fields.reduce((sum, [size]) => sum + size, 0))
  let at = 0
  for (const [size, value] of fields) at = bytes.writeUIntLE(value, at, size)
  return bytes
}
