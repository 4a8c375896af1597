import { basename } from 'node:path'
import type { SkillArchive } from './archive.ts'
import { coalesce, createSlicer, whenReady } from './async.ts'
import { Catalogue, type CatalogueChange, type IndexedSkill } from './catalogue.ts'
import type { ServableFile } from './content-store.ts'
import type { SkillFolder } from './discover.ts'
import type { Disk } from './disk.ts'
import { documentError, SkillError } from './errors.ts'
import type { FileContent } from './file-content.ts'
import { indexSkill, orderMainFiles } from './index-skill.ts'
import { SILENT, type CoreLog } from './log.ts'
import type { Manifest, SkillState } from './manifest.ts'
import { PhaseMemo, PhaseStats } from './phase-stats.ts'
import { Refresher, type RefresherStatus, type RefreshTimes } from './refresher.ts'
import { fileSentence } from './refusal-sentences.ts'
import { RootSet, type RootStatus } from './root-set.ts'
import type { SearchHit } from './search-index.ts'
import { SkillSearch } from './search.ts'
import { isSameState } from './signature.ts'
import { skillBody } from './skill-file.ts'
import { SkillFiles } from './skill-files.ts'
import { RefusedError } from './skill-reader.ts'
import type { Awaitable, MainFilePreference, SkillSource } from './skill-source.ts'
import type { CatalogueSkill, Signature, Skill, SkillMetadata } from './skill.ts'
import type { WatcherFactory } from './watcher.ts'

export interface SkillManagerOptions {
  /** Absolute paths; the earlier wins (K7). They need not exist (K3). */
  readonly projectRoots: readonly string[]
  /** Absolute path; loses to every project root. */
  readonly personalRoot?: string
  /** Ask the disk at intervals instead of the kernel for events (K54). */
  readonly polling?: boolean
  readonly log?: CoreLog
  /** How a watcher is made; `false` runs without one. */
  readonly watcher?: WatcherFactory | false
  /** The file system, for all roots. Without it each root gets what fits its kind of disk. */
  readonly disk?: Disk
  readonly times?: RefreshTimes
}

/** What /readyz tells (K50). */
export interface SkillManagerStatus {
  /** The first index is complete and a root is there. */
  readonly ready: boolean
  readonly indexed: boolean
  readonly generation: number
  readonly skills: number
  readonly roots: readonly RootStatus[]
  readonly watcher: RefresherStatus['watcher']
  /** Codes of what kept the last refresh from looking; what was there before is served (K53). */
  readonly failures: readonly string[]
}

type ChangeListener = (change: CatalogueChange) => void

/** Told the names of skills that may be different in any of their files, or nothing: all may be. Must not throw. */
type LookListener = (names?: Iterable<string>) => void

/** How often a question is asked anew when the disk changes under it. */
const MAX_TURNS = 8

/**
 * The catalogue of all skills, fresh at every question. What an answer is made of is compared with the disk before the
 * answer is given (K51); the watcher and the reconciling walks keep the rest of the index near (K52), they are not
 * what makes an answer right.
 */
export class SkillManager implements SkillSource {
  readonly #stats = new PhaseStats()
  readonly #lists = new PhaseMemo<readonly string[]>(this.#stats)
  readonly #roots: RootSet
  readonly #files: SkillFiles
  readonly #refresher: Refresher
  readonly #search = new SkillSearch(this)
  readonly #log: CoreLog
  readonly #listeners = new Set<ChangeListener>()
  readonly #lookListeners = new Set<LookListener>()
  readonly #verifyAll = coalesce(() => this.#verifyEach(this.#catalogue.names))
  #catalogue = new Catalogue()
  #sequence = 0
  #indexed = false
  #firstIndex: Promise<void> | undefined

  constructor (options: SkillManagerOptions) {
    this.#log = options.log ?? SILENT
    this.#files = new SkillFiles({
      stats: this.#stats,
      diskOf: (skill) => this.#diskOf(skill),
      ask: (name, answer, discard) => this.#ask(name, answer, discard)
    })
    this.#roots = new RootSet({
      projectRoots: options.projectRoots,
      ...options.personalRoot !== undefined && { personalRoot: options.personalRoot },
      ...options.disk && { disk: options.disk },
      stats: this.#stats,
      onChange: (root, view) => {
        this.#replaceFolders()
        this.#refresher.follow(root.path, view)
      },
      onFailure: (root, cause) => this.#log.warn({ err: cause, root: root.path }, 'a skills folder could not be listed; what was there before is served')
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
        await this.#verifyAll()
        this.#tellLook()
      }
    })
  }

  /** Lists the roots, and returns when `list` can be answered; the index and the watcher follow in the background. */
  async start (): Promise<void> {
    this.#firstIndex ??= this.#startOnce()
    await this.#roots.sync()
  }

  /** Wave's `initialize`: like `start`, and waits until every skill has been read (K33). */
  async initialize (): Promise<void> {
    await this.start()
    await this.#firstIndex
  }

  async close (): Promise<void> {
    this.#listeners.clear()
    this.#lookListeners.clear()
    await this.#refresher.close()
  }

  /** A request has just been received on this connection: see `PhaseStats`. */
  beginRequest (connection: object): void {
    this.#stats.begin(connection)
  }

  /** Tells each change of the catalogue once it is in place. Returns the way to stop. */
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
      return await this.#ask(name, async (skill) => {
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
      generation: this.#catalogue.generation,
      skills: this.#catalogue.names.length,
      roots: this.#roots.status,
      watcher: this.#refresher.status.watcher,
      failures: this.#roots.failures
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

  async find (name: string): Promise<CatalogueSkill | undefined> {
    return await this.#current(name)
  }

  async findByLabel (label: string): Promise<CatalogueSkill | undefined> {
    const folder = await this.#current(label)
    if (folder?.metadata.name === label) return folder
    await this.#firstIndex
    const known = await this.#currentByLabel(label)
    if (known !== undefined) return known
    // Any skill may have taken this name a moment ago: only a look at all of them can say no (K51).
    await this.#roots.sync(undefined, true)
    await this.#verifyAll()
    return await this.#currentByLabel(label) ?? folder
  }

  async available (): Promise<readonly SkillMetadata[]> {
    await this.#firstIndex
    return this.#catalogue.available
  }

  availableNow (): readonly SkillMetadata[] {
    return this.#catalogue.available
  }

  /** What `list` said last, without a look at the disk. */
  namesNow (): readonly string[] {
    return this.#catalogue.names
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

  /** The same without a word on the encoding, for a door that sends bytes (K42). */
  readMainFile (name: string, preference: MainFilePreference): Awaitable<FileContent> {
    return this.#files.readMainFile(name, preference)
  }

  readFile (name: string, filePath: string): Awaitable<FileContent> {
    return this.#files.readFile(name, filePath)
  }

  /** A file of any size, for a door that sends bytes (K44). Same checks and sentences as `readFile`. */
  openFile (name: string, filePath: string): Awaitable<ServableFile> {
    return this.#files.openFile(name, filePath)
  }

  /** All files of a skill (K43). */
  manifest (name: string): Promise<Manifest> {
    return this.#files.manifest(name)
  }

  /**
   * All files of a skill as a ZIP archive (K45), to be read after the call.
   * @param nameOf what a file of the manifest is called in the archive; default: its path
   */
  archive (name: string, nameOf?: (path: string) => string): Promise<SkillArchive> {
    return this.#files.archive(name, nameOf)
  }

  /** Names the state of all files of a skill: see `ManifestStore.stamp`. */
  stamp (name: string): Promise<string | undefined> {
    return this.#files.stamp(name)
  }

  /** Wave's and Neovate's reading interface (K33). */
  getAvailableSkills (): SkillMetadata[] {
    return [...this.#catalogue.available]
  }

  getSkills (): SkillMetadata[] {
    return this.#catalogue.readable.map(({ metadata }) => metadata)
  }

  async loadSkill (skillName: string): Promise<Skill | null> {
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      const skill = await this.#current(skillName)
      if (skill === undefined) return null
      const content = await this.readDocument(skillName, 'SKILL.md')
      // What is said of a file and the file itself are of one state (K53).
      if (content.digest === skill.digest) return { ...toCatalogueSkill(skill), content: content.utf8 ?? '' }
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
    this.#requireRoot()
    const { names } = this.#catalogue
    this.#lists.set('', names, phase)
    return names
  }

  async #startOnce (): Promise<void> {
    await this.#roots.sync()
    await this.#verifyAll()
    this.#indexed = true
    const { names, available } = this.#catalogue
    this.#log.info({ skills: names.length, valid: available.length, roots: this.#roots.status }, 'the skills are indexed')
    this.#refresher.start()
  }

  /** The skill of this name as it is on the disk now; undefined when there is none. */
  async #current (name: string): Promise<IndexedSkill | undefined> {
    // Each turn ends with the skill, or with a root listed anew; a name that keeps coming and going is not there.
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      // What was seen before it went away says nothing about where it went.
      if (turn > 0) this.#stats.forget()
      // A root before the skill's own may have got a folder of that name; an unknown name may be in any.
      const root = this.#catalogue.folders.get(name)?.root
      await this.#roots.sync(root, root === undefined)
      const folder = this.#catalogue.folders.get(name)
      // It went to a root that was not looked at, in somebody else's look.
      if (root !== undefined && (folder === undefined || folder.root > root)) continue
      if (folder === undefined) {
        this.#requireRoot()
        return undefined
      }
      const known = this.#catalogue.get(name)
      if (known !== undefined && await this.#isFresh(known)) return known
      const loaded = await this.#load(folder)
      if (loaded === undefined) await this.#roots.rescan(folder.root)
      // What may not be read may be the root's doing (K14).
      else if (loaded.refused !== undefined) await this.#roots.sync(folder.root + 1)
      if (loaded !== undefined && this.#catalogue.folders.get(name) === folder) {
        this.#commit([loaded])
        return loaded
      }
    }
    return undefined
  }

  async #currentByLabel (label: string): Promise<IndexedSkill | undefined> {
    const name = this.#catalogue.folderOfLabel(label)
    const skill = name === undefined ? undefined : await this.#current(name)
    return skill?.metadata.name === label ? skill : undefined
  }

  /**
   * What `answer` makes of the skill of this name. A failure, or an answer that took more than a turn of the event loop,
   * counts only while the skill is still what it was: otherwise its folder was taken away or exchanged under the question,
   * which then goes to what the name means now (K53).
   * @param discard gives back an answer that does not count
   */
  async #ask<T> (name: string, answer: (skill: IndexedSkill) => Promise<T>, discard?: (value: T) => unknown): Promise<T> {
    for (let turn = 1; ; turn++) {
      const phase = this.#stats.phase
      const skill = await this.#current(name)
      if (skill === undefined) throw documentError.skillNotFound(name)
      const root = this.#roots.signatureOf(skill.folder)
      try {
        const value = await answer(skill)
        if (turn === MAX_TURNS || phase === this.#stats.phase || await this.#isStill(skill, root)) return value
        await discard?.(value)
      } catch (error) {
        if (turn === MAX_TURNS || await this.#isStill(skill, root)) throw error
      }
    }
  }

  /** Never throws. Asks for the state of the root too: in nothing else one shows that went away and came back. */
  async #isStill ({ name, folder, folderSignature }: IndexedSkill, root: Signature | undefined): Promise<boolean> {
    this.#stats.forget()
    await this.#roots.sync(folder.root + 1)
    const now = await this.#current(name).catch(() => undefined)
    const rootNow = this.#roots.signatureOf(folder)
    return now?.folder === folder && isSameState(now.folderSignature, folderSignature) &&
      root !== undefined && rootNow !== undefined && isSameState(root, rootNow)
  }

  #requireRoot (): void {
    const { unavailable } = this.#roots
    if (unavailable !== undefined) throw unavailable
  }

  #diskOf ({ folder }: IndexedSkill): Disk {
    return this.#roots.diskOf(folder)
  }

  /** Whether the disk still holds what the index says. */
  async #isFresh (skill: IndexedSkill): Promise<boolean> {
    const { folder, mainFile } = skill
    if (!skill.settled || skill.refused !== undefined || !this.#catalogue.isInPlace(skill)) return false
    const disk = this.#diskOf(skill)
    const now = await this.#stats.stat(disk, folder.path)
    if (now === undefined || !isSameState(now, skill.folderSignature)) return false
    if (folder.linked && await realpathOrNothing(disk, folder.path) !== folder.realPath) return false
    // A main file that was passed over may be of use now: a link's target made.
    if (mainFile?.name !== orderMainFiles(skill.mainFiles, 'SKILL.md')[0]) return false
    if (mainFile === undefined) return true
    const main = await this.#stats.stat(disk, skill.metadata.path)
    return main !== undefined && isSameState(main, mainFile.signature)
  }

  async #load (folder: SkillFolder): Promise<IndexedSkill | undefined> {
    return await indexSkill(this.#roots.diskOf(folder), folder, ++this.#sequence, this.#catalogue.shadowing.has(folder.name))
  }

  /** Reads again what is not as the index says, in slices; each slice is one step of the catalogue. */
  async #verifyEach (names: Iterable<string>): Promise<void> {
    const breathe = createSlicer()
    let loaded: IndexedSkill[] = []
    const gone = new Set<number>()
    for (const name of names) {
      const folder = this.#catalogue.folders.get(name)
      if (folder === undefined) continue
      const known = this.#catalogue.get(name)
      if (known === undefined || !await this.#isFresh(known)) {
        const skill = await this.#load(folder)
        if (skill === undefined) gone.add(folder.root)
        else loaded.push(skill)
      }
      const pause = breathe()
      if (pause !== undefined) {
        this.#commit(loaded)
        loaded = []
        await pause
      }
    }
    this.#commit(loaded)
    for (const root of gone) await this.#roots.rescan(root)
  }

  async #lookAgain (root: string, names: ReadonlySet<string>): Promise<void> {
    const index = this.#roots.indexOf(root)
    if (index !== -1) await this.#roots.sync(index + 1, names.size === 0)
    await this.#verifyEach(names)
    this.#tellLook(names)
  }

  #commit (loaded: readonly IndexedSkill[]): void {
    const before = this.#catalogue
    const added: string[] = []
    const changed: string[] = []
    const accepted = loaded.filter((skill) => {
      const { name } = skill
      const known = before.get(name)
      if (before.folders.get(name) !== skill.folder || (known?.sequence ?? 0) >= skill.sequence) return false
      // A disk that fails says nothing about the skill: what was known before stands (K53).
      if (known !== undefined && skill.refused?.refusal === 'io_error') return false
      if (known === undefined) added.push(name)
      else if (!isSameToCallers(known, skill)) changed.push(name)
      return true
    })
    if (accepted.length === 0) return
    this.#catalogue = before.withSkills(accepted, added.length + changed.length > 0)
    this.#announce(added, changed, [])
  }

  #replaceFolders (): void {
    const before = this.#catalogue
    const { folders, shadowing } = this.#roots.merge()
    const catalogue = before.withFolders(folders, shadowing)
    this.#catalogue = catalogue
    this.#announce([], [], before.names.filter((name) => !folders.has(name)))
    if (this.#indexed) this.#refresher.hintAt(catalogue.names.filter((name) => !this.#isRead(name)))
  }

  /** Whether the index holds this skill as it was read from its present folder. */
  #isRead (name: string): boolean {
    const skill = this.#catalogue.get(name)
    return skill !== undefined && this.#catalogue.isInPlace(skill)
  }

  #tellLook (names?: ReadonlySet<string>): void {
    if (names === undefined) this.#files.doubt()
    else {
      for (const name of names) {
        const skill = this.#catalogue.get(name)
        if (skill !== undefined) this.#files.doubt(skill)
      }
    }
    for (const listener of this.#lookListeners) listener(names)
  }

  #announce (added: readonly string[], changed: readonly string[], removed: readonly string[]): void {
    if (added.length + changed.length + removed.length === 0) return
    const change = { generation: this.#catalogue.generation, added, changed, removed }
    for (const listener of this.#listeners) listener(change)
  }
}

export function createSkillManager (options: SkillManagerOptions): SkillManager {
  return new SkillManager(options)
}

function toCatalogueSkill ({ name, metadata, frontmatter, findings, valid, digest }: IndexedSkill): CatalogueSkill {
  return { name, metadata, frontmatter, findings, valid, ...digest !== undefined && { digest } }
}

/** A touch, or a checkout back and forth, is no change: same bytes under the same name. */
function isSameToCallers (a: IndexedSkill, b: IndexedSkill): boolean {
  return a.digest === b.digest && a.metadata.path === b.metadata.path && a.refused?.refusal === b.refused?.refusal &&
    a.findings.length === b.findings.length && a.findings.every(({ code }, index) => code === b.findings[index]?.code)
}

async function realpathOrNothing (disk: Disk, path: string): Promise<string | undefined> {
  try {
    return await disk.realpath(path)
  } catch {
    return undefined
  }
}
