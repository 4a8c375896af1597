import { createHash } from 'node:crypto'
import { yieldIfNeeded } from '../core/shared/async.ts'

/**
 * Writes ZIP archives (PKWARE's APPNOTE 6.3.9) without compression, byte for byte reproducible. Libraries rewrite names
 * that are legal here, compress differently with each version of Node, or write checksums where streaming readers
 * cannot find them.
 */

export const ZIP_MEDIA_TYPE = 'application/zip'

interface ZipEntry {
  /** Path for `ReadFile`. */
  readonly path: string
  /** Name in the archive: UTF-8, `/` between segments, at most 65,535 bytes. */
  readonly name: Buffer
  /** Size in bytes. */
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
/** Bit 11: the name is UTF-8. */
const FLAGS = 0x0800
const STORED = 0
/** Midnight of 1 January 1980, the earliest time that the format allows. */
const TIME = 0
const DATE = 0x0021
/** Mode of a regular file, `rw-r--r--`, in the upper 16 bits. */
const ATTRIBUTES = 0o100644 * 0x10000

/** Reads the bytes of a file from `start` to `end`, both included. */
type ReadFile = (path: string, start: number, end: number) => AsyncGenerator<Buffer>

/**
 * A ZIP archive that is made while it is sent. Any part of it can be read alone. The same names and contents give the
 * same bytes everywhere.
 */
export class ZipArchive {
  /** Revision of the skill or skills in the archive. */
  readonly revision: string
  /** Size in bytes. */
  readonly size: number
  readonly #entries: readonly ZipEntry[]
  readonly #read: ReadFile

  constructor (revision: string, entries: readonly ZipEntry[], read: ReadFile) {
    this.revision = revision
    this.size = entries.reduce((size, entry) =>
      size + localSize(entry) + CENTRAL_HEADER_BYTES + entry.name.length, END_BYTES)
    this.#entries = entries
    this.#read = read
  }

  /** Returns `sha256:<hex>` of all bytes. */
  async digest (): Promise<string> {
    const hash = createHash('sha256')
    for await (const chunk of this.chunks()) hash.update(chunk)
    return `sha256:${hash.digest('hex')}`
  }

  /**
   * Streams the bytes from `start` to `end`, both included, with back-pressure. Fails if a file cannot be read, so that
   * no client takes a broken archive for a complete one.
   */
  async * chunks (start = 0, end = this.size - 1): AsyncGenerator<Buffer> {
    let offset = 0
    for (const entry of this.#entries) {
      const next = offset + localSize(entry)
      if (start < next && offset <= end) yield * this.#part(entry, start - offset, end - offset)
      offset = next
      await yieldIfNeeded()
    }
    if (offset <= end) yield centralDirectory(this.#entries).subarray(Math.max(start - offset, 0), end + 1 - offset)
  }

  /** Streams a part of a header and the content after it. `first` and `last` count from the start of the header. */
  async * #part (entry: ZipEntry, first: number, last: number): AsyncGenerator<Buffer> {
    const header = localHeader(entry)
    const end = Math.max(Math.min(last - header.length, entry.size - 1), -1)
    const content = this.#read(entry.path, Math.max(first - header.length, 0), end)
    try {
      // The content is read first: if that fails, no header was sent.
      const start = await content.next()
      yield header.subarray(Math.max(first, 0), last + 1)
      if (start.done !== true) yield start.value
      yield * content
    } finally {
      await content.return(undefined)
    }
  }
}

function localSize ({ name, size }: ZipEntry): number {
  return LOCAL_HEADER_BYTES + name.length + size
}

function localHeader (entry: ZipEntry): Buffer {
  return Buffer.concat([record([[4, 0x04034b50], ...commonFields(entry)]), entry.name])
}

function centralDirectory (entries: readonly ZipEntry[]): Buffer {
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

/** The fields that both headers have. */
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
