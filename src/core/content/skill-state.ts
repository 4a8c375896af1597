import { setTimeout as pause } from 'node:timers/promises'
import type { IndexedSkill } from '../catalog/catalog.ts'
import type { LiveCatalog } from '../catalog/live-catalog.ts'
import { type MainFilePreference, orderMainFiles } from '../format/main-files.ts'
import type { Root } from '../roots/root.ts'
import type { Disk } from '../disk/disk.ts'
import { changed, isNoMainFile, RefusedError } from '../disk/refused.ts'
import { mainFileError, SkillError, skillError, SkillTooLargeError, SkillUnreadError } from '../shared/errors.ts'
import type { FileContent } from '../files/file-content.ts'
import type { FilePlace, FileStore, ServableFile } from '../files/file-store.ts'
import { MAX_ATTEMPTS, MAX_MAIN_FILE_BYTES, MAX_TEXT_FILE_BYTES } from '../shared/limits.ts'
import type { CatalogSkill, Finding, Manifest } from '../shared/skill.ts'
import { checkedSource, createArchive, diskSource, keptSource, type SkillArchive } from './archive.ts'
import type { KeptRevisions } from './kept/kept-revisions.ts'
import type { Gate } from './trust/gate.ts'
import type { ManifestStore, RevisionUse, Snapshot } from './manifest.ts'
import { pathInside } from './path-inside.ts'
import { mainFileSentence, fileSentence, skillSentence } from './refusal-sentences.ts'
import type { Verdict } from './trust/trust-policy.ts'

/** How long an answer waits for a state of a skill that holds, in milliseconds, and the longest pause between two attempts. */
export const MAX_CHANGE_WAIT_MS = 2_000
const MAX_CHANGE_PAUSE_MS = 64

/** The same wait of a list of many skills, for each of them. */
const MAX_LISTED_CHANGE_WAIT_MS = 100

/**
 * One skill in one state: its index entry, its manifest, and the bytes of its files. What is read through it agrees; a
 * difference fails with `skill_changing`, and the whole answer is made again. Errors are `SkillError`s.
 */
export interface SkillState {
  readonly skill: CatalogSkill
  /** All files and the revision. */
  manifest (): Promise<Manifest>
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

export interface SkillStatesOptions {
  readonly root: Root
  readonly catalog: LiveCatalog
  readonly store: FileStore
  readonly manifests: ManifestStore
  readonly kept: KeptRevisions
  /** Lets only those states through that a policy serves. Default: all. */
  readonly gate?: Gate | undefined
}

/** Gives states of skills as they are on the disk, and owns the one loop that asks again when they change meanwhile. */
export class SkillStates {
  readonly #options: SkillStatesOptions

  constructor (options: SkillStatesOptions) {
    this.#options = options
  }

  /**
   * What `answer` makes of a skill. If the skill's folder was replaced meanwhile, a failure is discarded and computed again
   * on the new folder, at most MAX_ATTEMPTS times. If the skill changed between two reads, the answer waits for a state
   * that holds, at most MAX_CHANGE_WAIT_MS, or for two attempts that take longer.
   * @param find the skill as it is now
   * @param name what the caller calls it
   * @param isListed for a list of many skills: it waits MAX_LISTED_CHANGE_WAIT_MS, and not for files that are read for long
   * @throws {SkillError} `skill_not_found`, `skill_changing`, and what `answer` throws
   */
  async read<T> (
    name: string, find: () => Promise<IndexedSkill | undefined>, answer: (state: LiveState) => Promise<T>, isListed = false
  ): Promise<T> {
    const { catalog, root, store, gate } = this.#options
    const giveUpAt = performance.now() + (isListed ? MAX_LISTED_CHANGE_WAIT_MS : MAX_CHANGE_WAIT_MS)
    for (let count = 1; ; count++) {
      const since = store.readCount
      const skill = await find()
      if (skill === undefined) throw mainFileError.skillNotFound(name)
      const { signature } = root
      try {
        const state = new LiveState(this.#options, skill, since, isListed)
        if (gate?.guards() === true) await state.guard()
        return await answer(state)
      } catch (error) {
        if (!(error instanceof SkillError)) throw error
        if (error.code === 'skill_changing') {
          // On a slow disk, or a busy machine, one attempt can take longer than the whole wait, and one edit makes it worthless.
          const isOver = performance.now() >= giveUpAt && (isListed || count > 1)
          if (isOver || error instanceof SkillUnreadError) throw error
          await catalog.confirmPlace(skill.folder)
          await pause(Math.min(2 ** count, MAX_CHANGE_PAUSE_MS))
        } else if (count === MAX_ATTEMPTS || performance.now() >= giveUpAt || await catalog.isStill(skill, signature)) throw error
      }
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
  /** Whether only bytes of the checked manifest are given out. */
  #isGuarded = false
  /** Files whose bytes an answer has: a manifest that is made later must agree. */
  readonly #handedOut: Array<readonly [path: string, digest: string]> = []

  constructor (options: SkillStatesOptions, skill: IndexedSkill, since: number, isListed: boolean) {
    this.skill = skill
    this.disk = options.root.disk
    this.#options = options
    this.#since = since
    this.#isListed = isListed
  }

  async manifest (): Promise<Manifest> {
    return (await this.#snapshotOnce()).manifest
  }

  /** The present revision, for a comparison: no answer names it. */
  async revision (): Promise<string> {
    return (await this.#snapshotOnce('compared')).manifest.revision
  }

  async trust (): Promise<Verdict | undefined> {
    const { gate } = this.#options
    if (gate === undefined) return undefined
    const snapshot = await this.#snapshotOnce('listed')
    try {
      return await gate.judge(this.skill.folder, snapshot)
    } catch (error) {
      throw skillSentence(error, this.skill.name)
    }
  }

  /**
   * Has the policy check this state: from then on only bytes of the checked manifest are given out.
   * @throws {SkillError} `skill_not_found` when the policy does not serve it
   */
  async guard (): Promise<void> {
    this.#isGuarded = true
    const { gate, catalog } = this.#options
    const { folder, name } = this.skill
    try {
      if ((await this.trust())?.isServed !== false) return
    } catch (error) {
      if (!(error instanceof SkillTooLargeError)) throw error
      gate?.refuse(folder, error.message)
    }
    catalog.refuse(folder)
    throw mainFileError.skillNotFound(name)
  }

  async fileFindings (): Promise<readonly Finding[]> {
    return (await this.#snapshotOnce()).findings
  }

  async mainFile (preference: MainFilePreference = 'SKILL.md'): Promise<FileContent> {
    const { name, mainFiles, refused } = this.skill
    if (refused !== undefined && mainFiles.length === 0) throw mainFileSentence(refused, name)
    for (const path of orderMainFiles(mainFiles, preference)) {
      try {
        return await this.#read(path, MAX_MAIN_FILE_BYTES)
      } catch (error) {
        if (!(error instanceof RefusedError) || !isNoMainFile(error.refusal)) throw mainFileSentence(error, name)
        // The next one may be gone too, and known from before.
        if (await this.#isGone(path)) throw mainFileError.changing(name)
      }
    }
    throw mainFileError.notFound(name)
  }

  async file (filePath: string): Promise<FileContent> {
    const { name, mainFiles } = this.skill
    const path = pathInside(name, mainFiles, filePath)
    try {
      return await this.#read(path, MAX_TEXT_FILE_BYTES)
    } catch (error) {
      throw fileSentence(error, name, filePath)
    }
  }

  async open (filePath: string): Promise<ServableFile> {
    const { name, mainFiles } = this.skill
    const path = pathInside(name, mainFiles, filePath)
    try {
      return await this.#open(path, this.#since)
    } catch (error) {
      throw fileSentence(error, name, filePath)
    }
  }

  async archive (nameOf?: (path: string) => string): Promise<SkillArchive> {
    const snapshot = await this.#snapshotOnce()
    const { manifest: { revision } } = snapshot
    const kept = this.#options.kept.get(this.skill.name, revision)
    const source = kept !== undefined ? keptSource(kept) : this.#isGuarded ? checkedSource((path) => this.#open(path)) : diskSource(this.disk, this.skill.folder.realPath, snapshot, this.skill.filter)
    return createArchive(snapshot, source, nameOf)
  }

  async #isGone (path: string): Promise<boolean> {
    try {
      return await this.disk.lstat(`${this.skill.folder.realPath}/${path}`) === undefined
    } catch {
      return false
    }
  }

  async #read (path: string, limit: number): Promise<FileContent> {
    const { content } = await this.#options.store.read(this.#placeOf(path), limit, this.#since)
    await this.#confirmFilter()
    this.#confirm(path, content.digest)
    return content
  }

  /** A large file is sent while it is read: of a guarded skill, each block of it is compared before it is sent. */
  async #open (path: string, since?: number): Promise<ServableFile> {
    const { store } = this.#options
    const file = await store.open(this.#placeOf(path), since)
    try {
      await this.#confirmFilter()
      const digest = file.kind === 'content' ? file.content.digest : file.digest
      if (digest !== undefined) this.#confirm(path, digest)
      else if (this.#isGuarded) throw new RefusedError('not_found')
    } catch (error) {
      if (file.kind === 'stream') await file.file.close()
      throw error
    }
    return this.#isGuarded && file.kind === 'stream' ? await store.withCheckedBlocks(file) : file
  }

  async #snapshotOnce (use: RevisionUse = this.#isListed ? 'listed' : 'named'): Promise<Snapshot> {
    const before = this.#snapshot
    const { manifests, kept } = this.#options
    if (before !== undefined && (use !== 'named' || kept.renew(before.manifest))) return before
    const { name, mainFile, digest } = this.skill
    try {
      const snapshot = await (this.#isListed ? manifests.getSoon(this.disk, this.#consistentSkill, this.#since) : manifests.get(this.disk, this.#consistentSkill, this.#since, use))
      if (snapshot === undefined) throw skillError.unread(name)
      await this.#confirmFilter()
      if (before !== undefined && before.manifest.revision !== snapshot.manifest.revision) throw changed('the skill changed before its revision was named')
      this.#snapshot = snapshot
      if (mainFile !== undefined && digest !== undefined) this.#confirm(mainFile.name, digest)
      for (const [path, handedOut] of this.#handedOut) this.#confirm(path, handedOut)
      return snapshot
    } catch (error) {
      throw skillSentence(error, name)
    }
  }

  #placeOf (path: string): FilePlace {
    const { folder, filter } = this.#consistentSkill
    return { disk: this.disk, folder: folder.realPath, path, filter }
  }

  /** @throws {RefusedError} `changed` when the index entry was read while the folder changed */
  get #consistentSkill (): IndexedSkill {
    if (this.skill.refused?.refusal === 'changed') throw this.skill.refused
    return this.skill
  }

  /** A file that was hidden before it was written must stay hidden: the filter is compared last. */
  async #confirmFilter (): Promise<void> {
    if (!await this.#options.catalog.filterHolds(this.skill)) throw changed('what is hidden changed after the index was read')
  }

  /** @throws {RefusedError} `changed` when the index entry or the manifest has other bytes under this path */
  #confirm (path: string, digest: string): void {
    const { mainFile, digest: indexed } = this.skill
    if (path === mainFile?.name && digest !== indexed) throw changed('the main file changed after the index was read')
    if (this.#snapshot !== undefined) {
      const listed = this.#snapshot.manifest.files.find((file) => file.path === path)
      if (listed !== undefined && listed.digest !== digest) throw changed('a file changed after the manifest was made')
      if (listed === undefined && this.#isGuarded) throw changed('a file came after the manifest was checked')
      return
    }
    this.#handedOut.push([path, digest])
  }
}
