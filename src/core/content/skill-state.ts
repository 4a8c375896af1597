import { setTimeout as pause } from 'node:timers/promises'
import { type Awaitable, orElse, whenReady } from '../ground/async.ts'
import type { IndexedSkill } from '../catalog/catalog.ts'
import { describeSkill } from '../catalog/index-skill.ts'
import type { LiveCatalog } from '../catalog/live-catalog.ts'
import { isNoMainFile, type MainFilePreference, orderMainFiles } from '../catalog/main-files.ts'
import type { Roots } from '../catalog/roots.ts'
import type { Disk } from '../disk/disk.ts'
import { changed, RefusedError } from '../disk/refused.ts'
import { parseRelativePath } from '../disk/relative-path.ts'
import { documentError, fileError, SkillError, skillError, SkillUnreadError } from '../ground/errors.ts'
import type { FileContent } from '../files/file-content.ts'
import type { FilePlace, FileStore, ServableFile } from '../files/file-store.ts'
import { MAX_CHANGE_PAUSE_MS, MAX_CHANGE_WAIT_MS, MAX_LISTED_CHANGE_WAIT_MS, MAX_MAIN_FILE_BYTES, MAX_TEXT_FILE_BYTES } from '../ground/limits.ts'
import type { CatalogSkill, Finding } from '../ground/skill.ts'
import { createArchive, diskSource, keptSource, type SkillArchive } from './archive.ts'
import type { KeptRevision, KeptRevisions } from './kept-revisions.ts'
import type { Manifest, ManifestStore, Snapshot } from './manifest.ts'
import { documentSentence, fileSentence, skillSentence } from './refusal-sentences.ts'

/**
 * One skill in one state: its index entry, its manifest, and the bytes of its files. What is read through it agrees; a
 * difference fails with `skill_changing`, and the whole answer is made again. Errors are `SkillError`s.
 */
export interface SkillState {
  readonly skill: CatalogSkill
  /** All files and the revision. */
  manifest (): Promise<Manifest>
  /** What is to be said of files that are not in the manifest. */
  fileFindings (): Promise<readonly Finding[]>
  /** The main file, with `get_skill`'s sentences when there is none. Default preference: `SKILL.md`. */
  mainFile (preference?: MainFilePreference): Awaitable<FileContent>
  /** A file up to MAX_TEXT_FILE_BYTES, with `read_file_in_skill`'s sentences. */
  file (path: string): Awaitable<FileContent>
  /** A file of any size; an open one is closed by the caller. */
  open (path: string): Awaitable<ServableFile>
  /** @param nameOf what a file of the manifest is called in the archive; default: its path */
  archive (nameOf?: (path: string) => string): Promise<SkillArchive>
}

export interface SkillStatesOptions {
  readonly roots: Roots
  readonly catalog: LiveCatalog
  readonly store: FileStore
  readonly manifests: ManifestStore
  readonly kept: KeptRevisions
}

/** How often a failure is taken for the disk's doing when the skill is no longer what it was. */
const MAX_ATTEMPTS = 8

/** Gives states of skills as they are on the disk, and owns the one loop that asks again when they change meanwhile. */
export class SkillStates {
  readonly #options: SkillStatesOptions

  constructor (options: SkillStatesOptions) {
    this.#options = options
  }

  /**
   * What `answer` makes of a skill, in the same turn of the event loop when all of it is in memory and holds. If the skill's folder was replaced meanwhile, a failure is discarded and computed again
   * on the new folder, at most MAX_ATTEMPTS times. If the skill changed between two reads, the answer waits for a state
   * that holds, at most MAX_CHANGE_WAIT_MS.
   * @param find the skill as it is now
   * @param name what the caller calls it
   * @param isListed for a list of many skills: it waits MAX_LISTED_CHANGE_WAIT_MS, and not for files that are read for long
   * @throws {SkillError} `skill_not_found`, `skill_changing`, and what `answer` throws
   */
  read<T> (
    name: string, find: () => Awaitable<IndexedSkill | undefined>, answer: (state: LiveState) => Awaitable<T>, isListed = false
  ): Awaitable<T> {
    const { catalog, roots, store } = this.#options
    const giveUpAt = performance.now() + (isListed ? MAX_LISTED_CHANGE_WAIT_MS : MAX_CHANGE_WAIT_MS)
    return attempt(1, this.#options)

    function attempt (count: number, options: SkillStatesOptions): Awaitable<T> {
      const since = store.readCount
      return whenReady(find(), (skill) => {
        if (skill === undefined) throw documentError.skillNotFound(name)
        const root = roots.signatureOf(skill.folder)
        return orElse(() => answer(new LiveState(options, skill, since, isListed)), async (error) => {
          if (!(error instanceof SkillError)) throw error
          if (error.code === 'skill_changing') {
            if (error instanceof SkillUnreadError || performance.now() >= giveUpAt) throw error
            await pause(Math.min(2 ** count, MAX_CHANGE_PAUSE_MS))
          } else if (count === MAX_ATTEMPTS || performance.now() >= giveUpAt || await catalog.isStill(skill, root)) throw error
          return await attempt(count + 1, options)
        })
      })
    }
  }
}

/** A skill as it is on the disk. */
export class LiveState implements SkillState {
  readonly skill: IndexedSkill
  readonly disk: Disk
  readonly #options: SkillStatesOptions
  /** The store's `readCount` when the question was asked. */
  readonly #since: number
  readonly #isListed: boolean
  #snapshot: Snapshot | undefined
  /** What was given out: a manifest that is made later must agree. */
  readonly #given: Array<readonly [path: string, digest: string]> = []

  constructor (options: SkillStatesOptions, skill: IndexedSkill, since: number, isListed: boolean) {
    this.skill = skill
    this.disk = options.roots.diskOf(skill.folder)
    this.#options = options
    this.#since = since
    this.#isListed = isListed
  }

  async manifest (): Promise<Manifest> {
    return (await this.#snapshotOnce()).manifest
  }

  async fileFindings (): Promise<readonly Finding[]> {
    return (await this.#snapshotOnce()).findings
  }

  mainFile (preference: MainFilePreference = 'SKILL.md'): Awaitable<FileContent> {
    const { name, mainFiles, refused } = this.skill
    if (refused !== undefined && (mainFiles.length === 0 || refused.refusal === 'changed')) throw documentSentence(refused, name)
    return this.#firstMainFile(orderMainFiles(mainFiles, preference))
  }

  file (filePath: string): Awaitable<FileContent> {
    const { name, mainFiles } = this.skill
    const path = pathInside(name, mainFiles, filePath)
    return orElse(() => this.#read(path, MAX_TEXT_FILE_BYTES), (error) => { throw fileSentence(error, name, filePath) })
  }

  open (filePath: string): Awaitable<ServableFile> {
    const { name, mainFiles } = this.skill
    const path = pathInside(name, mainFiles, filePath)
    return orElse(() => whenReady(this.#options.store.open(this.#placeOf(path), this.#since), (file) => this.#confirmOpen(path, file)),
      (error) => { throw fileSentence(error, name, filePath) })
  }

  async archive (nameOf?: (path: string) => string): Promise<SkillArchive> {
    const snapshot = await this.#snapshotOnce()
    const { manifest: { revision } } = snapshot
    const kept = this.#options.kept.get(this.skill.name, revision)
    const source = kept === undefined ? diskSource(this.disk, this.skill.folder.realPath, snapshot, this.skill.filter) : keptSource(kept)
    return createArchive(snapshot, source, nameOf)
  }

  #firstMainFile ([path, ...others]: readonly string[]): Awaitable<FileContent> {
    const { name } = this.skill
    if (path === undefined) throw documentError.notFound(name)
    return orElse(() => this.#read(path, MAX_MAIN_FILE_BYTES), (error) => {
      if (error instanceof RefusedError && isNoMainFile(error.refusal)) return this.#firstMainFile(others)
      throw documentSentence(error, name)
    })
  }

  #read (path: string, limit: number): Awaitable<FileContent> {
    return whenReady(this.#options.store.read(this.#placeOf(path), limit, this.#since), ({ content }) => {
      this.#confirm(path, content.digest)
      return content
    })
  }

  #confirmOpen (path: string, file: ServableFile): Awaitable<ServableFile> {
    try {
      const digest = file.kind === 'content' ? file.content.digest : file.digest
      if (digest !== undefined) this.#confirm(path, digest)
      return file
    } catch (error) {
      if (file.kind === 'content') throw error
      return whenReady<void, ServableFile>(file.file.close(), () => { throw error })
    }
  }

  async #snapshotOnce (): Promise<Snapshot> {
    if (this.#snapshot !== undefined) return this.#snapshot
    const { name, mainFile, digest } = this.skill
    const { manifests } = this.#options
    try {
      const snapshot = await (this.#isListed ? manifests.getSoon(this.disk, this.skill, this.#since) : manifests.get(this.disk, this.skill, this.#since))
      if (snapshot === undefined) throw skillError.unread(name)
      this.#snapshot = snapshot
      if (mainFile !== undefined && digest !== undefined) this.#confirm(mainFile.name, digest)
      for (const [path, given] of this.#given) this.#confirm(path, given)
      return snapshot
    } catch (error) {
      throw skillSentence(error, name)
    }
  }

  #placeOf (path: string): FilePlace {
    const { folder, filter } = this.skill
    return { disk: this.disk, folder: folder.realPath, path, filter }
  }

  /** @throws {RefusedError} `changed` when the index entry or the manifest has other bytes under this path */
  #confirm (path: string, digest: string): void {
    const { mainFile, digest: indexed } = this.skill
    if (path === mainFile?.name && digest !== indexed) throw changed('the main file changed after the index was read')
    if (this.#snapshot !== undefined) {
      const listed = this.#snapshot.manifest.files.find((file) => file.path === path)
      if (listed !== undefined && listed.digest !== digest) throw changed('a file changed after the manifest was made')
      return
    }
    this.#given.push([path, digest])
  }
}

/** A revision that the skill had, from memory. */
export class KeptState implements SkillState {
  readonly skill: CatalogSkill
  readonly filterId: string | undefined
  readonly #kept: KeptRevision

  constructor (kept: KeptRevision) {
    const { folder, mainFiles } = kept
    this.#kept = kept
    this.filterId = kept.filterId
    const name = orderMainFiles(mainFiles, 'SKILL.md')[0]
    const content = name === undefined ? undefined : this.#contentOf(name)
    this.skill = describeSkill(folder, { mainFiles, main: name !== undefined && content !== undefined ? { name, content } : undefined, shadowing: false })
  }

  async manifest (): Promise<Manifest> {
    return this.#kept.manifest
  }

  async fileFindings (): Promise<readonly Finding[]> {
    return []
  }

  async mainFile (preference: MainFilePreference = 'SKILL.md'): Promise<FileContent> {
    const path = orderMainFiles(this.#kept.mainFiles, preference)[0]
    const content = path === undefined ? undefined : this.#contentOf(path)
    if (content === undefined) throw documentError.notFound(this.skill.name)
    if (content.bytes.length > MAX_MAIN_FILE_BYTES) throw documentError.tooLarge(this.skill.name)
    return content
  }

  async file (filePath: string): Promise<FileContent> {
    const content = this.#fileAt(filePath)
    if (content.bytes.length > MAX_TEXT_FILE_BYTES) throw fileError.tooLarge(filePath, content.bytes.length, MAX_TEXT_FILE_BYTES)
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

  #contentOf (path: string): FileContent | undefined {
    const { manifest: { files }, contents } = this.#kept
    const file = files.find((each) => each.path === path)
    return file && contents.get(file.digest)
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
