import type { Catalog, IsVisible } from './catalog.ts'
import { ChangeFeed } from './events/change-feed.ts'
import { finding } from './format/findings.ts'
import type { Ledger } from './ledger.ts'
import { readConsistently } from './read-consistently.ts'
import type { IndexedSkill } from './read-skill.ts'
import { KeptState, PresentState, type SkillState } from './revisions/state.ts'
import type { CatalogSearch } from './search/catalog-search.ts'
import type { Root } from './roots/root.ts'
import { folderError, mainFileError, RevisionChangedError, SkillError } from './shared/errors.ts'
import type { CatalogSkill, Finding, SkillMetadata } from './shared/skill.ts'
import { hasForbiddenSequence } from './shared/skill-name.ts'
import { VisibleSkills } from './visible-skills.ts'
import type { Refresher } from './watch/refresher.ts'

/** What all views of a process share. */
export interface ViewParts {
  readonly catalog: Catalog
  readonly ledger: Ledger
  readonly search: CatalogSearch
  readonly refresher: Refresher
}

/** The skills of a root that a view has: all of them, or those whose names fit. */
export type Grant = 'all' | ((name: string) => boolean)

/** The grant of a root, by its name. */
export type GrantOf = (root: string) => Grant | undefined

/**
 * The skills that one caller may see, as if there were no others. A name is resolved in the roots of the view, in their
 * order. All APIs read through a view, whether there are callers or not.
 *
 * What is asked for by name is fresh: a change that was complete before the call is in the answer. What is said of many
 * skills follows changes within a second. Every failure is a `SkillError`.
 */
export class View {
  /** Identifies the set of skills: a cursor of one is not valid for another. Empty where all callers see the same. */
  readonly scope: string
  readonly parts: ViewParts
  readonly grantOf: GrantOf
  protected readonly visible: VisibleSkills
  #feed: ChangeFeed | undefined

  constructor (scope: string, grantOf: GrantOf, parts: ViewParts, visible?: VisibleSkills) {
    this.scope = scope
    this.parts = parts
    this.grantOf = grantOf
    this.visible = visible ?? new VisibleSkills(parts.catalog, this.#isVisible)
  }

  /** Whether the caller may see what a root has under a name. */
  isGranted (root: string, name: string): boolean {
    const grant = this.grantOf(root)
    return grant === 'all' || grant?.(name) === true
  }

  readonly #isVisible: IsVisible = ({ name: root }, name) => this.isGranted(root, name)

  get roots (): readonly Root[] {
    return this.parts.catalog.roots.filter(({ name }) => this.grantOf(name) !== undefined)
  }

  /** The changes of these skills, and their revision as a whole. */
  get feed (): ChangeFeed {
    this.#feed ??= new ChangeFeed(this)
    return this.#feed
  }

  /** Names of all skills, sorted by code point; fresh. The same array while nothing changes. Throws without a root. */
  async list (): Promise<readonly string[]> {
    await this.sync()
    if (this.unavailable !== undefined) throw this.unavailable
    return this.indexedNames()
  }

  async sync (): Promise<void> {
    await Promise.all(this.roots.map((root) => root.sync()))
  }

  /** The names that the index has, without a comparison with the disk. */
  indexedNames (): readonly string[] {
    return this.visible.names
  }

  /** The skill of exactly this name; fresh. Undefined for none, also for a name that no skill can have. */
  async find (name: string): Promise<CatalogSkill | undefined> {
    try {
      return await this.read(name, async ({ skill }) => skill)
    } catch (error) {
      if (isAbsent(error)) return undefined
      throw error
    }
  }

  /** The skill of this name as the index has it, without a comparison with the disk. */
  findIndexed (name: string): CatalogSkill | undefined {
    return this.visible.find(name)
  }

  /** Name of the root that a skill comes from; undefined without such a skill. */
  rootOf (name: string): string | undefined {
    return this.visible.ownerOf(name)?.name
  }

  /** Resolves after the first index: from then on, every change of any file is reported. */
  async indexed (): Promise<void> {
    await this.parts.refresher.indexed(this.roots)
  }

  /** All valid skills, sorted by name. Waits for the first index, and some seconds for that of a slow root. */
  async available (): Promise<readonly SkillMetadata[]> {
    await this.parts.refresher.mostlyIndexed(this.roots)
    return this.availableIndexed()
  }

  availableIndexed (): readonly SkillMetadata[] {
    return this.visible.available
  }

  /** Names of skills that fit the words of a query, the best first. Throws `folderError`'s sentences without a root. */
  async search (query: string): Promise<readonly string[]> {
    await this.list()
    await this.parts.refresher.mostlyIndexed(this.roots)
    return await this.parts.search.search(query, ({ root, name }) => this.visible.ownerOf(name) === root)
  }

  /**
   * Calls `answer` with one consistent, current state of the skill, maybe several times, and returns its result. A
   * revision that the answer names stays readable.
   */
  async read<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    if (hasForbiddenSequence(name)) throw mainFileError.invalidName(name)
    const { catalog } = this.parts
    const find = async (): Promise<IndexedSkill> => {
      const found = await catalog.find(name, this.#isVisible)
      if (found === undefined) throw this.unavailable ?? this.#absent(name)
      return found
    }
    return await readConsistently(catalog, name, find, (found) =>
      answer(new PresentState(this.#shown(found), found, catalog)))
  }

  /** As `read`, of the skill with this name in its frontmatter, else of this name. */
  async readByDisplayName<T> (displayName: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    await this.parts.refresher.mostlyIndexed(this.roots)
    const isCalledSo = (name: string): boolean => this.findIndexed(name)?.metadata.name === displayName
    const name = [displayName, ...this.indexedNames()].find(isCalledSo) ?? displayName
    try {
      return await this.read(name, answer)
    } catch (error) {
      // Its sentence has the name that was asked for.
      throw isAbsent(error) ? mainFileError.skillNotFound(displayName) : error
    }
  }

  /** Revisions of a skill that `at` gives although the skill may have moved on; the one used last first. */
  keptRevisions (name: string): readonly string[] {
    const { all } = this.parts.catalog.kept
    const kept = all.filter(({ skill }) => skill.name === name && this.#isVisible(skill.root, name))
    return [...new Set(kept.map(({ manifest }) => manifest.revision))]
  }

  /** A revision that was handed out before, as the rules of this moment allow it. */
  async keptState (name: string, revision: string): Promise<SkillState | undefined> {
    const { catalog } = this.parts
    const present = await catalog.find(name, this.#isVisible)
    for (const root of this.roots) {
      if (!this.#isVisible(root, name)) continue
      const kept = await catalog.findKept({ root, name }, revision, present)
      if (kept !== undefined && root.source?.allows?.(name, revision) !== false) return new KeptState(kept)
    }
    return undefined
  }

  /**
   * These skills in one revision, for one request.
   * @param revision `sha256:<hex>`, or `current` for the one that each skill has at its first read
   */
  at (revision: string): PinnedView {
    return new PinnedView(this, revision, this.visible)
  }

  /** Goes up with each change of the names, and of what is said of valid skills. */
  get generation (): number {
    return this.visible.generation
  }

  /** The error of a view whose roots are all missing. */
  get unavailable (): SkillError | undefined {
    const errors = this.roots.map((root) => root.unavailable)
    if (errors.length === 0) return this.scope === '' ? folderError.notFound('') : undefined
    if (errors.includes(undefined)) return undefined
    return errors.find((error) => error?.code === 'skills_folder_permission_denied') ?? errors[0]
  }

  /** What a root has that has never answered is not known. */
  #absent (name: string): SkillError {
    const isUnknown = this.roots.some((root) =>
      root.listing === undefined && root.failure?.state === 'failed' && this.#isVisible(root, name))
    return isUnknown ? mainFileError.noAnswer(name) : mainFileError.skillNotFound(name)
  }

  #shown (skill: IndexedSkill): IndexedSkill {
    const later = this.roots.slice(this.roots.indexOf(skill.root) + 1)
    const hidden = later.filter((root) => this.#isVisible(root, skill.name) && root.folders.has(skill.name))
    if (hidden.length === 0) return skill
    return { ...skill, findings: [...skill.findings, shadowing(hidden.map(({ name }) => name))] }
  }
}

/**
 * The skills of a view in one revision: reads of a skill with another present revision give the kept one, or throw
 * `revision_changed`. What is said of many skills has no revision.
 */
export class PinnedView extends View {
  readonly #view: View
  readonly #revision: string
  readonly #read = new Map<string, string>()

  constructor (view: View, revision: string, visible: VisibleSkills) {
    super(view.scope, view.grantOf, view.parts, visible)
    this.#view = view
    this.#revision = revision
  }

  /** Gives `answer` the present state of a skill if it has the revision, else the kept one. */
  override async read<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    const wanted = this.#revision === 'current' ? this.#read.get(name) : this.#revision
    let present: string | undefined
    const answerWanted = async (state: SkillState): Promise<T> => {
      present = (await state.manifest()).revision
      if (wanted !== undefined && wanted !== present) throw new RevisionChangedError(present)
      return await answer(state)
    }
    const value = await this.#view.read(name, answerWanted).catch(async (error: unknown) => {
      // Also of a skill that is gone, too large, or whose disk fails.
      const mayBeKept = error instanceof SkillError && wanted !== undefined && present !== wanted
      const kept = mayBeKept ? await this.#view.keptState(name, wanted) : undefined
      if (kept === undefined) throw error
      return await answer(kept)
    })
    this.#read.set(name, wanted ?? present ?? '')
    return value
  }

  revisionOf (name: string): string | undefined {
    return this.#read.get(name)
  }

  /** The revision of everything that was read, if it is one. */
  get onlyRevision (): string | undefined {
    const revisions = new Set(this.#read.values())
    return revisions.size === 1 ? [...revisions][0] : undefined
  }
}

function isAbsent (error: unknown): boolean {
  return error instanceof SkillError && ['skill_not_found', 'invalid_skill_name'].includes(error.code)
}

/** Which skills are hidden depends on the view, so that this finding is not in the catalog. */
function shadowing (roots: readonly string[]): Finding {
  const names = roots.map((name) => `'${name}'`).join(', ')
  return finding('shadowed', `skills of the same name are hidden by this one in: ${names}`,
    'Rename or remove all of these folders but one')
}
