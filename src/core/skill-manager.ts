import { basename } from 'node:path'
import { type Awaitable, whenReady } from './ground/async.ts'
import { CatalogLog } from './catalog-log.ts'
import type { CatalogChange } from './catalog/catalog.ts'
import { LiveCatalog } from './catalog/live-catalog.ts'
import type { MainFilePreference } from './roots/main-files.ts'
import { Roots } from './roots/roots.ts'
import type { SkillArchive } from './content/archive.ts'
import { KeptRevisions } from './content/kept-revisions.ts'
import { type Inspected, type Manifest, ManifestStore, type Unread } from './content/manifest.ts'
import { SkillFiles } from './content/skill-files.ts'
import type { SkillState } from './content/skill-state.ts'
import { Gate } from './content/trust/gate.ts'
import type { DiskArea, DiskGuard } from './disk/network/guard.ts'
import type { PollPhase } from './disk/poll-phase.ts'
import { documentError, SkillError } from './ground/errors.ts'
import type { FileContent } from './files/file-content.ts'
import type { FileStore } from './files/file-store.ts'
import { type ServableFile } from './files/file-store.ts'
import { skillBody } from './format/main-file.ts'
import { KEPT_REVISION_BYTES, KEPT_REVISION_MS } from './ground/limits.ts'
import { type CoreLog, SILENT } from './ground/log.ts'
import { Signal } from './ground/signal.ts'
import { SkillsAtRevision } from './pinned-source.ts'
import { type Refresh, Refresher } from './refresher.ts'
import { type SearchAnswer, SkillSearch } from './search/search.ts'
import { type CatalogSkill, type Skill, type SkillMetadata, toCatalogSkill } from './ground/skill.ts'
import type { SkillManagerOptions, SkillManagerTimes } from './skill-manager-options.ts'
import { createSharedDisk } from './shared-disk.ts'
import type { PinnedSource, SkillService, SkillStatus } from './skill-source.ts'

export { createSharedDisk, type SharedDisk } from './shared-disk.ts'
export type { SkillManagerOptions, SkillManagerTimes }

/**
 * All skills, fresh at every question. What an answer is made of is compared with the disk before the answer is given.
 * The watcher and the regular comparisons keep the rest of the index near; no answer depends on them.
 */
export class SkillManager implements SkillService {
  readonly scope = ''
  readonly #log: CoreLog
  readonly #phase: PollPhase
  readonly #guard: DiskGuard
  readonly #roots: Roots
  readonly #catalog: LiveCatalog
  readonly #catalogLog: CatalogLog
  readonly #files: SkillFiles
  readonly #gate: Gate | undefined
  readonly #search: SkillSearch
  readonly #refresher: Refresher
  readonly #stops: Array<() => void> = []
  /** The memory for contents of files. */
  readonly contents: Pick<FileStore, 'usage'>
  #indexed = false
  #firstIndex: Promise<void> | undefined

  constructor ({ projectRoots, personalRoot, linkTargets, polling = false, log = SILENT, watcher, disk, times = {}, keep = {}, hasRoom, shared = createSharedDisk(times.diskAnswer, hasRoom), policy }: SkillManagerOptions) {
    const { phase, guard, store } = shared
    this.#phase = phase
    this.#log = log
    this.#guard = guard
    this.#roots = new Roots({
      projectRoots, ...personalRoot !== undefined && { personalRoot }, ...linkTargets && { linkTargets }, ...disk && { disk }, guard, phase
    })
    const disks = new Signal<DiskArea & { readonly isAnswering: boolean }>()
    this.#stops.push(guard.changed.subscribe((area) => { if (this.#isOwn(area)) disks.emit(area) }))
    this.contents = store
    const kept = new KeptRevisions({ keepMs: KEPT_REVISION_MS, maxBytes: KEPT_REVISION_BYTES, ...keep })
    const manifests = new ManifestStore({ store, kept })
    const gate = policy && new Gate({ policy, roots: this.#roots, store, manifests })
    this.#gate = gate
    this.#catalog = new LiveCatalog({ roots: this.#roots, store, phase, admission: gate })
    this.#catalogLog = new CatalogLog({ log, roots: this.#roots, catalog: this.#catalog, disks, gate: gate?.changed })
    this.#files = new SkillFiles({ roots: this.#roots, catalog: this.#catalog, store, kept, manifests, gate })
    this.#search = new SkillSearch(this)
    this.#refresher = new Refresher({ roots: this.#roots.paths, polling, ...watcher !== undefined && { watcher }, times, log, catalog: this.#catalog })
    if (gate !== undefined && policy !== undefined) {
      // A change of any file decides whether a guarded skill is served.
      this.#refresher.wantInside(true)
      this.#stops.push(
        gate.changed.subscribe((change) => { policy.judged.emit(change) }),
        gate.checked.subscribe(({ folder, inside }) => { this.#refresher.followInside(this.#roots.pathOf(folder), folder.realPath, inside) }),
        policy.changed.subscribe(() => { if (this.#indexed) this.#catalog.readmit() })
      )
    }
    disks.subscribe(({ name, isAnswering }) => {
      // What could not be read while a disk hung; for a root, all that is in it.
      if (isAnswering && this.#indexed) this.#refresher.hintAt(name === '' ? this.#catalog.last.names : [name])
    })
    this.#roots.changed.subscribe(({ root, realPath, folders, links, names }) => {
      if (this.#indexed) this.#refresher.hintAt(names)
      this.#refresher.follow(root.path, { realPath, folders: root.listed?.isFixed === true ? new Map() : folders, links })
    })
    for (const [index, listing] of this.#roots.listings) this.#stops.push(listing.changed.subscribe(() => { void this.#roots.rescan(index) }))
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
    for (const stop of this.#stops) stop()
    this.#catalog.changed.clear()
    this.#catalog.touched.clear()
    this.#catalogLog.close()
    await this.#refresher.close()
    this.#files.close()
  }

  beginRequest (connection: object): void {
    this.#phase.begin(connection)
  }

  /** Reports each change of the catalog once it is in place. Returns a function that stops it. */
  subscribe (listener: (change: CatalogChange) => void): () => void {
    return this.#catalog.changed.subscribe(listener)
  }

  /**
   * Reports skills whose files may have changed, all of them without names. While somebody listens, the folders inside of
   * inspected skills are watched too. Returns a function that stops it.
   */
  observe (listener: (names?: Iterable<string>) => void): () => void {
    const stop = this.#catalog.touched.subscribe(listener)
    this.#refresher.wantInside(true)
    return () => {
      stop()
      this.#refresher.wantInside(this.#gate !== undefined || this.#catalog.touched.hasListeners)
    }
  }

  /**
   * The state of all files of a skill; undefined when there is no such skill.
   * @param known the state before: comes back as it is when nothing was touched since
   * @throws {SkillError} `skill_changing` when no state holds, `file_io_error` when the disk fails
   */
  async inspect (name: string, known?: Inspected): Promise<Inspected | Unread | undefined> {
    try {
      const inspection = await this.#files.inspect(name, known)
      if ('ended' in inspection) return inspection
      const { state, inside, folder } = inspection
      this.#refresher.followInside(folder.root, folder.realPath, inside)
      return state
    } catch (error) {
      // Not there, or no root, or gone meanwhile.
      if (error instanceof SkillError && error.code !== 'file_io_error' && error.code !== 'skill_changing') return undefined
      throw error
    }
  }

  get refreshed (): Signal<Refresh> { return this.#refresher.refreshed }

  /** Whether changes in the roots cause events, or they are polled. */
  isWatching (): boolean { return this.#refresher.status.watcher.status === 'watching' }

  get status (): SkillStatus {
    const { generation, names } = this.#catalog.last
    return {
      ready: this.#indexed && this.#roots.unavailable === undefined,
      indexed: this.#indexed,
      generation,
      skills: names.length,
      roots: this.#roots.status,
      watcher: this.#refresher.status.watcher,
      failures: this.#roots.failures,
      hanging: this.#guard.hanging.filter((area) => this.#isOwn(area)).map(({ name }) => name).filter((name) => name !== ''),
      ...this.#gate && { quarantined: this.#gate.refused.length }
    }
  }

  async freshStatus (): Promise<SkillStatus> {
    await this.#roots.sync()
    return this.status
  }

  list (): Awaitable<readonly string[]> {
    return whenReady(this.#gate === undefined ? this.#roots.sync(undefined, true) : this.#checkNew(), () => {
      this.#roots.requireOne()
      return this.#catalog.last.names
    })
  }

  find (name: string): Awaitable<CatalogSkill | undefined> {
    return this.#files.find(name)
  }

  async available (): Promise<readonly SkillMetadata[]> {
    await this.#firstIndex
    return this.#catalog.last.available
  }

  availableNow (): readonly SkillMetadata[] {
    return this.#catalog.last.available
  }

  rootOf (name: string): string | undefined {
    const folder = this.#catalog.last.folders.get(name)
    return folder && this.#roots.nameOf(folder)
  }

  /** Skills with an error in the index, by the name of their root. */
  invalidNow (): ReadonlyMap<string, number> {
    const counts = this.#catalog.last.invalidByRoot()
    return new Map(this.#roots.status.map(({ name }, root) => [name, counts.get(root) ?? 0]))
  }

  /** Goes up with each change that a caller can see. */
  get generation (): number {
    return this.#catalog.last.generation
  }

  /** The error of a catalog that has no root; undefined while one root is there. As fresh as the last question. */
  get unavailable (): SkillError | undefined {
    return this.#roots.unavailable
  }

  /** Compares the names in the frontmatter of all skills with the disk. */
  async verifyDisplayNames (): Promise<void> {
    await this.#roots.sync(undefined, true)
    await this.#catalog.verifyDisplayNames()
  }

  namesNow (): readonly string[] {
    return this.#catalog.last.names
  }

  /** What the index holds of a skill, without a comparison with the disk. */
  findNow (name: string): CatalogSkill | undefined {
    return this.#catalog.last.get(name)
  }

  async search (query: string): Promise<SearchAnswer> {
    // Names and descriptions come from the index, which must have been built.
    await this.#firstIndex
    return await this.#search.search(query)
  }

  read<T> (name: string, answer: (state: SkillState) => Awaitable<T>): Awaitable<T> {
    return this.#files.read(name, answer)
  }

  readListed<T> (name: string, answer: (state: SkillState) => Awaitable<T>): Promise<T> {
    return this.#files.readListed(name, answer)
  }

  async readByDisplayName<T> (displayName: string, answer: (state: SkillState) => Awaitable<T>): Promise<T> {
    // Of several skills with one name the first in order counts: all must have been read.
    await this.#firstIndex
    return await this.#files.readByDisplayName(displayName, answer)
  }

  readDocument (name: string, preference: MainFilePreference): Awaitable<FileContent> {
    return whenReady(this.readMainFile(name, preference), (content) => {
      if (content.utf8 === undefined) throw documentError.notUtf8(name)
      return content
    })
  }

  readMainFile (name: string, preference: MainFilePreference): Awaitable<FileContent> {
    return this.#files.readMainFile(name, preference)
  }

  readFile (name: string, path: string): Awaitable<FileContent> {
    return this.#files.readFile(name, path)
  }

  openFile (name: string, path: string): Awaitable<ServableFile> {
    return this.#files.openFile(name, path)
  }

  manifest (name: string): Promise<Manifest> {
    return this.#files.manifest(name)
  }

  archive (name: string, nameOf?: (path: string) => string): Promise<SkillArchive> {
    return this.#files.archive(name, nameOf)
  }

  keptRevisions (name: string): readonly string[] {
    return this.#files.keptRevisions(name)
  }

  at (revision: string): PinnedSource {
    return new SkillsAtRevision(this, this.#files, revision)
  }

  /** Wave's and Neovate's reading interface. */
  getAvailableSkills (): SkillMetadata[] {
    return [...this.#catalog.last.available]
  }

  getSkills (): SkillMetadata[] {
    return this.#catalog.last.readable.map(({ metadata }) => metadata)
  }

  async loadSkill (skillName: string): Promise<Skill | null> {
    if (await this.#catalog.find(skillName) === undefined) return null
    return await this.read(skillName, async (state) => {
      const content = await state.mainFile()
      if (content.utf8 === undefined) throw documentError.notUtf8(skillName)
      return { ...toCatalogSkill(state.skill), content: content.utf8 }
    })
  }

  async readSkillBody (skill: Pick<SkillMetadata, 'skillPath'>): Promise<string> {
    const content = await this.readDocument(basename(skill.skillPath), 'SKILL.md')
    return skillBody(content.utf8 ?? '')
  }

  #isOwn ({ root }: DiskArea): boolean {
    return this.#roots.indexOf(root) !== -1
  }

  /** A skill is listed once it was checked: those of the start, and those that came since. */
  async #checkNew (): Promise<void> {
    await this.#firstIndex
    await this.#roots.sync(undefined, true)
    await this.#catalog.checkNew()
  }

  async #startOnce (): Promise<void> {
    await this.#roots.sync()
    await this.#catalog.verifyAll()
    this.#indexed = true
    const { names, available } = this.#catalog.last
    this.#log.info({ skills: names.length, valid: available.length, roots: this.#roots.status }, 'the skills are indexed')
    this.#refresher.start()
  }
}

export function createSkillManager (options: SkillManagerOptions): SkillManager {
  return new SkillManager(options)
}
