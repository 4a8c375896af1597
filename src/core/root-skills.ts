import type { CatalogChange, IndexedSkill } from './catalog/catalog.ts'
import type { SkillFolder } from './roots/scan-root.ts'
import type { MadeManifest } from './content/manifest.ts'
import type { SkillFiles } from './content/skill-files.ts'
import type { Awaitable } from './shared/async.ts'
import type { SkillError } from './shared/errors.ts'
import type { Signal } from './shared/signal.ts'
import type { Refresh } from './refresher.ts'
import type { CatalogSkill } from './shared/skill.ts'
import type { SkillStatus } from './skill-source.ts'
import { type Core, type RootSkillsOptions, wireCore } from './wiring.ts'

/**
 * The skills of one root, fresh at every question. What an answer is made of is compared with the disk before the answer is given.
 * The watcher and the regular comparisons keep the rest of the index near; no answer depends on them. Consumers: views, which
 * put roots together. What a method of the same name promises stands in `SkillService`.
 */
export class RootSkills {
  /** What is in the skills. */
  readonly files: SkillFiles
  readonly #core: Core
  #indexed = false
  /** There from the beginning: whoever asks before the start waits too. */
  readonly #firstIndex: Promise<void>
  /** Undefined after the start. */
  #beginIndex: ((index: Promise<void>) => void) | undefined

  constructor (options: RootSkillsOptions) {
    this.#firstIndex = new Promise((resolve) => { this.#beginIndex = resolve })
    this.#core = wireCore(options)
    this.files = this.#core.files
  }

  /** What settings and reports call the root. */
  get name (): string {
    return this.#core.root.name
  }

  /** Absolute path of the root, as configured. */
  get path (): string {
    return this.#core.root.path
  }

  /** Lists the root, and returns when `list` can be answered; the index and the watcher follow in the background. */
  async start (): Promise<void> {
    const listed = this.#core.root.sync()
    this.#beginIndex?.(this.#index(listed))
    this.#beginIndex = undefined
    await listed
  }

  /** Logs the state that the start has found. */
  logStart (): void {
    this.#core.catalogLog.start()
  }

  async close (): Promise<void> {
    // Nobody waits for a start that does not come any more.
    this.#firstIndex.catch(() => {})
    this.#beginIndex?.(Promise.reject(new Error('closed before the start')))
    this.#beginIndex = undefined
    await this.#core.close()
  }

  subscribe (listener: (change: CatalogChange) => void): () => void {
    return this.#core.catalog.changed.subscribe(listener)
  }

  /** While somebody listens, the folders inside of inspected skills are watched too. */
  observe (listener: (names?: Iterable<string>) => void): () => void {
    const { catalog, refresher } = this.#core
    const stop = catalog.touched.subscribe(listener)
    refresher.wantInside(true)
    return () => {
      stop()
      refresher.wantInside(catalog.touched.hasListeners)
    }
  }

  get refreshed (): Signal<Refresh> { return this.#core.refresher.refreshed }

  get manifestMade (): Signal<MadeManifest> { return this.#core.manifests.made }

  /** Whether changes in the root cause events, or it is polled. */
  isWatching (): boolean { return this.#core.refresher.watcher.status === 'watching' }

  get status (): SkillStatus {
    const { catalog, guard, refresher, root } = this.#core
    const { generation, names } = catalog.last
    const { failure, path, unavailable } = root
    return {
      ready: this.#indexed && unavailable === undefined,
      indexed: this.#indexed,
      generation,
      skills: names.length,
      roots: [catalog.rootStatus],
      watcher: refresher.watcher,
      failures: failure === undefined ? [] : [failure],
      hanging: guard.hanging.filter((area) => area.name !== '' && area.root === path).flatMap(({ name }) => root.namesIn(name))
    }
  }

  /** Compares the root with the disk. */
  sync (): Promise<void> {
    return this.#core.root.sync()
  }

  async list (): Promise<readonly string[]> {
    const { root } = this.#core
    if (!root.holdsAtOnce()) await root.sync(true)
    root.requireFolder()
    return this.namesNow()
  }

  /** Resolves when all skills that the last listing has found have been read. */
  async indexed (): Promise<void> {
    const { catalog } = this.#core
    await this.#firstIndex
    if (catalog.last.unread.length > 0) await catalog.readNew()
  }

  availableNow (): readonly CatalogSkill[] {
    return this.#core.catalog.last.available
  }

  /** The number of skills with an error in the index. */
  get invalidCount (): number {
    return this.#core.catalog.last.invalidCount
  }

  /** Goes up with each change that a caller can see. */
  get generation (): number {
    return this.#core.catalog.last.generation
  }

  /** Goes up with each difference of the root's own folder: a skill may have come from there, or gone to it. */
  get moveCount (): number {
    return this.#core.root.changeCount
  }

  /** Whether the root has no skill of this name that another root has, nor kept revisions of one. Costs no listing. */
  lacks (name: string): Awaitable<boolean> {
    return this.files.kept.revisionsOf(name).size === 0 && this.#core.root.lacks(name)
  }

  /** Goes up with each difference that was found on the disk. */
  get changeCount (): number {
    return this.#core.catalog.changeCount
  }

  /** The error of a root that is not there. As fresh as the last question. */
  get unavailable (): SkillError | undefined {
    return this.#core.root.unavailable
  }

  /** Compares the names in the frontmatter of all skills with the disk. */
  verifyDisplayNames (): Promise<void> {
    return this.#core.catalog.verifyDisplayNames()
  }

  namesNow (): readonly string[] {
    return this.#core.catalog.last.names
  }

  /** What the index holds of a skill, without a comparison with the disk. */
  findNow (name: string): IndexedSkill | undefined {
    return this.#core.catalog.last.get(name)
  }

  /** The folder of a skill, as of the last scan: another object after every change of what the name means. */
  folderNow (name: string): SkillFolder | undefined {
    return this.#core.catalog.last.folders.get(name)
  }

  /** Stands for the folder that the index has of a skill: another one after a switch to files that lay ready, however old they are. */
  folderIdNow (name: string): string | undefined {
    const signature = this.findNow(name)?.folderSignature
    return signature && `${signature.dev}:${signature.ino}`
  }

  /** Names of the folders whose skills have this name in their frontmatter, and another one than the folder. */
  namedOtherwise (displayName: string): readonly string[] {
    return this.#core.catalog.last.namedOtherwise(displayName)
  }

  async #index (listed: Promise<void>): Promise<void> {
    await listed
    await this.#core.catalog.verifyAll()
    this.#indexed = true
    this.#core.refresher.start()
  }
}
