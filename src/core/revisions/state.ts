import { type MainFilePreference, orderMainFiles } from '../format/main-files.ts'
import type { Disk } from '../read/disk.ts'
import type { FileCache, FilePlace, ServableFile } from '../read/file-cache.ts'
import { FileContent } from '../read/file-content.ts'
import { changed, isNoMainFile, RefusedError } from '../read/refused.ts'
import { parseRelativePath } from '../read/relative-path.ts'
import { hasSameRules, type IndexedSkill } from '../read-skill.ts'
import { fileError, mainFileError } from '../shared/errors.ts'
import { MAX_MAIN_FILE_BYTES, MAX_TEXT_FILE_BYTES } from '../shared/limits.ts'
import { type CatalogSkill, digestIn, type Finding, type Manifest } from '../shared/skill.ts'
import { type ArchiveSource, createArchive, diskSource, memorySource, type SkillArchive } from './archive.ts'
import type { KeptRevision, KeptRevisions } from './kept-revisions.ts'
import { fileSentence, mainFileSentence, skillSentence } from './refusal-sentences.ts'
import type { Snapshot, Snapshots } from './snapshot.ts'

/**
 * A skill in one state: everything that is read of it agrees. Errors are `SkillError`s; `skill_changing` asks for
 * another attempt.
 */
export interface SkillState {
  readonly skill: CatalogSkill
  /** All files and the revision. */
  manifest (): Promise<Manifest>
  /** Whether a file of the skill, or one that was left out of the manifest, is a symbolic link. */
  hasLinks (): Promise<boolean>
  /** Findings about files left out of the manifest, and about the bytes of those in it. */
  fileFindings (): Promise<readonly Finding[]>
  /** The main file, with `get_skill`'s sentences when there is none. Default preference: `SKILL.md`. */
  mainFile (preference?: MainFilePreference): Promise<FileContent>
  /** A file up to MAX_TEXT_FILE_BYTES, with `read_file_in_skill`'s sentences. */
  file (path: string): Promise<FileContent>
  /** A file of any size; an open one is closed by the caller. */
  open (path: string): Promise<ServableFile>
  /** @param nameOf what a file of the manifest is called in the archive; default: its path */
  archive (nameOf?: (path: string) => string): Promise<SkillArchive>
}

/** The files of one state: on the disk, or in memory. Errors are `RefusedError`s. */
export interface StateFiles {
  snapshot (): Promise<Snapshot>
  /** @param limit most bytes */
  read (path: string, limit: number): Promise<FileContent>
  open (path: string): Promise<ServableFile>
  archiveSource (snapshot: Snapshot): ArchiveSource
}

/** A state of a skill by its files, with the sentences of the tools for what is refused. */
export class FileState implements SkillState {
  readonly skill: CatalogSkill & Pick<IndexedSkill, 'mainFiles' | 'refused'>
  readonly #files: StateFiles

  constructor (skill: FileState['skill'], files: StateFiles) {
    this.skill = skill
    this.#files = files
  }

  async manifest (): Promise<Manifest> {
    return (await this.#snapshot()).manifest
  }

  async hasLinks (): Promise<boolean> {
    return (await this.#snapshot()).hasLinks
  }

  async fileFindings (): Promise<readonly Finding[]> {
    return (await this.#snapshot()).findings
  }

  async archive (nameOf?: (path: string) => string): Promise<SkillArchive> {
    const snapshot = await this.#snapshot()
    return createArchive(snapshot, this.#files.archiveSource(snapshot), nameOf)
  }

  async mainFile (preference: MainFilePreference = 'SKILL.md'): Promise<FileContent> {
    const { name, mainFiles, refused } = this.skill
    // What the skill says of itself must come from the same bytes.
    const isUnread = refused !== undefined && (mainFiles.length === 0 || refused.refusal === 'changed')
    if (isUnread) throw mainFileSentence(refused, name)
    for (const path of orderMainFiles(mainFiles, preference)) {
      try {
        return await this.#files.read(path, MAX_MAIN_FILE_BYTES)
      } catch (error) {
        if (!(error instanceof RefusedError) || !isNoMainFile(error.refusal)) throw mainFileSentence(error, name)
      }
    }
    throw mainFileError.notFound(name)
  }

  async file (filePath: string): Promise<FileContent> {
    return await this.#at(filePath, (path) => this.#files.read(path, MAX_TEXT_FILE_BYTES))
  }

  async open (filePath: string): Promise<ServableFile> {
    return await this.#at(filePath, (path) => this.#files.open(path))
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

  async #snapshot (): Promise<Snapshot> {
    try {
      return await this.#files.snapshot()
    } catch (error) {
      throw skillSentence(error, this.skill.name)
    }
  }
}

/** Whether a revision that an answer names is kept: always, only while there is room, or never. */
export type Keep = 'always' | 'if-room' | 'never'

export interface DiskFilesParts {
  readonly disk: Disk
  /** The position of the skill's root. */
  readonly root: number
  readonly files: FileCache
  readonly snapshots: Snapshots
  readonly kept: KeptRevisions
  readonly keep: Keep
  /** Whether the root still lists the skill's folder, under the same rules. */
  readonly isListed: () => Promise<boolean>
}

/** The files of a skill as it is on the disk. What is not of the state that the skill was read in is `changed`. */
export class DiskFiles implements StateFiles {
  readonly #skill: IndexedSkill
  readonly #parts: DiskFilesParts
  #snapshot: Snapshot | undefined
  /** Digests of files that an answer has: a manifest that is made later must agree. */
  readonly #read = new Map<string, string>()

  constructor (skill: IndexedSkill, parts: DiskFilesParts) {
    this.#skill = skill
    this.#parts = parts
  }

  async read (path: string, limit: number): Promise<FileContent> {
    const { mainFile } = this.#skill
    // The catalog has just compared this file with the disk.
    const known = path === mainFile?.name ? this.#parts.files.contentOf(mainFile.signature) : undefined
    if (known !== undefined) return this.#confirmed(path, known)
    const { content } = await this.#parts.files.read(this.#placeOf(path), limit)
    await this.#confirmRules()
    return this.#confirmed(path, content)
  }

  async open (path: string): Promise<ServableFile> {
    const file = await this.#parts.files.open(this.#placeOf(path))
    try {
      await this.#confirmRules()
      const digest = file.kind === 'content' ? file.content.digest : file.digest
      if (digest !== undefined) this.#confirm(path, digest)
      return file
    } catch (error) {
      if (file.kind === 'stream') await file.file.close()
      throw error
    }
  }

  async snapshot (): Promise<Snapshot> {
    if (this.#snapshot !== undefined) return this.#snapshot
    const { disk, snapshots, keep, kept, root } = this.#parts
    const { mainFile, digest, refused } = this.#skill
    if (refused?.refusal === 'changed') throw refused
    const snapshot = await snapshots.of(disk, this.#skill)
    await this.#confirmRules()
    if (mainFile !== undefined && digest !== undefined) this.#read.set(mainFile.name, digest)
    for (const [path, before] of this.#read) {
      if (digestIn(snapshot.manifest, path) !== before) throw changed('a file changed after it was read')
    }
    if (keep !== 'never' && kept.wants(root, snapshot, keep === 'if-room')) await this.#keep(snapshot)
    this.#snapshot = snapshot
    return snapshot
  }

  archiveSource ({ manifest }: Snapshot): ArchiveSource {
    const inMemory = this.#parts.kept.get(this.#parts.root, this.#skill.name, manifest.revision)
    return inMemory === undefined ? diskSource((path) => this.#placeOf(path)) : memorySource(inMemory.contents)
  }

  async #keep (snapshot: Snapshot): Promise<void> {
    const contents = new Map<string, Buffer>()
    for (const { path, digest, size_bytes: size } of snapshot.manifest.files) {
      const { content } = await this.#parts.files.read(this.#placeOf(path), size, false)
      if (content.digest !== digest) throw changed('a file changed before its revision was named')
      contents.set(path, content.bytes)
    }
    this.#parts.kept.keep({ ...snapshot, root: this.#parts.root, skill: this.#skill, contents })
  }

  #placeOf (path: string): FilePlace {
    const { folder, filter } = this.#skill
    return { disk: this.#parts.disk, folder: folder.realPath, path, filter }
  }

  /** A file that was hidden before it was written must stay hidden: rules are compared after the reading. */
  async #confirmRules (): Promise<void> {
    if (this.#skill.filter === undefined) return
    if (await hasSameRules(this.#parts.disk, this.#skill) && await this.#parts.isListed()) return
    throw changed('what is hidden may have changed after the skill was read')
  }

  #confirmed (path: string, content: FileContent): FileContent {
    this.#confirm(path, content.digest)
    return content
  }

  /** @throws {RefusedError} `changed` when the skill or its manifest has other bytes under this path */
  #confirm (path: string, digest: string): void {
    const isMainFile = path === this.#skill.mainFile?.name
    const before = isMainFile ? this.#skill.digest : this.#snapshot && digestIn(this.#snapshot.manifest, path)
    if (isMainFile ? before !== digest : (before ?? digest) !== digest) {
      throw changed('a file changed after the skill was read')
    }
    if (this.#snapshot === undefined) this.#read.set(path, digest)
  }
}

/** The files of a kept revision. */
export class KeptFiles implements StateFiles {
  readonly #kept: KeptRevision

  constructor (kept: KeptRevision) {
    this.#kept = kept
  }

  async snapshot (): Promise<Snapshot> {
    return this.#kept
  }

  async read (path: string, limit: number): Promise<FileContent> {
    const { contents, manifest } = this.#kept
    const bytes = contents.get(path)
    if (bytes === undefined) throw new RefusedError(this.#isFolder(path) ? 'is_directory' : 'not_found')
    if (bytes.length > limit) throw new RefusedError('too_large', undefined, BigInt(bytes.length))
    return new FileContent(bytes, digestIn(manifest, path))
  }

  async open (path: string): Promise<ServableFile> {
    return { kind: 'content', content: await this.read(path, Infinity) }
  }

  archiveSource (): ArchiveSource {
    return memorySource(this.#kept.contents)
  }

  #isFolder (path: string): boolean {
    const prefix = path.endsWith('/') ? path : `${path}/`
    return path === '.' || this.#kept.manifest.files.some((file) => file.path.startsWith(prefix))
  }
}

/** Where a caller's path leads in a skill, by its text alone. */
function pathInside (name: string, mainFiles: readonly string[], filePath: string): string {
  const parsed = parseRelativePath(filePath)
  switch (parsed.kind) {
    case 'empty': throw fileError.invalidPath()
    case 'outside': throw fileError.traversal()
    case 'unusable': throw fileError.notFound(name, filePath)
    case 'inside': return withMainFileFallback(mainFiles, parsed.path)
  }
}

/** At the top of a skill, the two usual spellings mean the main file that is there. */
function withMainFileFallback (mainFiles: readonly string[], path: string): string {
  if ((path !== 'SKILL.md' && path !== 'SKILL.MD') || mainFiles.includes(path)) return path
  return orderMainFiles(mainFiles, path)[0] ?? path
}
