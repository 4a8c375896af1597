import { describeSkill } from '../../catalog/index-skill.ts'
import { mainFileAmong, type MainFilePreference, orderMainFiles } from '../../format/main-files.ts'
import { RefusedError } from '../../disk/refused.ts'
import { FileContent } from '../../files/file-content.ts'
import { fileKind } from '../../files/file-kind.ts'
import type { ServableFile } from '../../files/file-store.ts'
import { mainFileError, fileError } from '../../shared/errors.ts'
import { MAX_MAIN_FILE_BYTES, MAX_TEXT_FILE_BYTES } from '../../shared/limits.ts'
import { type CatalogSkill, digestIn, type Finding, type Manifest } from '../../shared/skill.ts'
import { createArchive, keptSource, type SkillArchive } from '../archive.ts'
import { contentFindings } from '../file-findings.ts'
import type { KeptRevision } from './kept-revisions.ts'
import { pathInside } from '../path-inside.ts'
import type { SkillState } from '../skill-state.ts'

/** A revision that the skill had, from memory. */
export class KeptState implements SkillState {
  readonly skill: CatalogSkill
  readonly #kept: KeptRevision

  constructor (kept: KeptRevision) {
    const { folder, mainFiles } = kept
    this.#kept = kept
    const name = mainFileAmong(mainFiles)
    const content = name === undefined ? undefined : this.#contentOf(name)
    // As of the index of a skill that is there, which reads no such file.
    const refused = content !== undefined && content.bytes.length > MAX_MAIN_FILE_BYTES ? new RefusedError('too_large') : undefined
    this.skill = describeSkill(folder, { mainFiles, main: name !== undefined && content !== undefined && refused === undefined ? { name, content } : undefined, refused })
  }

  async manifest (): Promise<Manifest> {
    return this.#kept.manifest
  }

  async fileFindings (): Promise<readonly Finding[]> {
    const { manifest: { files }, contents } = this.#kept
    return contentFindings(files, new Map(files.flatMap(({ path, digest }) => {
      const bytes = contents.get(digest)
      const kind = bytes && fileKind(bytes)
      return kind === undefined ? [] : [[path, kind] as const]
    })))
  }

  async mainFile (preference: MainFilePreference = 'SKILL.md'): Promise<FileContent> {
    const path = orderMainFiles(this.#kept.mainFiles, preference)[0]
    const content = path === undefined ? undefined : this.#contentOf(path)
    if (content === undefined) throw mainFileError.notFound(this.skill.name)
    if (content.bytes.length > MAX_MAIN_FILE_BYTES) throw mainFileError.tooLarge(this.skill.name)
    return content
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
    const { manifest: { files }, mainFiles } = this.#kept
    const path = pathInside(this.skill.name, mainFiles, filePath)
    const content = this.#contentOf(path)
    if (content !== undefined) return content
    const isFolder = path === '.' || files.some((file) => file.path.startsWith(path.endsWith('/') ? path : `${path}/`))
    throw isFolder ? fileError.isDirectory(filePath) : fileError.notFound(this.skill.name, filePath)
  }

  /** A new one each time: its text and renderings go with the answer, and only the bytes stay in memory. */
  #contentOf (path: string): FileContent | undefined {
    const { manifest, contents } = this.#kept
    const digest = digestIn(manifest, path)
    const bytes = digest && contents.get(digest)
    return bytes ? new FileContent(bytes, digest) : undefined
  }
}
