import { createHash } from 'node:crypto'
import type { ServableFile } from '../read/file-cache.ts'
import { yieldIfNeeded } from '../shared/async.ts'
import { skillError } from '../shared/errors.ts'
import { MAX_ARCHIVE_BYTES } from '../shared/limits.ts'
import { fileSentence } from './refusal-sentences.ts'
import type { Snapshot } from './snapshot.ts'
import { centralDirectory, localHeader, localSize, type ZipEntry, zipSize } from '../../archive/zip-writer.ts'

/** A file as it will be in the archive. */
interface ArchivedFile extends ZipEntry {
  /** In the manifest. */
  readonly path: string
  readonly digest: string
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
  /** Of the skill, for errors. */
  readonly #name: string
  readonly #files: readonly ArchivedFile[]
  readonly #open: (path: string) => Promise<ServableFile>

  /**
   * @param open gives a file of the snapshot, and throws `changed` for one with other bytes
   * @param nameOf what a file of the manifest is called in the archive; default: its path
   * @throws {SkillError} `archive_too_large`
   */
  constructor (
    { manifest, checksums }: Pick<Snapshot, 'manifest' | 'checksums'>, open: (path: string) => Promise<ServableFile>,
    nameOf = (path: string): string => path
  ) {
    this.#files = manifest.files.map(({ path, size_bytes: size, digest }) =>
      ({ path, digest, name: Buffer.from(nameOf(path)), size, crc32: checksums.get(path)?.crc32 ?? 0 }))
    this.#name = manifest.skill_name
    this.#open = open
    this.revision = manifest.revision
    this.size = zipSize(this.#files)
    if (this.size > MAX_ARCHIVE_BYTES) throw skillError.archiveTooLarge(this.#name)
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
    let offset = 0
    for (const file of this.#files) {
      const next = offset + localSize(file)
      if (start < next && offset <= end) yield * this.#entry(file, start - offset, end - offset)
      offset = next
      await yieldIfNeeded()
    }
    if (offset <= end) yield centralDirectory(this.#files).subarray(Math.max(start - offset, 0), end + 1 - offset)
  }

  /** Header and content of a file, of which `first` and `last` are in positions of both together. */
  async * #entry (file: ArchivedFile, first: number, last: number): AsyncGenerator<Buffer> {
    const header = localHeader(file)
    const start = Math.max(first - header.length, 0)
    const end = Math.max(Math.min(last + 1 - header.length, file.size), 0)
    try {
      const opened = await this.#open(file.path)
      try {
        yield header.subarray(Math.max(first, 0), last + 1)
        if (opened.kind === 'content') yield opened.content.bytes.subarray(start, end)
        else yield * opened.chunks(start, end - 1)
      } finally {
        if (opened.kind === 'stream') await opened.close()
      }
    } catch (error) {
      throw fileSentence(error, this.#name, file.path)
    }
  }
}
