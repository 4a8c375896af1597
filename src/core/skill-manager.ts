import { mainFileText } from './files/file-content.ts'
import type { MadeManifest } from './content/manifest.ts'
import type { FileStore } from './files/file-store.ts'
import { skillBody } from './format/main-file.ts'
import { folderError, type SkillError } from './shared/errors.ts'
import { type CoreLog, SILENT } from './shared/log.ts'
import { Signal } from './shared/signal.ts'
import { addressOf, type Skill, type SkillMetadata, toCatalogSkill } from './shared/skill.ts'
import type { Refresh } from './refresher.ts'
import { RootSkills } from './root-skills.ts'
import { createSharedParts, type SharedParts } from './shared-parts.ts'
import type { SkillManagerOptions } from './skill-manager-options.ts'
import type { SkillStatus } from './skill-source.ts'
import { MemberLists } from './views/member-lists.ts'
import { RootsSearch } from './views/roots-search.ts'
import { SharedInspections } from './views/shared-inspections.ts'
import { View, type ViewGround } from './views/view.ts'
import type { ViewMember } from './views/view-member.ts'

export type { SkillManagerOptions }

/** The skills of a root that a view has: all of them, or those whose names fit. */
export type Grant = 'all' | ((name: string) => boolean)

/** A refresh of one root. */
export interface RootRefresh extends Refresh {
  /** The position of the root. */
  readonly root: number
  /** Differences between index and disk that were found since the refresh before. */
  readonly differences: number
}

/** A manifest of a skill in one root. */
export interface RootManifest extends MadeManifest {
  /** The position of the root. */
  readonly root: number
}

/**
 * All skills, in the roots' order: the view of everything. It starts and stops the roots, and makes smaller views. Each skill is
 * indexed and read once, however many views have it.
 */
export class SkillManager extends View {
  /** Each refresh of a root. */
  readonly refreshed = new Signal<RootRefresh>()
  /** Each manifest that was made, and not found in memory. */
  readonly manifestMade = new Signal<RootManifest>()
  readonly #log: CoreLog
  readonly #parts: Parts
  readonly #roots: readonly RootSkills[]
  #isStarted = false

  constructor (options: SkillManagerOptions) {
    const parts = createParts(options)
    super('', new MemberLists(parts.members), parts.ground)
    this.#log = options.log ?? SILENT
    this.#parts = parts
    this.#roots = parts.roots
    for (const [root, skills] of parts.roots.entries()) {
      let before = skills.changeCount
      skills.refreshed.subscribe((refresh) => {
        const now = skills.changeCount
        this.refreshed.emit({ ...refresh, root, differences: now - before })
        before = now
      })
      skills.manifestMade.subscribe((manifest) => { this.manifestMade.emit({ ...manifest, root }) })
    }
  }

  /** The memory for contents of files. */
  get contents (): Pick<FileStore, 'usage'> {
    return this.#parts.shared.store
  }

  /** Lists the roots, and returns when `list` can be answered; the index and the watchers follow in the background. */
  async start (): Promise<void> {
    const starts = Promise.all(this.#roots.map((skills) => skills.start()))
    if (!this.#isStarted) this.available().then((available) => { this.#logIndexed(available.length) }, () => {})
    this.#isStarted = true
    await starts
    for (const skills of this.#roots) skills.logStart()
  }

  /** Wave's `initialize`: like `start`, and waits until every skill has been read. */
  async initialize (): Promise<void> {
    await this.start()
    await this.available()
  }

  async close (): Promise<void> {
    await Promise.all(this.#roots.map((skills) => skills.close()))
  }

  #logIndexed (valid: number): void {
    this.#log.info({ skills: this.namesNow().length, valid, roots: this.status.roots }, 'the skills are indexed')
  }

  override get unavailable (): SkillError | undefined {
    return this.#roots.length === 0 ? folderError.notFound('') : super.unavailable
  }

  override get status (): SkillStatus {
    const status = super.status
    return { ...status, ready: status.ready && this.unavailable === undefined }
  }

  /** Goes up with each change of a root that a caller can see. */
  override get generation (): number {
    return this.#roots.reduce((sum, { generation }) => sum + generation, 0)
  }

  /** The number of skills with an error in the index, for each root. */
  invalidNow (): readonly number[] {
    return this.#roots.map(({ invalidCount }) => invalidCount)
  }

  /** Whether changes in the root at this position cause events, or it is polled. */
  isWatching (root: number): boolean {
    return this.#roots[root]?.isWatching() === true
  }

  /** As configured, in their order. */
  get rootPaths (): readonly string[] {
    return this.#roots.map(({ path }) => path)
  }

  /** In their order; may hold one name twice. */
  get rootNames (): readonly string[] {
    return this.#roots.map(({ name }) => name)
  }

  /** Names of the skills in a root, as of its last scan. */
  skillsIn (root: string): readonly string[] {
    return this.#roots.find(({ name }) => name === root)?.namesNow() ?? []
  }

  /**
   * A view of the roots that have a grant, in the order of the roots.
   * @param scope differs from that of every other view
   * @param before the view that it takes the place of
   */
  createView (scope: string, grants: ReadonlyMap<string, Grant>, before?: View): View {
    return new View(scope, new MemberLists(this.#membersOf(grants), before?.generation), this.#parts.ground)
  }

  #membersOf (grants: ReadonlyMap<string, Grant>): readonly ViewMember[] {
    return this.#parts.members.flatMap((member) => {
      const grant = grants.get(member.skills.name)
      if (grant === undefined) return []
      return grant === 'all' ? member : { ...member, allows: grant, isWhole: false }
    })
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
    return await this.read(skillName, async (state) => ({ ...toCatalogSkill(state.skill), content: mainFileText(await state.mainFile(), skillName) }))
  }

  async readSkillBody (skill: Pick<SkillMetadata, 'address' | 'skillPath'>): Promise<string> {
    const name = addressOf(skill)
    return skillBody(mainFileText(await this.readMainFile(name, 'SKILL.md'), name))
  }
}

export function createSkillManager (options: SkillManagerOptions): SkillManager {
  return new SkillManager(options)
}

interface Parts {
  readonly shared: SharedParts
  readonly roots: readonly RootSkills[]
  /** A member for each root, with all its skills. */
  readonly members: readonly ViewMember[]
  readonly ground: ViewGround
}

function createParts ({ projectRoots, personalRoot, guard, keep, hasRoom, ...options }: SkillManagerOptions): Parts {
  const shared = createSharedParts({ guard, hasRoom, keep })
  const roots = [
    ...projectRoots.map((root) => new RootSkills({ ...options, root, type: 'project', shared })),
    ...personalRoot === undefined ? [] : [new RootSkills({ ...options, root: personalRoot, type: 'personal', shared })]
  ]
  const members = roots.map((skills): ViewMember => ({ skills, inspections: new SharedInspections(skills), allows: everything, isWhole: true }))
  return { shared, roots, members, ground: { phase: shared.phase, search: new RootsSearch(roots) } }
}

function everything (): boolean {
  return true
}
