import { basename } from 'node:path'
import type { SkillArchive } from './content/archive.ts'
import { whenReady } from './async.ts'
import type { CatalogChange, IndexedSkill } from './catalog/catalog.ts'
import type { ServableFile } from './content/file-store.ts'
import type { Disk } from './disk/disk.ts'
import { DiskGuard, type DiskPlace } from './disk/guard.ts'
import { documentError, SkillError } from './errors.ts'
import type { FileContent } from './content/file-content.ts'
import { LiveCatalog, MAX_TURNS } from './catalog/live-catalog.ts'
import { SILENT, type CoreLog } from './log.ts'
import type { Manifest, SkillState } from './content/manifest.ts'
import { PhaseMemo, PhaseStats } from './disk/poll-phase.ts'
import { Refresher, type RefresherStatus, type RefreshTimes } from './refresher.ts'
import { fileSentence } from './content/refusal-sentences.ts'
import { RootSet, type RootStatus } from './catalog/roots.ts'
import type { SearchHit } from './search/search-index.ts'
import { SkillSearch } from './search/search.ts'
import { skillBody } from './format/main-file.ts'
import { SkillFiles } from './content/skill-files.ts'
import { RefusedError } from './disk/open-inside.ts'
import type { MainFilePreference } from './catalog/main-files.ts'
import type { SkillSource } from './skill-source.ts'
import type { Awaitable } from './async.ts'
import type { CatalogSkill, Skill, SkillMetadata } from './skill.ts'
import type { WatcherFactory } from './watch/watcher.ts'

export interface SkillManagerOptions {
  /** Absolute paths; the earlier wins. They need not exist. */
  readonly projectRoots: readonly string[]
  /** Absolute path; loses to every project root. */
  readonly personalRoot?: string
  /** Ask the disk at intervals instead of the kernel for events. */
  readonly polling?: boolean
  readonly log?: CoreLog
  /** How a watcher is made; `false` runs without one. */
  readonly watcher?: WatcherFactory | false
  /** The file system, for all roots. Without it each root gets what fits its kind of disk. */
  readonly disk?: Disk
  readonly times?: SkillManagerTimes
}

export interface SkillManagerTimes extends RefreshTimes {
  /** How long a call to a disk that takes its time may take. */
  readonly diskAnswer?: number
}

/** What /readyz tells. */
export interface SkillManagerStatus {
  /** The first index is complete and a root is there. */
  readonly ready: boolean
  readonly indexed: boolean
  readonly generation: number
  readonly skills: number
  readonly roots: readonly RootStatus[]
  readonly watcher: RefresherStatus['watcher']
  /** Codes of what kept the last refresh from looking; what was there before is served. */
  readonly failures: readonly string[]
  /** Names of the skills whose disk does not answer. */
  readonly hanging: readonly string[]
}

type ChangeListener = (change: CatalogChange) => void

/** Told the names of skills that may be different in any of their files, or nothing: all may be. Must not throw. */
type LookListener = (names?: Iterable<string>) => void

/**
 * The catalog of all skills, fresh at every question. What an answer is made of is compared with the disk before the
 * answer is given; the watcher and the reconciling walks keep the rest of the index near, they are not
 * what makes an answer right.
 */
export class SkillManager implements SkillSource {
  readonly #stats = new PhaseStats()
  readonly #lists = new PhaseMemo<readonly string[]>(this.#stats)
  readonly #guard: DiskGuard
  readonly #roots: RootSet
  readonly #live: LiveCatalog
  readonly #files: SkillFiles
  readonly #refresher: Refresher
  readonly #search = new SkillSearch(this)
  readonly #log: CoreLog
  readonly #listeners = new Set<ChangeListener>()
  readonly #lookListeners = new Set<LookListener>()
  #indexed = false
  #firstIndex: Promise<void> | undefined

  constructor (options: SkillManagerOptions) {
    this.#log = options.log ?? SILENT
    this.#files = new SkillFiles({
      stats: this.#stats,
      log: this.#log,
      diskOf: ({ folder }) => this.#roots.diskOf(folder),
      ask: (name, answer, discard) => this.#live.ask(name, answer, discard)
    })
    this.#guard = new DiskGuard({
      ...options.times?.diskAnswer !== undefined && { answerMs: options.times.diskAnswer },
      onChange: (place, isAnswering) => this.#onAnswering(place, isAnswering)
    })
    this.#roots = new RootSet({
      projectRoots: options.projectRoots,
      ...options.personalRoot !== undefined && { personalRoot: options.personalRoot },
      ...options.disk && { disk: options.disk },
      guard: this.#guard,
      stats: this.#stats,
      onChange: (root, view) => {
        this.#live.takeFolders()
        if (this.#indexed) this.#refresher.hintAt(this.#live.unread)
        this.#refresher.follow(root.path, view)
      },
      onFailure: (root, cause) => this.#log.warn({ err: cause, root: root.path }, 'a skills folder could not be listed; what was there before is served')
    })
    this.#live = new LiveCatalog({
      roots: this.#roots,
      stats: this.#stats,
      onChange: (change) => { for (const listener of this.#listeners) listener(change) }
    })
    this.#refresher = new Refresher({
      roots: [...options.projectRoots, ...options.personalRoot === undefined ? [] : [options.personalRoot]],
      polling: options.polling ?? false,
      ...options.watcher !== undefined && { watcher: options.watcher },
      ...options.times && { times: options.times },
      log: this.#log,
      lookAgain: (root, names) => this.#lookAgain(root, names),
      lookAtAll: async () => {
        await this.#roots.sync(undefined, true)
        await this.#live.verifyAll()
        this.#tellLook()
      }
    })
  }

  /** Lists the roots, and returns when `list` can be answered; the index and the watcher follow in the background. */
  async start (): Promise<void> {
    this.#firstIndex ??= this.#startOnce()
    await this.#roots.sync()
  }

  /** Wave's `initialize`: like `start`, and waits until every skill has been read. */
  async initialize (): Promise<void> {
    await this.start()
    await this.#firstIndex
  }

  async close (): Promise<void> {
    this.#listeners.clear()
    this.#lookListeners.clear()
    await this.#refresher.close()
    await this.#files.close()
  }

  /** A request has just been received on this connection: see `PhaseStats`. */
  beginRequest (connection: object): void {
    this.#stats.begin(connection)
  }

  /** Tells each change of the catalog once it is in place. Returns the way to stop. */
  subscribe (listener: ChangeListener): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /**
   * Tells where to look for changes in files of every kind, which `subscribe` does not see, until the way to stop is called;
   * as long as somebody wants to know, the folders inside of the skills that `inspect` was asked for are watched too.
   */
  observe (listener: LookListener): () => void {
    this.#lookListeners.add(listener)
    this.#refresher.wantInside(true)
    return () => {
      this.#lookListeners.delete(listener)
      this.#refresher.wantInside(this.#lookListeners.size > 0)
    }
  }

  /**
   * The state of all files of a skill; undefined when there is no such skill.
   * @param known what it was: comes back as it is when nothing was touched since
   * @throws {SkillError} `file_io_error` when it never holds still, or the disk fails
   */
  async inspect (name: string, known?: SkillState): Promise<SkillState | undefined> {
    try {
      return await this.#live.ask(name, async (skill) => {
        const { state, inside } = await this.#files.inspect(skill, known)
        this.#refresher.followInside(this.#roots.pathOf(skill.folder), skill.folder.realPath, inside)
        return state
      })
    } catch (error) {
      if (error instanceof RefusedError && error.refusal !== 'not_found') throw fileSentence(error, name, '.')
      // Not there, or no root to look in, or gone meanwhile.
      if (error instanceof SkillError || error instanceof RefusedError) return undefined
      throw error
    }
  }

  get status (): SkillManagerStatus {
    return {
      ready: this.#indexed && this.#roots.unavailable === undefined,
      indexed: this.#indexed,
      generation: this.#live.last.generation,
      skills: this.#live.last.names.length,
      roots: this.#roots.status,
      watcher: this.#refresher.status.watcher,
      failures: this.#roots.failures,
      hanging: this.#guard.hanging.map(({ name }) => name).filter((name) => name !== '')
    }
  }

  /** The same after a look at the roots. */
  async freshStatus (): Promise<SkillManagerStatus> {
    await this.#roots.sync()
    return this.status
  }

  list (): Awaitable<readonly string[]> {
    return this.#lists.get('') ?? this.#list()
  }

  async find (name: string): Promise<CatalogSkill | undefined> {
    return await this.#live.find(name)
  }

  async findByLabel (label: string): Promise<CatalogSkill | undefined> {
    const folder = await this.#live.find(label)
    if (folder?.metadata.name === label) return folder
    await this.#firstIndex
    const known = await this.#live.findByLabel(label)
    if (known !== undefined) return known
    // Any skill may have taken this name a moment ago: only a look at all of them can say no, and only when nothing
    // moved meanwhile: the name may have gone from one not yet seen to one that had been.
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      const { moves } = this.#live
      await this.#roots.sync(undefined, true)
      await this.#live.verifyAll()
      const found = await this.#live.findByLabel(label)
      if (found !== undefined) return found
      if (moves === this.#live.moves) break
    }
    return folder
  }

  async available (): Promise<readonly SkillMetadata[]> {
    await this.#firstIndex
    return this.#live.last.available
  }

  availableNow (): readonly SkillMetadata[] {
    return this.#live.last.available
  }

  /** What `list` said last, without a look at the disk. */
  namesNow (): readonly string[] {
    return this.#live.last.names
  }

  async search (query: string): Promise<readonly SearchHit[]> {
    return await this.#search.search(query)
  }

  readDocument (name: string, preference: MainFilePreference): Awaitable<FileContent> {
    return whenReady(this.readMainFile(name, preference), (content) => {
      if (content.utf8 === undefined) throw documentError.notUtf8(name)
      return content
    })
  }

  /** The same without a word on the encoding, for a door that sends bytes. */
  readMainFile (name: string, preference: MainFilePreference): Awaitable<FileContent> {
    return this.#files.readMainFile(name, preference)
  }

  readFile (name: string, filePath: string): Awaitable<FileContent> {
    return this.#files.readFile(name, filePath)
  }

  /** A file of any size, for a door that sends bytes. Same checks and sentences as `readFile`. */
  openFile (name: string, filePath: string): Awaitable<ServableFile> {
    return this.#files.openFile(name, filePath)
  }

  /** All files of a skill. */
  manifest (name: string): Promise<Manifest> {
    return this.#files.manifest(name)
  }

  /**
   * All files of a skill as a ZIP archive, to be read after the call.
   * @param nameOf what a file of the manifest is called in the archive; default: its path
   */
  archive (name: string, nameOf?: (path: string) => string): Promise<SkillArchive> {
    return this.#files.archive(name, nameOf)
  }

  /** Names the state of all files of a skill: see `ManifestStore.stamp`. */
  stamp (name: string): Promise<string | undefined> {
    return this.#files.stamp(name)
  }

  /** Wave's and Neovate's reading interface. */
  getAvailableSkills (): SkillMetadata[] {
    return [...this.#live.last.available]
  }

  getSkills (): SkillMetadata[] {
    return this.#live.last.readable.map(({ metadata }) => metadata)
  }

  async loadSkill (skillName: string): Promise<Skill | null> {
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      const skill = await this.#live.find(skillName)
      if (skill === undefined) return null
      const content = await this.readDocument(skillName, 'SKILL.md')
      // What is said of a file and the file itself are of one state.
      if (content.digest === skill.digest) return { ...toCatalogSkill(skill), content: content.utf8 ?? '' }
    }
    throw documentError.unreadable(skillName)
  }

  async readSkillBody (skill: Pick<SkillMetadata, 'skillPath'>): Promise<string> {
    const content = await this.readDocument(basename(skill.skillPath), 'SKILL.md')
    return skillBody(content.utf8 ?? '')
  }

  async #list (): Promise<readonly string[]> {
    const { phase } = this.#stats
    await this.#roots.sync(undefined, true)
    this.#roots.requireOne()
    const { names } = this.#live.last
    this.#lists.set('', names, phase)
    return names
  }

  async #startOnce (): Promise<void> {
    await this.#roots.sync()
    await this.#live.verifyAll()
    this.#indexed = true
    const { names, available } = this.#live.last
    this.#log.info({ skills: names.length, valid: available.length, roots: this.#roots.status }, 'the skills are indexed')
    this.#refresher.start()
  }

  async #lookAgain (root: string, names: ReadonlySet<string>): Promise<void> {
    const index = this.#roots.indexOf(root)
    if (index !== -1) await this.#roots.sync(index + 1, names.size === 0)
    await this.#live.verify(names)
    this.#tellLook(names)
  }

  /** Whatever was not seen while a disk hung is looked at as soon as it answers; for a root, all that is in it. */
  #onAnswering ({ root, name }: DiskPlace, isAnswering: boolean): void {
    if (!isAnswering) {
      this.#log.warn({ root, skill: name }, 'a disk does not answer; what was there before is served')
      return
    }
    this.#log.info({ root, skill: name }, 'a disk answers again')
    if (this.#indexed) this.#refresher.hintAt(name === '' ? this.#live.last.names : [name])
  }

  #tellLook (names?: ReadonlySet<string>): void {
    if (names === undefined) this.#files.doubt()
    else {
      for (const name of names) {
        const skill = this.#live.last.get(name)
        if (skill !== undefined) this.#files.doubt(skill)
      }
    }
    for (const listener of this.#lookListeners) listener(names)
  }
}

export function createSkillManager (options: SkillManagerOptions): SkillManager {
  return new SkillManager(options)
}

function toCatalogSkill ({ name, metadata, frontmatter, findings, valid, digest }: IndexedSkill): CatalogSkill {
  return { name, metadata, frontmatter, findings, valid, ...digest !== undefined && { digest } }
}
