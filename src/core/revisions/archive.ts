import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { yieldIfNeeded } from '../shared/async.ts'
import { fileSentence } from './refusal-sentences.ts'
import type { FilePlace } from '../read/file-cache.ts'
import { openInside } from '../read/open-inside.ts'
import { changed } from '../read/refused.ts'
import { archiveError } from '../shared/errors.ts'
import { MAX_ARCHIVE_BYTES, MAX_ARCHIVE_FILES } from '../shared/limits.ts'
import type { Snapshot } from './snapshot.ts'
import { centralHeader, centralSize, endOfArchive, localHeader, localSize, type ZipEntry, zipSize } from './zip.ts'

/** Pieces of an archive that are sent together, in bytes: what is in memory of it is less than twice that. */
export const ARCHIVE_CHUNK_BYTES = 65_536

/** A file as it will be in the archive. */
interface ArchivedFile extends ZipEntry {
  /** In the manifest. */
  readonly path: string
  readonly digest: string
}

/** Where the bytes of an archive come from. */
export interface ArchiveSource {
  /**
   * The bytes of a file from `first` to `last`, both included, as the manifest has it.
   * @throws {RefusedError} `changed` when the file has other bytes now
   */
  read (file: ArchivedFile, first: number, last: number): AsyncIterable<Buffer>
}

/**
 * The files of a skill as a ZIP archive, in the order of the manifest. The archive is made while it is sent, and any
 * part of it can be read alone.
 */
export class SkillArchive {
  /** The manifest's: the same revision under the same names gives the same bytes everywhere. */
  readonly revision: string
  /** In bytes. */
  readonly size: number
  readonly #name: string
  readonly #source: ArchiveSource
  readonly #files: readonly ArchivedFile[]

  /** @param name of the skill, for errors */
  constructor (name: string, revision: string, files: readonly ArchivedFile[], source: ArchiveSource) {
    this.revision = revision
    this.size = zipSize(files)
    this.#name = name
    this.#source = source
    this.#files = files
  }

  /** `sha256:<hex>` of all bytes. */
  async digest (): Promise<string> {
    const hash = createHash('sha256')
    for await (const chunk of this.chunks()) hash.update(chunk)
    return `sha256:${hash.digest('hex')}`
  }

  /**
   * The bytes from `start` to `end`, both included, with back-pressure. A file that is no longer as the manifest says
   * fails the reading, so that a broken archive is never taken for complete.
   * @throws {SkillError} `skill_changing`, `file_io_error`, …
   */
  async * chunks (start = 0, end = this.size - 1): AsyncGenerator<Buffer> {
    let waiting: Buffer[] = []
    let length = 0
    for await (const piece of this.#pieces(start, end)) {
      waiting.push(piece)
      length += piece.length
      if (length < ARCHIVE_CHUNK_BYTES) continue
      yield Buffer.concat(waiting, length)
      waiting = []
      length = 0
    }
    if (length > 0) yield Buffer.concat(waiting, length)
  }

  async * #pieces (start: number, end: number): AsyncGenerator<Buffer> {
    /** The part of a record at `offset` that lies between `start` and `end`. */
    const within = (record: Buffer, offset: number) =>
      record.subarray(Math.max(start - offset, 0), Math.max(end + 1 - offset, 0))
    let offset = 0
    for (const file of this.#files) {
      const next = offset + localSize(file)
      if (start < next && offset <= end) {
        const header = localHeader(file)
        yield within(header, offset)
        const at = offset + header.length
        yield * this.#content(file, Math.max(start - at, 0), Math.min(end - at, file.size - 1))
        await yieldIfNeeded()
      }
      offset = next
    }

    const directory = offset
    let local = 0
    for (const file of this.#files) {
      yield within(centralHeader(file, local), offset)
      offset += centralSize(file)
      local += localSize(file)
      await yieldIfNeeded()
    }
    yield within(endOfArchive(this.#files.length, { offset: directory, size: offset - directory }), offset)
  }

  async * #content (file: ArchivedFile, first: number, last: number): AsyncGenerator<Buffer> {
    if (first > last) return
    try {
      yield * this.#source.read(file, first, last)
    } catch (error) {
      throw fileSentence(error, this.#name, file.path)
    }
  }
}

/**
 * The archive of a manifest.
 * @param nameOf what a file of the manifest is called in the archive; default: its path
 * @throws {SkillError} `archive_too_large`
 */
export function createArchive (
  { manifest, crc32s }: Pick<Snapshot, 'manifest' | 'crc32s'>, source: ArchiveSource,
  nameOf: (path: string) => string = (path) => path
): SkillArchive {
  const { skill_name: name, revision } = manifest
  const files = manifest.files.map(({ path, size_bytes: size, digest }, index) =>
    ({ path, digest, name: Buffer.from(nameOf(path)), size, crc32: crc32s[index] ?? 0 }))
  if (files.length > MAX_ARCHIVE_FILES || zipSize(files) > MAX_ARCHIVE_BYTES) throw archiveError.tooLarge(name)
  return new SkillArchive(name, revision, files, source)
}

/** Bytes in memory, by path. */
export function memorySource (contents: ReadonlyMap<string, Buffer>): ArchiveSource {
  return {
    async * read ({ path }, first, last) {
      const bytes = contents.get(path)
      if (bytes === undefined) throw changed('a file of a kept revision is missing')
      for (let start = first; start <= last; start += ARCHIVE_CHUNK_BYTES) {
        yield bytes.subarray(start, Math.min(start + ARCHIVE_CHUNK_BYTES, last + 1))
      }
    }
  }
}

/** Bytes on the disk: a file that is not as the manifest says fails the reading. */
export function diskSource (placeOf: (path: string) => FilePlace): ArchiveSource {
  return {
    async * read ({ path, size, digest, crc32: expected }, first, last) {
      const { disk, folder, filter } = placeOf(path)
      const file = await openInside(disk, folder, path, filter)
      try {
        if (file.stats.size !== BigInt(size)) throw changed('a file changed while its skill was archived')
        const isWhole = first === 0 && last === size - 1
        // A part of a file says nothing about the rest.
        if (!isWhole && (await file.checksums()).digest !== digest) {
          throw changed('a file changed while its skill was archived')
        }
        let crc = 0
        for await (const bytes of file.chunks(first, last, digest)) {
          crc = crc32(bytes, crc)
          yield bytes
        }
        if (isWhole && crc !== expected) throw changed('a file changed while its skill was archived')
      } finally {
        await file.close()
      }
    }
  }
}
