import { pathInside } from './path-inside.ts'
import { fileSentence, mainFileSentence, skillSentence } from './refusal-sentences.ts'
import { type MainFilePreference, orderMainFiles } from '../format/main-files.ts'
import { hasSameRules, type IndexedSkill } from '../read-skill.ts'
import type { Disk } from '../read/disk.ts'
import type { FileCache, FilePlace, ServableFile } from '../read/file-cache.ts'
import { FileContent } from '../read/file-content.ts'
import { changed, isNoMainFile, RefusedError } from '../read/refused.ts'
import { fileError, mainFileError } from '../shared/errors.ts'
import { MAX_MAIN_FILE_BYTES, MAX_TEXT_FILE_BYTES } from '../shared/limits.ts'
import { type CatalogSkill, digestIn, type Finding, type Manifest } from '../shared/skill.ts'
import { createArchive, diskSource, keptSource, type SkillArchive } from './archive.ts'
import type { KeptRevision, KeptRevisions } from './kept-revisions.ts'
import type { Snapshot, Snapshots } from './snapshot.ts'

/** A skill in one state: everything that is read of it agrees. Errors are `SkillError`s; `skill_changing` asks for another attempt. */
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

/** Whether a revision that an answer names is kept: always, only while there is room, or never. */
export type Keep = 'always' | 'if-room' | 'never'

export interface LiveStateParts {
  readonly disk: Disk
  /** The position of the skill's root. */
  readonly root: number
  readonly files: FileCache
  readonly snapshots: Snapshots
  readonly kept: KeptRevisions
  readonly keep: Keep
  /** Whether the root still lists its folder, under the same rules. */
  readonly isListed: () => Promise<boolean>
}

/** A skill as it is on the disk. */
export class LiveState implements SkillState {
  readonly skill: IndexedSkill
  readonly #parts: LiveStateParts
  #snapshot: Snapshot | undefined
  /** Digests of files that an answer has: a manifest that is made later must agree. */
  readonly #read = new Map<string, string>()

  constructor (skill: IndexedSkill, parts: LiveStateParts) {
    this.skill = skill
    this.#parts = parts
  }

  async manifest (): Promise<Manifest> {
    return (await this.#snapshotOnce()).manifest
  }

  async hasLinks (): Promise<boolean> {
    return (await this.#snapshotOnce()).hasLinks
  }

  async fileFindings (): Promise<readonly Finding[]> {
    return (await this.#snapshotOnce()).findings
  }

  async mainFile (preference: MainFilePreference = 'SKILL.md'): Promise<FileContent> {
    const { name, mainFiles, mainFile, refused } = this.skill
    if (refused !== undefined && mainFiles.length === 0) throw mainFileSentence(refused, name)
    const ordered = orderMainFiles(mainFiles, preference)
    // The catalog has just compared this file with the disk.
    const known = mainFile?.name === ordered[0] && mainFile !== undefined ? this.#parts.files.contentOf(mainFile.signature) : undefined
    if (known !== undefined && mainFile !== undefined) return this.#confirmed(mainFile.name, known)
    for (const path of ordered) {
      try {
        const { content } = await this.#parts.files.read(this.#placeOf(path), MAX_MAIN_FILE_BYTES)
        return this.#confirmed(path, content)
      } catch (error) {
        if (!(error instanceof RefusedError) || !isNoMainFile(error.refusal)) throw mainFileSentence(error, name)
      }
    }
    throw mainFileError.notFound(name)
  }

  async file (filePath: string): Promise<FileContent> {
    const { name, mainFiles } = this.skill
    const path = pathInside(name, mainFiles, filePath)
    try {
      const { content } = await this.#parts.files.read(this.#placeOf(path), MAX_TEXT_FILE_BYTES)
      await this.#confirmRules()
      return this.#confirmed(path, content)
    } catch (error) {
      throw fileSentence(error, name, filePath)
    }
  }

  async open (filePath: string): Promise<ServableFile> {
    const { name, mainFiles } = this.skill
    const path = pathInside(name, mainFiles, filePath)
    let file: ServableFile | undefined
    try {
      file = await this.#parts.files.open(this.#placeOf(path))
      await this.#confirmRules()
      const digest = file.kind === 'content' ? file.content.digest : file.digest
      if (digest !== undefined) this.#confirm(path, digest)
      return file
    } catch (error) {
      if (file?.kind === 'stream') await file.file.close()
      throw fileSentence(error, name, filePath)
    }
  }

  async archive (nameOf?: (path: string) => string): Promise<SkillArchive> {
    const snapshot = await this.#snapshotOnce()
    const { root, kept } = this.#parts
    const inMemory = kept.get(root, this.skill.name, snapshot.manifest.revision)
    return createArchive(snapshot, inMemory === undefined ? diskSource((path) => this.#placeOf(path)) : keptSource(inMemory), nameOf)
  }

  async #snapshotOnce (): Promise<Snapshot> {
    if (this.#snapshot !== undefined) return this.#snapshot
    const { skill } = this
    const { disk, snapshots, keep, kept, root } = this.#parts
    try {
      if (skill.refused?.refusal === 'changed') throw skill.refused
      const snapshot = await snapshots.of(disk, skill)
      await this.#confirmRules()
      const { mainFile, digest } = skill
      if (mainFile !== undefined && digest !== undefined && digestIn(snapshot.manifest, mainFile.name) !== digest) throw changed('the main file changed after the skill was read')
      for (const [path, before] of this.#read) if (digestIn(snapshot.manifest, path) !== before) throw changed('a file changed after it was read')
      if (keep !== 'never' && kept.wants(root, snapshot, keep === 'if-room')) await this.#keep(snapshot)
      this.#snapshot = snapshot
      return snapshot
    } catch (error) {
      throw skillSentence(error, skill.name)
    }
  }

  async #keep (snapshot: Snapshot): Promise<void> {
    const contents = new Map<string, Buffer>()
    for (const { path, digest, size_bytes: size } of snapshot.manifest.files) {
      const { content } = await this.#parts.files.read(this.#placeOf(path), size, false)
      if (content.digest !== digest) throw changed('a file changed before its revision was named')
      contents.set(path, content.bytes)
    }
    this.#parts.kept.keep(this.#parts.root, { ...snapshot, skill: this.skill, contents })
  }

  #placeOf (path: string): FilePlace {
    const { folder, filter } = this.skill
    return { disk: this.#parts.disk, folder: folder.realPath, path, filter }
  }

  /** A file that was hidden before it was written must stay hidden: rules are compared after the reading. */
  async #confirmRules (): Promise<void> {
    if (this.skill.filter === undefined) return
    if (!await hasSameRules(this.#parts.disk, this.skill) || !await this.#parts.isListed()) throw changed('what is hidden may have changed after the skill was read')
  }

  #confirmed (path: string, content: FileContent): FileContent {
    this.#confirm(path, content.digest)
    return content
  }

  /** @throws {RefusedError} `changed` when the skill or its manifest has other bytes under this path */
  #confirm (path: string, digest: string): void {
    if (path === this.skill.mainFile?.name && digest !== this.skill.digest) throw changed('the main file changed after the skill was read')
    if (this.#snapshot === undefined) this.#read.set(path, digest)
    else if ((digestIn(this.#snapshot.manifest, path) ?? digest) !== digest) throw changed('a file changed after the manifest was made')
  }
}

/** A revision that a skill had, from memory. */
export class KeptState implements SkillState {
  readonly #kept: KeptRevision

  constructor (kept: KeptRevision) {
    this.#kept = kept
  }

  get skill (): CatalogSkill {
    return this.#kept.skill
  }

  async manifest (): Promise<Manifest> {
    return this.#kept.manifest
  }

  async hasLinks (): Promise<boolean> {
    return this.#kept.hasLinks
  }

  async fileFindings (): Promise<readonly Finding[]> {
    return this.#kept.findings
  }

  async mainFile (preference: MainFilePreference = 'SKILL.md'): Promise<FileContent> {
    const { name, mainFiles } = this.#kept.skill
    for (const path of orderMainFiles(mainFiles, preference)) {
      const content = this.#contentAt(path)
      if (content === undefined) continue
      if (content.bytes.length > MAX_MAIN_FILE_BYTES) throw mainFileError.tooLarge(name)
      return content
    }
    throw mainFileError.notFound(name)
  }

  async file (filePath: string): Promise<FileContent> {
    const content = this.#fileAt(filePath)
    if (content.bytes.length > MAX_TEXT_FILE_BYTES) throw fileError.tooLarge(filePath, content.bytes.length)
    return content
  }

  async open (filePath: string): Promise<ServableFile> {
    return { kind: 'content', content: this.#fileAt(filePath) }
  }

  async archive (nameOf?: (path: string) => string): Promise<SkillArchive> {
    return createArchive(this.#kept, keptSource(this.#kept), nameOf)
  }

  #fileAt (filePath: string): FileContent {
    const { manifest: { files }, skill: { name, mainFiles } } = this.#kept
    const path = pathInside(name, mainFiles, filePath)
    const content = this.#contentAt(path)
    if (content !== undefined) return content
    const isFolder = path === '.' || files.some((file) => file.path.startsWith(path.endsWith('/') ? path : `${path}/`))
    throw isFolder ? fileError.isDirectory(filePath) : fileError.notFound(name, filePath)
  }

  #contentAt (path: string): FileContent | undefined {
    const bytes = this.#kept.contents.get(path)
    return bytes && new FileContent(bytes, digestIn(this.#kept.manifest, path))
  }
}
