import type { CatalogChange, IndexedSkill } from './catalog/catalog.ts'
import type { LiveCatalog } from './catalog/live-catalog.ts'
import type { MainFilePreference } from './format/main-files.ts'
import type { Root } from './roots/root.ts'
import type { SkillFolder } from './roots/scan-root.ts'
import type { Inspected, MadeManifest, Unread } from './content/manifest.ts'
import type { SkillFiles } from './content/skill-files.ts'
import type { SkillState } from './content/skill-state.ts'
import type { Awaitable } from './ground/async.ts'
import { SkillError } from './ground/errors.ts'
import type { FileContent } from './files/file-content.ts'
import type { ServableFile } from './files/file-store.ts'
import type { Signal } from './ground/signal.ts'
import type { Refresh, Refresher } from './refresher.ts'
import type { CatalogSkill } from './ground/skill.ts'
import type { SkillStatus } from './skill-source.ts'
import { type Core, type RootSkillsOptions, wireCore } from './wiring.ts'

/**
 * The skills of one root, fresh at every question. What an answer is made of is compared with the disk before the answer is given.
 * The watcher and the regular comparisons keep the rest of the index near; no answer depends on them. Consumers: views, which
 * put roots together. What a method of the same name promises stands in `SkillService`.
 */
export class RootSkills {
  readonly #core: Core
  readonly #catalog: LiveCatalog
  readonly #root: Root
  readonly #files: SkillFiles
  readonly #refresher: Refresher
  readonly #stopFollowing: (() => void) | undefined
  #indexed = false
  /** There from the beginning: whoever asks before the start waits too. */
  readonly #firstIndex: Promise<void>
  /** Undefined after the start. */
  #beginIndex: ((index: Promise<void>) => void) | undefined

  constructor (options: RootSkillsOptions) {
    this.#firstIndex = new Promise((resolve) => { this.#beginIndex = resolve })
    this.#core = wireCore(options)
    this.#catalog = this.#core.catalog
    this.#root = this.#core.root
    this.#files = this.#core.files
    this.#refresher = this.#core.refresher
    this.#stopFollowing = options.policy?.changed.subscribe(() => { if (this.#indexed) this.#catalog.readmit() })
  }

  /** What settings and reports call the root. */
  get name (): string {
    return this.#root.name
  }

  /** Absolute path of the root, as configured. */
  get path (): string {
    return this.#root.path
  }

  /** Lists the root, and returns when `list` can be answered; the index and the watcher follow in the background. */
  async start (): Promise<void> {
    const listed = this.#root.sync()
    this.#beginIndex?.(this.#index(listed))
    this.#beginIndex = undefined
    await listed
  }

  /** Logs the state that the start has found. */
  logStart (): void {
    this.#core.catalogLog.start()
  }

  async close (): Promise<void> {
    this.#stopFollowing?.()
    // Nobody waits for a start that does not come any more.
    this.#firstIndex.catch(() => {})
    this.#beginIndex?.(Promise.reject(new Error('closed before the start')))
    this.#beginIndex = undefined
    await this.#core.close()
  }

  subscribe (listener: (change: CatalogChange) => void): () => void {
    return this.#catalog.changed.subscribe(listener)
  }

  /** While somebody listens, the folders inside of inspected skills are watched too. */
  observe (listener: (names?: Iterable<string>) => void): () => void {
    const stop = this.#catalog.touched.subscribe(listener)
    this.#refresher.wantInside(true)
    return () => {
      stop()
      this.#refresher.wantInside(this.#core.gate !== undefined || this.#catalog.touched.hasListeners)
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
      this.#refresher.followInside(folder.realPath, inside)
      return state
    } catch (error) {
      // Not there, or no root, or gone meanwhile.
      if (error instanceof SkillError && error.code !== 'file_io_error' && error.code !== 'skill_changing') return undefined
      throw error
    }
  }

  get refreshed (): Signal<Refresh> { return this.#refresher.refreshed }

  get manifestMade (): Signal<MadeManifest> { return this.#core.manifests.made }

  /** Whether changes in the root cause events, or it is polled. */
  isWatching (): boolean { return this.#refresher.watcher.status === 'watching' }

  get status (): SkillStatus {
    const { gate, guard } = this.#core
    const { generation, names } = this.#catalog.last
    const root = this.#root
    const { failure, path, unavailable } = root
    return {
      ready: this.#indexed && unavailable === undefined,
      indexed: this.#indexed,
      generation,
      skills: names.length,
      roots: [this.#catalog.rootStatus],
      watcher: this.#refresher.watcher,
      failures: failure === undefined ? [] : [failure],
      hanging: guard.hanging.filter((area) => area.name !== '' && area.root === path).flatMap(({ name }) => root.namesIn(name)),
      ...gate && { quarantined: gate.refusedCount }
    }
  }

  /** Compares the root with the disk. */
  sync (): Promise<void> {
    return this.#root.sync()
  }

  async list (): Promise<readonly string[]> {
    // The skills of the start are checked while they are indexed.
    if (this.#core.gate !== undefined) await this.#firstIndex
    return await this.#files.list()
  }

  find (name: string): Promise<CatalogSkill | undefined> {
    return this.#files.find(name)
  }

  /** Resolves when all skills that the last listing has found have been read. */
  async indexed (): Promise<void> {
    await this.#firstIndex
    if (this.#catalog.last.unread.length > 0) await this.#catalog.readNew()
  }

  availableNow (): readonly CatalogSkill[] {
    return this.#catalog.last.available
  }

  /** The number of skills with an error in the index. */
  get invalidCount (): number {
    return this.#catalog.last.invalidCount
  }

  /** Goes up with each change that a caller can see. */
  get generation (): number {
    return this.#catalog.last.generation
  }

  /** Goes up with each difference of the root's own folder: a skill may have come from there, or gone to it. */
  get moveCount (): number {
    return this.#root.changeCount
  }

  /** Whether the root has no skill of this name that another root has, nor kept revisions of one. Costs no listing. */
  lacks (name: string): Awaitable<boolean> {
    return this.kept.revisionsOf(name).size === 0 && this.#root.lacks(name)
  }

  /** Goes up with each difference that was found on the disk. */
  get changeCount (): number {
    return this.#catalog.changeCount
  }

  /** The error of a root that is not there. As fresh as the last question. */
  get unavailable (): SkillError | undefined {
    return this.#root.unavailable
  }

  /** Compares the names in the frontmatter of all skills with the disk. */
  verifyDisplayNames (): Promise<void> {
    return this.#catalog.verifyDisplayNames()
  }

  namesNow (): readonly string[] {
    return this.#catalog.last.names
  }

  /** What the index holds of a skill, without a comparison with the disk. */
  findNow (name: string): IndexedSkill | undefined {
    return this.#catalog.last.get(name)
  }

  /** The folder of a skill, as of the last scan: another object after every change of what the name means. */
  folderNow (name: string): SkillFolder | undefined {
    return this.#catalog.last.folders.get(name)
  }

  /** Stands for the folder that the index has of a skill: another one after a switch to files that lay ready, however old they are. */
  folderIdNow (name: string): string | undefined {
    const signature = this.findNow(name)?.folderSignature
    return signature && `${signature.dev}:${signature.ino}`
  }

  /** Names of the folders whose skills have this name in their frontmatter, and another one than the folder. */
  namedOtherwise (displayName: string): readonly string[] {
    return this.#catalog.last.namedOtherwise(displayName)
  }

  /** See `SkillFiles.read`. */
  read<T> (name: string, answer: (state: SkillState) => Promise<T>, revision?: string, present?: IndexedSkill): Promise<T> {
    return this.#files.read(name, answer, revision, present)
  }

  readListed<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    return this.#files.readListed(name, answer)
  }

  mainFileAtOnce (name: string, preference: MainFilePreference): FileContent | undefined {
    return this.#files.mainFileAtOnce(name, preference)
  }

  fileAtOnce (name: string, path: string): FileContent | undefined {
    return this.#files.fileAtOnce(name, path)
  }

  readMainFile (name: string, preference: MainFilePreference): Promise<FileContent> {
    return this.#files.readMainFile(name, preference)
  }

  readFile (name: string, path: string): Promise<FileContent> {
    return this.#files.readFile(name, path)
  }

  openFile (name: string, path: string): Promise<ServableFile> {
    return this.#files.openFile(name, path)
  }

  get kept (): SkillFiles['kept'] { return this.#files.kept }

  async #index (listed: Promise<void>): Promise<void> {
    await listed
    await this.#catalog.verifyAll()
    this.#indexed = true
    this.#refresher.start()
  }
}
