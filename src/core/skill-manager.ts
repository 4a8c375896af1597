import { Catalog } from './catalog.ts'
import { skillBody } from './format/main-file.ts'
import { logCatalog } from './log.ts'
import type { CacheUsage } from './read/file-cache.ts'
import type { Disk } from './read/disk.ts'
import { mainFileText } from './read/file-content.ts'
import type { KeepOptions } from './revisions/kept-revisions.ts'
import type { RootOptions } from './roots/root.ts'
import type { SkippedEntry } from './roots/list-root.ts'
import { CatalogSearch } from './search/catalog-search.ts'
import { type CoreLog, SILENT } from './shared/log.ts'
import { addressOf, type CatalogSkill, type Skill, type SkillMetadata, toCatalogSkill } from './shared/skill.ts'
import { type Grant, View, type ViewParts } from './view.ts'
import { type Refresh, Refresher } from './watch/refresher.ts'

export type { Grant }

export interface SkillManagerOptions {
  /** Absolute paths, or folders with names; the earlier wins. They need not exist. */
  readonly projectRoots: readonly (string | RootOptions)[]
  /** Loses to every project root. */
  readonly personalRoot?: string | RootOptions
  /** Absolute paths: links in a root that leave it are followed when they lead to or into one of these folders. */
  readonly linkTargets?: readonly string[] | undefined
  /** Compare everything each second instead of asking the kernel for events. */
  readonly polling?: boolean
  readonly log?: CoreLog
  /** Called with the entries of a root that could be skills and are left out, which the log names too. */
  readonly onSkipped?: ((entries: readonly SkippedEntry[]) => void) | undefined
  /** `false` runs without a watcher: everything is compared every 20 seconds. */
  readonly watcher?: boolean
  /** Pause between two comparisons of everything, in milliseconds. Default 20,000, with polling 1,000. */
  readonly tickMs?: number | undefined
  /** The file system, for all roots. Default: what fits the kind of disk of each root. */
  readonly disk?: Disk
  /** Which revisions stay readable after a change. */
  readonly keep?: KeepOptions
}

/** All skills, in the order of the roots: the view of everything. It starts and stops, and makes smaller views. */
export class SkillManager extends View {
  readonly #parts: ViewParts

  constructor (options: SkillManagerOptions) {
    const { projectRoots, personalRoot, linkTargets, disk, keep, polling = false, watcher = true, tickMs } = options
    const { log = SILENT, onSkipped } = options
    const catalog = new Catalog({
      roots: [
        ...projectRoots.map((root) => ({ options: root, type: 'project' as const })),
        ...personalRoot === undefined ? [] : [{ options: personalRoot, type: 'personal' as const }]
      ],
      linkTargets,
      disk,
      keep
    })
    const parts: ViewParts = {
      catalog,
      search: new CatalogSearch(catalog),
      refresher: new Refresher({ catalog, polling, isWatching: watcher, tickMs, log })
    }
    super('', new Map([...catalog.roots.keys()].map((root) => [root, 'all'])), parts)
    this.#parts = parts
    logCatalog(catalog, log, onSkipped)
  }

  /** Lists the roots, and returns when `list` can be answered; the index and the watchers follow in the background. */
  async start (): Promise<void> {
    await Promise.all(this.#parts.catalog.roots.map((root) => root.list()))
    void this.#parts.refresher.start()
  }

  /** Wave's `initialize`: starts, and waits until every skill has been read. */
  async initialize (): Promise<void> {
    await this.start()
    await this.available()
  }

  async close (): Promise<void> {
    await this.#parts.refresher.close()
  }

  /** Calls the listener after each refresh of a root. */
  onRefreshed (listener: (refresh: Refresh) => void): void {
    this.#parts.refresher.on('refreshed', listener)
  }

  /** The cache of files' contents. */
  get contents (): { readonly usage: CacheUsage } {
    return this.#parts.catalog.files
  }

  /** The number of skills with an error in the index, for each root. */
  invalidNow (): readonly number[] {
    const { catalog } = this.#parts
    const isInvalid = ({ valid }: CatalogSkill): boolean => !valid
    return catalog.roots.map((_root, index) => [...catalog.skillsIn(index).values()].filter(isInvalid).length)
  }

  /** Whether changes in the root at this position cause events, or it is polled. */
  isWatching (root: number): boolean {
    return this.#parts.refresher.isWatching(root)
  }

  /** As configured, in their order. */
  get rootPaths (): readonly string[] {
    return this.#parts.catalog.roots.map(({ path }) => path)
  }

  /** In their order; may hold one name twice. */
  get rootNames (): readonly string[] {
    return this.#parts.catalog.roots.map(({ name }) => name)
  }

  /** Names of the skills in a root, as of its last listing. */
  skillsIn (root: string): readonly string[] {
    return [...this.#parts.catalog.roots.find(({ name }) => name === root)?.folders.keys() ?? []]
  }

  /**
   * A view of the roots that have a grant, in the order of the roots.
   * @param scope differs from that of every other view
   */
  createView (scope: string, grants: ReadonlyMap<string, Grant>): View {
    return new View(scope, new Map([...this.#parts.catalog.roots.entries()].flatMap(([index, { name }]) => {
      const grant = grants.get(name)
      return grant === undefined ? [] : [[index, grant]]
    })), this.#parts)
  }

  /** Wave's and Neovate's reading interface. */
  getAvailableSkills (): SkillMetadata[] {
    return [...this.availableNow()]
  }

  /** All skills whose main file could be read. */
  getSkills (): SkillMetadata[] {
    return this.namesNow().flatMap((name) => {
      const skill = this.findNow(name)
      return skill?.digest === undefined ? [] : skill.metadata
    })
  }

  async loadSkill (skillName: string): Promise<Skill | null> {
    if (await this.find(skillName) === undefined) return null
    return await this.read(skillName, async (state) => {
      return { ...toCatalogSkill(state.skill), content: mainFileText(await state.mainFile(), skillName) }
    })
  }

  async readSkillBody (skill: Pick<SkillMetadata, 'address' | 'skillPath'>): Promise<string> {
    const name = addressOf(skill)
    return skillBody(mainFileText(await this.read(name, (state) => state.mainFile()), name))
  }
}

export function createSkillManager (options: SkillManagerOptions): SkillManager {
  return new SkillManager(options)
}
