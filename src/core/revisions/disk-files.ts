import type { Disk } from '../read/disk.ts'
import type { FileCache, FilePlace, ServableFile } from '../read/file-cache.ts'
import type { FileContent } from '../read/file-content.ts'
import { changed } from '../read/refused.ts'
import { hasSameRules, type IndexedSkill } from '../read-skill.ts'
import { digestIn } from '../shared/skill.ts'
import { type ArchiveSource, diskSource } from './archive.ts'
import { KeptFiles, type KeptRevisions } from './kept-revisions.ts'
import type { Snapshot, Snapshots } from './snapshot.ts'
import type { StateFiles } from './state.ts'

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
    return inMemory === undefined ? diskSource((path) => this.#placeOf(path)) : new KeptFiles(inMemory).archiveSource()
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
