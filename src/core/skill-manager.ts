import { basename } from 'node:path'
import type { CatalogChange } from './catalog/catalog.ts'
import type { LiveCatalog } from './catalog/live-catalog.ts'
import type { MainFilePreference } from './format/main-files.ts'
import type { Roots } from './roots/roots.ts'
import type { SkillArchive } from './content/archive.ts'
import type { Inspected, Unread } from './content/manifest.ts'
import type { SkillFiles } from './content/skill-files.ts'
import type { SkillState } from './content/skill-state.ts'
import { SkillError } from './ground/errors.ts'
import { type FileContent, mainFileText } from './files/file-content.ts'
import type { FileStore, ServableFile } from './files/file-store.ts'
import { skillBody } from './format/main-file.ts'
import { type CoreLog, SILENT } from './ground/log.ts'
import type { Signal } from './ground/signal.ts'
import { SkillsAtRevision } from './skills-at-revision.ts'
import type { Refresh, Refresher } from './refresher.ts'
import type { SearchAnswer } from './search/search.ts'
import { type CatalogSkill, type Manifest, type Skill, type SkillMetadata, toCatalogSkill } from './ground/skill.ts'
import type { SkillManagerOptions, SkillManagerTimes } from './skill-manager-options.ts'
import type { SourceAtRevision, SkillService, SkillStatus } from './skill-source.ts'
import { type Core, wireCore } from './wiring.ts'

export type { SkillManagerOptions, SkillManagerTimes }

/**
 * All skills, fresh at every question. What an answer is made of is compared with the disk before the answer is given.
 * The watcher and the regular comparisons keep the rest of the index near; no answer depends on them.
 */
export class SkillManager implements SkillService {
  readonly scope = ''
  readonly #log: CoreLog
  readonly #core: Core
  readonly #catalog: LiveCatalog
  readonly #roots: Roots
  readonly #files: SkillFiles
  readonly #refresher: Refresher
  readonly #stopFollowing: (() => void) | undefined
  #indexed = false
  /** There from the beginning: whoever asks before the start waits too. */
  readonly #firstIndex: Promise<void>
  /** Undefined once the manager has started. */
  #beginIndex: ((index: Promise<void>) => void) | undefined

  constructor (options: SkillManagerOptions) {
    this.#log = options.log ?? SILENT
    this.#firstIndex = new Promise((resolve) => { this.#beginIndex = resolve })
    this.#core = wireCore(options)
    this.#catalog = this.#core.catalog
    this.#roots = this.#core.roots
    this.#files = this.#core.files
    this.#refresher = this.#core.refresher
    this.#stopFollowing = options.policy?.changed.subscribe(() => { if (this.#indexed) this.#catalog.readmit() })
  }

  /** The memory for contents of files. */
  get contents (): Pick<FileStore, 'usage'> {
    return this.#core.store
  }

  /** Lists the roots, and returns when `list` can be answered; the index and the watcher follow in the background. */
  async start (): Promise<void> {
    const listed = this.#roots.sync()
    this.#beginIndex?.(this.#index(listed))
    this.#beginIndex = undefined
    await listed
  }

  /** Wave's `initialize`: like `start`, and waits until every skill has been read. */
  async initialize (): Promise<void> {
    await this.start()
    await this.#firstIndex
  }

  async close (): Promise<void> {
    this.#stopFollowing?.()
    // Nobody waits for a start that does not come any more.
    this.#firstIndex.catch(() => {})
    this.#beginIndex?.(Promise.reject(new Error('closed before the start')))
    this.#beginIndex = undefined
    await this.#core.close()
  }

  beginRequest (connection: object): void {
    this.#core.phase.begin(connection)
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
  isWatching (): boolean { return this.#refresher.watcher.status === 'watching' }

  get status (): SkillStatus {
    const { gate, guard } = this.#core
    const { generation, names } = this.#catalog.last
    return {
      ready: this.#indexed && this.#roots.unavailable === undefined,
      indexed: this.#indexed,
      generation,
      skills: names.length,
      roots: this.#catalog.rootStatus,
      watcher: this.#refresher.watcher,
      failures: this.#roots.failures,
      hanging: guard.hanging.filter(({ root, name }) => name !== '' && this.#roots.indexOf(root) !== -1).map(({ name }) => name),
      ...gate && { quarantined: gate.refused.length }
    }
  }

  async freshStatus (): Promise<SkillStatus> {
    await this.#roots.sync()
    return this.status
  }

  async list (): Promise<readonly string[]> {
    // The skills of the start are checked while they are indexed.
    if (this.#core.gate !== undefined) await this.#firstIndex
    return await this.#files.list()
  }

  find (name: string): Promise<CatalogSkill | undefined> {
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
    return new Map(this.#catalog.rootStatus.map(({ name }, root) => [name, counts.get(root) ?? 0]))
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
  verifyDisplayNames (): Promise<void> {
    return this.#catalog.verifyDisplayNames()
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
    return await this.#core.search.search(query)
  }

  read<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    return this.#files.read(name, answer)
  }

  readListed<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    return this.#files.readListed(name, answer)
  }

  async readByDisplayName<T> (displayName: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    // Of several skills with one name the first in order counts: all must have been read.
    await this.#firstIndex
    return await this.#files.readByDisplayName(displayName, answer)
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

  manifest (name: string): Promise<Manifest> {
    return this.#files.manifest(name)
  }

  archive (name: string, nameOf?: (path: string) => string): Promise<SkillArchive> {
    return this.#files.archive(name, nameOf)
  }

  keptRevisions (name: string): readonly string[] {
    return this.#files.keptRevisions(name)
  }

  at (revision: string): SourceAtRevision {
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
    return await this.read(skillName, async (state) => ({ ...toCatalogSkill(state.skill), content: mainFileText(await state.mainFile(), skillName) }))
  }

  async readSkillBody (skill: Pick<SkillMetadata, 'skillPath'>): Promise<string> {
    const name = basename(skill.skillPath)
    return skillBody(mainFileText(await this.readMainFile(name, 'SKILL.md'), name))
  }

  async #index (listed: Promise<void>): Promise<void> {
    await listed
    await this.#catalog.verifyAll()
    this.#indexed = true
    const { names, available } = this.#catalog.last
    this.#log.info({ skills: names.length, valid: available.length, roots: this.#catalog.rootStatus }, 'the skills are indexed')
    this.#refresher.start()
  }
}

export function createSkillManager (options: SkillManagerOptions): SkillManager {
  return new SkillManager(options)
}
