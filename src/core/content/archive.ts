import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { createSlicer } from '../async.ts'
import type { IndexedSkill } from '../catalog/catalog.ts'
import type { Disk } from '../disk/disk.ts'
import { archiveError } from '../errors.ts'
import { ARCHIVE_CHUNK_BYTES, MAX_ARCHIVE_BYTES, MAX_ARCHIVE_FILES } from '../limits.ts'
import type { ManifestStore } from './manifest.ts'
import { fileSentence } from './refusal-sentences.ts'
import type { Seen } from '../disk/observed.ts'
import { isSameState, signatureOf } from '../disk/signature.ts'
import { openInside, RefusedError } from '../disk/open-inside.ts'
import type { Signature } from '../skill.ts'
import { centralHeader, centralSize, endOfArchive, localHeader, localSize, type ZipEntry, zipSize } from './zip.ts'

export interface ArchiveOptions {
  readonly disk: Disk
  readonly skill: IndexedSkill
  readonly manifests: Pick<ManifestStore, 'get'>
  /** What a file of the manifest is called in the archive. Default: its path. */
  readonly nameOf?: ((path: string) => string) | undefined
}

/** What the manifest says of a file. */
interface PlannedFile extends ZipEntry {
  readonly path: string
}

/** A file as it will be in the archive, in the one state that it must still have when it is read. */
interface ArchivedFile extends PlannedFile {
  readonly state: Signature
}

/**
 * The files of a skill as a ZIP archive, in the order of the manifest and of the state that the manifest names. Not a
 * byte of it is kept in memory: it is read from the files as it is sent, and any part of it can be read alone.
 */
export class SkillArchive {
  /** The manifest's: the same revision under the same names gives the same bytes everywhere. */
  readonly revision: string
  /** In bytes. */
  readonly size: number
  readonly #disk: Disk
  readonly #skill: IndexedSkill
  readonly #files: readonly ArchivedFile[]

  constructor (disk: Disk, skill: IndexedSkill, revision: string, files: readonly ArchivedFile[]) {
    this.revision = revision
    this.size = zipSize(files)
    this.#disk = disk
    this.#skill = skill
    this.#files = files
  }

  /** `sha256:<hex>` of all bytes. */
  async digest (): Promise<string> {
    const hash = createHash('sha256')
    for await (const chunk of this.chunks()) hash.update(chunk)
    return `sha256:${hash.digest('hex')}`
  }

  /**
   * The bytes from `start` to `end`, both included, with back-pressure. Fails, and so is never taken for complete, when a
   * file is no longer as it was.
   * @throws {SkillError}
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
    const yieldIfNeeded = createSlicer()
    /** The part of a record at `offset` that lies between `start` and `end`. */
    const within = (record: Buffer, offset: number) => record.subarray(Math.max(start - offset, 0), Math.max(end + 1 - offset, 0))
    let offset = 0
    for (const file of this.#files) {
      const next = offset + localSize(file)
      if (start < next && offset <= end) {
        const header = localHeader(file)
        yield within(header, offset)
        yield * this.#content(file, Math.max(start - offset - header.length, 0), Math.min(end - offset - header.length, file.size - 1))
        await yieldIfNeeded()
      }
      offset = next
    }

    const directory = { offset, size: 0 }
    let local = 0
    for (const file of this.#files) {
      yield within(centralHeader(file, local), offset)
      offset += centralSize(file)
      local += localSize(file)
      await yieldIfNeeded()
    }
    directory.size = offset - directory.offset
    yield within(endOfArchive(this.#files.length, directory), offset)
  }

  async * #content (file: ArchivedFile, first: number, last: number): AsyncGenerator<Buffer> {
    if (first > last) return
    try {
      const open = await openInside(this.#disk, this.#skill.folder.realPath, file.path)
      try {
        if (!isSameState(signatureOf(open.stats), file.state)) throw changed()
        let crc = 0
        for await (const bytes of open.chunks(first, last)) {
          crc = crc32(bytes, crc)
          yield bytes
        }
        // A state that was too young to be trusted has only its bytes to tell.
        if (first === 0 && last === file.size - 1 && crc !== file.crc32) throw changed()
      } finally {
        await open.close()
      }
    } catch (error) {
      throw fileSentence(error, this.#skill.name, file.path)
    }
  }
}

/**
 * The archive of a skill in one state, ready to be read.
 * @throws {RefusedError} as a manifest
 * @throws {SkillError} `archive_too_large`
 */
export async function createArchive (options: ArchiveOptions): Promise<SkillArchive> {
  const { disk, skill, manifests, nameOf = (path) => path } = options
  const { manifest: { files, revision }, crc32s, seen } = await manifests.get(disk, skill)
  const planned = files.map(({ path, size_bytes: size }, index) => ({ path, name: Buffer.from(nameOf(path)), size, crc32: crc32s[index] ?? 0 }))
  if (planned.length > MAX_ARCHIVE_FILES || zipSize(planned) > MAX_ARCHIVE_BYTES) throw archiveError.tooLarge(skill.name)
  return new SkillArchive(disk, skill, revision, await withStates(planned, seen))
}

async function withStates (planned: readonly PlannedFile[], seen: Seen): Promise<readonly ArchivedFile[]> {
  const yieldIfNeeded = createSlicer()
  const states = new Map(seen)
  const files: ArchivedFile[] = []
  for (const file of planned) {
    const state = states.get(file.path)
    if (state === undefined) throw changed()
    files.push({ ...file, state })
    await yieldIfNeeded()
  }
  return files
}

function changed (): RefusedError {
  return new RefusedError('io_error', new Error('a file changed while its skill was being archived'))
}
