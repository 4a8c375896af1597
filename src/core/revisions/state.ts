import { ZipArchive } from '../../archive/zip-writer.ts'
import type { Catalog } from '../catalog.ts'
import { type MainFilePreference, orderMainFiles } from '../format/main-files.ts'
import type { ServableFile } from '../read/file-cache.ts'
import type { FileContent } from '../read/file-content.ts'
import type { FilePlace } from '../read/open-inside.ts'
import { changed, isPassedOver, RefusedError } from '../read/refused.ts'
import type { Walk } from '../read/walk.ts'
import { parseRelativePath } from '../read/relative-path.ts'
import type { IndexedSkill } from '../read-skill.ts'
import { fileError, mainFileError, skillError } from '../shared/errors.ts'
import { MAX_ARCHIVE_BYTES, MAX_MAIN_FILE_BYTES, MAX_TEXT_FILE_BYTES } from '../shared/limits.ts'
import type { CatalogSkill, Manifest } from '../shared/skill.ts'
import type { KeptRevision } from './kept-revisions.ts'
import { fileSentence, mainFileSentence, skillSentence } from './refusal-sentences.ts'
import type { Snapshot } from './snapshot.ts'

/** A skill in one state. Errors are `SkillError`s with the tools' sentences; after `skill_changing` try again. */
export abstract class SkillState {
  readonly skill: CatalogSkill & Pick<IndexedSkill, 'mainFiles' | 'refused'>

  constructor (skill: SkillState['skill']) {
    this.skill = skill
  }

  /** All three throw RefusedErrors. */
  protected abstract takeSnapshot (): Promise<Snapshot>
  /** @param limit largest size in bytes */
  protected abstract readPath (path: string, limit: number): Promise<FileContent>
  protected abstract openPath (path: string): Promise<ServableFile>

  async snapshot (): Promise<Snapshot> {
    return await this.takeSnapshot().catch((error) => { throw skillSentence(error, this.skill.name) })
  }

  /** The same for lists, which wait for no single skill: undefined for one that takes long. */
  async listedSnapshot (): Promise<Snapshot | undefined> {
    return await this.snapshot()
  }

  async manifest (): Promise<Manifest> {
    return (await this.snapshot()).manifest
  }

  /** @param nameOf returns the name of a file in the archive; default: its path */
  async archive (nameOf = (path: string): string => path): Promise<ZipArchive> {
    const { manifest: { revision, files }, checksums } = await this.snapshot()
    const entries = files.map(({ path, size_bytes: size }) =>
      ({ path, name: Buffer.from(nameOf(path)), size, crc32: checksums.get(path)?.crc32 ?? 0 }))
    const archive = new ZipArchive(revision, entries, (path, start, end) => this.#chunks(path, start, end))
    if (archive.size > MAX_ARCHIVE_BYTES) throw skillError.archiveTooLarge(this.skill.name)
    return archive
  }

  async * #chunks (path: string, start: number, end: number): AsyncGenerator<Buffer> {
    try {
      const file = await this.openPath(path)
      try {
        if (file.kind === 'content') yield file.content.bytes.subarray(start, end + 1)
        else yield * file.chunks(start, end)
      } finally {
        if (file.kind === 'stream') await file.close()
      }
    } catch (error) {
      throw fileSentence(error, this.skill.name, path)
    }
  }

  /** Reads the main file. Throws the errors of `get_skill`. */
  async mainFile (preference: MainFilePreference = 'SKILL.md'): Promise<FileContent> {
    const { name, mainFiles, refused } = this.skill
    // Metadata and document must come from the same bytes.
    const isUnread = refused !== undefined && (mainFiles.length === 0 || refused.refusal === 'changed')
    if (isUnread) throw mainFileSentence(refused, name)
    const read = async (path: string): Promise<FileContent | undefined> => {
      try {
        return await this.readPath(path, MAX_MAIN_FILE_BYTES)
      } catch (error) {
        if (error instanceof RefusedError && isPassedOver(error.refusal)) return undefined
        throw mainFileSentence(error, name)
      }
    }
    const paths = orderMainFiles(mainFiles, preference)
    const [preferred = ''] = paths
    for (const path of paths) {
      const content = await read(path)
      if (content === undefined) continue
      // While its folder is moved away for a moment, the preferred file is not found.
      if (path !== preferred && await read(preferred) !== undefined) throw mainFileError.changing(name)
      return content
    }
    throw mainFileError.notFound(name)
  }

  /** A whole file, with `read_file_in_skill`'s sentences. */
  async file (filePath: string, limit = MAX_TEXT_FILE_BYTES): Promise<FileContent> {
    return await this.#at(filePath, (path) => this.readPath(path, limit))
  }

  /** Opens a file of any size. The caller closes it if it is a stream. */
  async open (filePath: string): Promise<ServableFile> {
    return await this.#at(filePath, (path) => this.openPath(path))
  }

  async #at<T> (filePath: string, use: (path: string) => Promise<T>): Promise<T> {
    const { name, mainFiles } = this.skill
    const path = pathInside(name, mainFiles, filePath)
    try {
      return await use(path)
    } catch (error) {
      throw fileSentence(error, name, filePath)
    }
  }
}

/** A skill on the disk. A read that does not match its indexed state fails with `changed`. */
export class PresentState extends SkillState {
  readonly #found: IndexedSkill
  readonly #catalog: Catalog
  readonly #isKept: boolean
  readonly #walk: Walk | undefined
  /** Of files of this state that were read, by path. */
  readonly #digests = new Map<string, string>()
  #snapshot: Snapshot | undefined

  /**
   * @param shown the skill with the findings that the caller sees
   * @param isKept whether a requested revision is kept
   * @param walk of the skill, if there is one
   */
  constructor (shown: SkillState['skill'], found: IndexedSkill, catalog: Catalog, isKept = true, walk?: Walk) {
    super(shown)
    this.#found = found
    this.#catalog = catalog
    this.#isKept = isKept
    this.#walk = walk
    const { mainFile, digest } = found
    if (mainFile !== undefined && digest !== undefined) this.#confirm(mainFile.name, digest)
  }

  protected async readPath (path: string, limit: number): Promise<FileContent> {
    const { files } = this.#catalog
    const { mainFile } = this.#found
    // The catalog has just compared the stamp of the main file with the disk.
    const known = path === mainFile?.name ? files.contentOf(mainFile.stamp) : undefined
    const content = known ?? (await files.read(this.#placeOf(path), limit)).content
    if (known === undefined) await this.#confirmRules()
    this.#confirm(path, content.digest)
    return content
  }

  protected async openPath (path: string): Promise<ServableFile> {
    const file = await this.#catalog.files.open(this.#placeOf(path))
    try {
      await this.#confirmRules()
      if (file.kind === 'content') this.#confirm(path, file.content.digest)
      else if (this.#digests.has(path)) this.#confirm(path, await file.readDigest() ?? '')
      return file
    } catch (error) {
      if (file.kind === 'stream') await file.close()
      throw error
    }
  }

  protected async takeSnapshot (): Promise<Snapshot> {
    this.#snapshot ??= await this.#confirmed(await this.#catalog.snapshots.of(this.#read(), this.#walk), false)
    return this.#snapshot
  }

  override async listedSnapshot (): Promise<Snapshot | undefined> {
    try {
      const listed = this.#snapshot ?? await this.#catalog.snapshots.ofListed(this.#read())
      this.#snapshot ??= listed && await this.#confirmed(listed, true)
      return this.#snapshot
    } catch (error) {
      throw skillSentence(error, this.skill.name)
    }
  }

  /** @throws {RefusedError} `changed` for a skill that could not be read in one state */
  #read (): IndexedSkill {
    const { refused } = this.#found
    if (refused?.refusal === 'changed') throw refused
    return this.#found
  }

  async #confirmed (snapshot: Snapshot, isListed: boolean): Promise<Snapshot> {
    await this.#confirmRules()
    for (const { path, digest } of snapshot.manifest.files) this.#confirm(path, digest)
    if (this.#digests.size > snapshot.manifest.files.length) throw changed('a file was removed after it was read')
    if (!this.#isKept) return snapshot
    await this.#catalog.kept.keep(this.#found, snapshot, isListed, async ({ path, digest, size_bytes: size }) => {
      const { content } = await this.#catalog.files.read(this.#placeOf(path), size, false)
      if (content.digest !== digest) throw changed('a file changed before its revision was named')
      return content
    })
    return snapshot
  }

  /** Takes kept bytes if there are any, so that a download survives an edit. */
  override async archive (nameOf?: (path: string) => string): Promise<ZipArchive> {
    const { revision } = await this.manifest()
    const kept = this.#catalog.kept.get(this.#found.root, this.skill.name, revision)
    return await (kept === undefined ? super.archive(nameOf) : new KeptState(kept).archive(nameOf))
  }

  /** @throws {RefusedError} `changed` when nobody knows which files are hidden: an ignore file was being written */
  #placeOf (path: string): FilePlace {
    const { root: { disk }, folder, filter, mainFiles, refused } = this.#found
    if (mainFiles.length === 0 && refused?.refusal === 'changed') throw refused
    return { disk, folder: folder.realPath, path, filter }
  }

  /** To be called after a read: a file that was hidden before it was written must stay hidden. */
  async #confirmRules (): Promise<void> {
    if (this.#found.filter === undefined || await this.#catalog.hasSameRules(this.#found)) return
    throw changed('an ignore file may have changed after the skill was read')
  }

  /** @throws {RefusedError} `changed` when the digest differs from that of an earlier read */
  #confirm (path: string, digest: string): void {
    if ((this.#digests.get(path) ?? digest) !== digest) throw changed('a file changed after the skill was read')
    this.#digests.set(path, digest)
  }
}

/** A kept revision. */
export class KeptState extends SkillState {
  readonly #kept: KeptRevision

  constructor (kept: KeptRevision) {
    super(kept.skill)
    this.#kept = kept
  }

  protected async takeSnapshot (): Promise<Snapshot> {
    return this.#kept
  }

  protected async readPath (path: string, limit: number): Promise<FileContent> {
    const content = this.#kept.contents.get(path)
    if (content === undefined) throw new RefusedError(this.#isFolder(path) ? 'is_directory' : 'not_found')
    const { length } = content.bytes
    if (length > limit) throw new RefusedError('too_large', undefined, BigInt(length))
    return content
  }

  protected async openPath (path: string): Promise<ServableFile> {
    return { kind: 'content', content: await this.readPath(path, Infinity) }
  }

  #isFolder (path: string): boolean {
    const prefix = path.endsWith('/') ? path : `${path}/`
    return path === '.' || this.#kept.manifest.files.some((file) => file.path.startsWith(prefix))
  }
}

function pathInside (name: string, mainFiles: readonly string[], filePath: string): string {
  const parsed = parseRelativePath(filePath)
  if (parsed.kind === 'empty') throw fileError.invalidPath()
  if (parsed.kind === 'outside') throw fileError.traversal()
  if (parsed.kind === 'unusable') throw fileError.notFound(name, filePath)
  const { path } = parsed
  // At the top of a skill, `SKILL.md` and `SKILL.MD` both mean the main file, whatever its casing.
  if ((path !== 'SKILL.md' && path !== 'SKILL.MD') || mainFiles.includes(path)) return path
  return orderMainFiles(mainFiles, path)[0] ?? path
}
