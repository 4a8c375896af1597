import { type MainFilePreference, orderMainFiles } from '../format/main-files.ts'
import type { ServableFile } from '../read/file-cache.ts'
import type { FileContent } from '../read/file-content.ts'
import { isNoMainFile, RefusedError } from '../read/refused.ts'
import { parseRelativePath } from '../read/relative-path.ts'
import type { IndexedSkill } from '../read-skill.ts'
import { fileError, mainFileError } from '../shared/errors.ts'
import { MAX_MAIN_FILE_BYTES, MAX_TEXT_FILE_BYTES } from '../shared/limits.ts'
import type { CatalogSkill, Finding, Manifest } from '../shared/skill.ts'
import { type ArchiveSource, createArchive, type SkillArchive } from './archive.ts'
import { fileSentence, mainFileSentence, skillSentence } from './refusal-sentences.ts'
import type { Snapshot } from './snapshot.ts'

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
