import { Catalog } from './catalog.ts'
import { skillBody } from './format/main-file.ts'
import { logCatalog } from './log.ts'
import type { Disk } from './read/disk.ts'
import { mainFileText } from './read/file-content.ts'
import type { KeepOptions } from './revisions/kept-revisions.ts'
import type { RootOptions } from './roots/root.ts'
import type { SkippedEntry } from './roots/list-root.ts'
import { CatalogSearch } from './search/catalog-search.ts'
import { type CoreLog, SILENT } from './shared/log.ts'
import { addressOf, type Skill, type SkillMetadata } from './shared/skill.ts'
import { type Grant, View } from './view.ts'
import { Refresher } from './watch/refresher.ts'

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
  readonly catalog: Catalog
  readonly refresher: Refresher

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
    const refresher = new Refresher({ catalog, polling, isWatching: watcher, tickMs, log })
    const all = catalog.roots.map((root) => [root, 'all'] as const)
    super('', new Map(all), { catalog, refresher, search: new CatalogSearch(catalog) })
    this.catalog = catalog
    this.refresher = refresher
    logCatalog(catalog, log, onSkipped)
  }

  /** Lists the roots, and returns when `list` can be answered; the index and the watchers follow in the background. */
  async start (): Promise<void> {
    await Promise.all(this.catalog.roots.map((root) => root.list()))
    void this.refresher.start()
  }

  /** Wave's `initialize`: starts, and waits until every skill has been read. */
  async initialize (): Promise<void> {
    await this.start()
    await this.available()
  }

  async close (): Promise<void> {
    await this.refresher.close()
  }

  /** In their order; may hold one name twice. */
  get rootNames (): readonly string[] {
    return this.catalog.roots.map(({ name }) => name)
  }

  /** Names of the skills in a root, as of its last listing. */
  skillsIn (root: string): readonly string[] {
    return [...this.catalog.roots.find(({ name }) => name === root)?.folders.keys() ?? []]
  }

  /**
   * A view of the roots that have a grant, in the order of the roots.
   * @param scope differs from that of every other view
   */
  createView (scope: string, grants: ReadonlyMap<string, Grant>): View {
    return new View(scope, new Map(this.catalog.roots.flatMap((root) => {
      const grant = grants.get(root.name)
      return grant === undefined ? [] : [[root, grant]]
    })), this.parts)
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
      const { name, metadata, frontmatter, findings, valid, digest } = state.skill
      const content = mainFileText(await state.mainFile(), name)
      return { name, metadata, frontmatter, findings, valid, ...digest !== undefined && { digest }, content }
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
