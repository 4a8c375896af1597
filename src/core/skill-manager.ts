import { setTimeout as sleep } from 'node:timers/promises'
import { Catalog, type CatalogOptions } from './catalog.ts'
import { skillBody } from './format/main-file.ts'
import { Ledger } from './ledger.ts'
import { mainFileText } from './read/file-content.ts'
import { CatalogSearch } from './search/catalog-search.ts'
import { addressOf, type Skill, type SkillMetadata } from './shared/skill.ts'
import { type GrantOf, View } from './view.ts'
import type { RootOptions } from './roots/root.ts'
import { Refresher, type RefresherOptions } from './watch/refresher.ts'

/** Longest time that a start waits for a slow root to be listed, in milliseconds. */
const SLOW_START_MS = 1_000

export type SkillManagerOptions = CatalogOptions & RefresherOptions

/** The view of all skills of all roots. Starts and stops everything, and creates views for callers. */
export class SkillManager extends View {
  constructor (options: SkillManagerOptions) {
    const catalog = new Catalog(options)
    super('', () => 'all', {
      catalog,
      refresher: new Refresher(catalog, options),
      ledger: new Ledger(catalog, options.log),
      search: new CatalogSearch(catalog)
    })
  }

  /** Lists the roots, but waits for no slow one. The index and the watchers follow in the background. */
  async start (): Promise<void> {
    this.parts.refresher.start()
    const isListed = Promise.all(this.parts.catalog.roots.map((root) => root.list()))
    await Promise.race([isListed, sleep(SLOW_START_MS, undefined, { ref: false })])
  }

  /** Wave's: starts, and waits until every skill has been read. */
  async initialize (): Promise<void> {
    await this.start()
    await this.indexed()
  }

  /** Replaces the roots. One with the same options object keeps its skills. */
  async setRoots (roots: readonly RootOptions[]): Promise<void> {
    await this.parts.refresher.setRoots(roots)
  }

  async close (): Promise<void> {
    const { catalog, ledger, refresher } = this.parts
    catalog.close()
    ledger.close()
    await refresher.close()
  }

  /** Names of the roots in their order, which may contain duplicates. */
  get rootNames (): readonly string[] {
    return this.parts.catalog.roots.map(({ name }) => name)
  }

  /** Returns the names of the skills in a root, as of its last listing. */
  skillsIn (root: string): readonly string[] {
    return [...this.parts.catalog.roots.find(({ name }) => name === root)?.folders.keys() ?? []]
  }

  /** Creates a view of the roots that have a grant. `scope` must be unique among views with different grants. */
  createView (scope: string, grantOf: GrantOf): View {
    return new View(scope, grantOf, this.parts)
  }

  /** Part of Wave's and Neovate's interface. */
  getAvailableSkills (): SkillMetadata[] {
    return [...this.availableIndexed()]
  }

  /** Returns all skills whose main file could be read. */
  getSkills (): SkillMetadata[] {
    return this.indexedNames().flatMap((name) => {
      const skill = this.findIndexed(name)
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
