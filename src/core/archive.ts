import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { createSlicer } from './async.ts'
import type { IndexedSkill } from './catalogue.ts'
import type { ContentStore } from './content-store.ts'
import type { Disk } from './disk.ts'
import { archiveError } from './errors.ts'
import { ARCHIVE_CHUNK_BYTES, MAX_ARCHIVE_BYTES, MAX_ARCHIVE_FILES } from './limits.ts'
import type { ManifestStore, Snapshot } from './manifest.ts'
import { fileSentence } from './refusal-sentences.ts'
import { isSameState, signatureOf } from './signature.ts'
import { openInside, RefusedError, type Checksums } from './skill-reader.ts'
import type { Signature } from './skill.ts'
import { centralHeader, centralSize, endOfArchive, localHeader, localSize, type ZipEntry, zipSize } from './zip.ts'

export interface ArchiveOptions {
  readonly disk: Disk
  readonly skill: IndexedSkill
  readonly manifests: Pick<ManifestStore, 'get'>
  readonly contents: Pick<ContentStore, 'checksums' | 'knownChecksums'>
  /** What a file of the manifest is called in the archive. Default: its path. */
  readonly nameOf?: ((path: string) => string) | undefined
}

/** What the manifest says of a file. */
interface PlannedFile extends Omit<ZipEntry, 'crc32'> {
  readonly path: string
  readonly digest: string
}

/** A file as it will be in the archive, in the one state that it must still have when it is read. */
interface ArchivedFile extends ZipEntry {
  readonly path: string
  readonly state: Signature
}

const MAX_ATTEMPTS = 4

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
   * file is no longer as it was (K53).
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
    const breathe = createSlicer()
    /** The part of a record at `offset` that lies between `start` and `end`. */
    const within = (record: Buffer, offset: number) => record.subarray(Math.max(start - offset, 0), Math.max(end + 1 - offset, 0))
    let offset = 0
    for (const file of this.#files) {
      const next = offset + localSize(file)
      if (start < next && offset <= end) {
        const header = localHeader(file)
        yield within(header, offset)
        yield * this.#content(file, Math.max(start - offset - header.length, 0), Math.min(end - offset - header.length, file.size - 1))
        await breathe()
      }
      offset = next
    }

    const directory = { offset, size: 0 }
    let local = 0
    for (const file of this.#files) {
      yield within(centralHeader(file, local), offset)
      offset += centralSize(file)
      local += localSize(file)
      await breathe()
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
  for (let attempt = 1; ; attempt++) {
    const snapshot = await manifests.get(disk, skill)
    const { files, revision } = snapshot.manifest
    const planned = files.map(({ path, size_bytes: size, digest }) => ({ path, name: Buffer.from(nameOf(path)), size, digest }))
    if (planned.length > MAX_ARCHIVE_FILES || zipSize(planned) > MAX_ARCHIVE_BYTES) throw archiveError.tooLarge(skill.name)
    try {
      return new SkillArchive(disk, skill, revision, await sealFiles(options, snapshot.seen, planned))
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !(error instanceof RefusedError)) throw error
    }
  }
}

/** Adds what else the headers need. Known since the manifest was made, unless that was long ago or a moment ago. */
async function sealFiles (
  { disk, skill, contents }: ArchiveOptions, seen: Snapshot['seen'], planned: readonly PlannedFile[]
): Promise<readonly ArchivedFile[]> {
  const breathe = createSlicer()
  const base = skill.folder.realPath
  const sealed: ArchivedFile[] = []
  for (const { digest, ...file } of planned) {
    const state = seen.get(`${base}/${file.path}`)
    if (state === undefined) throw changed()
    const checksums = contents.knownChecksums(state) ?? await readChecksums(disk, base, file.path, contents)
    if (checksums.digest !== digest) throw changed()
    sealed.push({ ...file, state, crc32: checksums.crc32 })
    await breathe()
  }
  return sealed
}

async function readChecksums (disk: Disk, base: string, path: string, contents: ArchiveOptions['contents']): Promise<Checksums> {
  const file = await openInside(disk, base, path)
  try {
    return await contents.checksums(file)
  } finally {
    await file.close()
  }
}

function changed (): RefusedError {
  return new RefusedError('io_error', new Error('a file changed while its skill was being archived'))
}
