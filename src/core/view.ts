import { setTimeout as pause } from 'node:timers/promises'
import type { Catalog, IsVisible } from './catalog.ts'
import { ChangeFeed } from './events/change-feed.ts'
import { finding } from './format/findings.ts'
import type { Ledger } from './ledger.ts'
import type { IndexedSkill } from './read-skill.ts'
import { KeptState, PresentState, type SkillState } from './revisions/state.ts'
import type { CatalogSearch } from './search/catalog-search.ts'
import type { Root } from './roots/root.ts'
import { fileError, folderError, mainFileError, RevisionChangedError, SkillError, skillError } from './shared/errors.ts'
import type { CatalogSkill, Finding, SkillMetadata } from './shared/skill.ts'
import { hasForbiddenSequence } from './shared/skill-name.ts'
import { VisibleSkills } from './visible-skills.ts'
import type { Refresher } from './watch/refresher.ts'

/** Attempts to read a skill that changes meanwhile, and the pause before the second one, in milliseconds. */
const MAX_READS = 3
const CHANGE_PAUSE_MS = 20

/** Objects that all views of a process share. */
export interface ViewParts {
  readonly catalog: Catalog
  readonly ledger: Ledger
  readonly search: CatalogSearch
  readonly refresher: Refresher
}

/** The skills of a root that a view has: all of them, or those whose names fit. */
export type Grant = 'all' | ((name: string) => boolean)

export type GrantOf = (root: string) => Grant | undefined

/**
 * The skills that one caller may see. Other skills do not exist for it. All APIs read through a view, with an access
 * file or without. A read by name is fresh; lists of the index follow changes within a second. Every failure is a
 * `SkillError`.
 */
export class View {
  /** Identifies the set of skills, for cursors. Empty where all callers see the same. */
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

  isGranted (root: string, name: string): boolean {
    const grant = this.grantOf(root)
    return grant === 'all' || grant?.(name) === true
  }

  readonly #isVisible: IsVisible = ({ name: root }, name) => this.isGranted(root, name)

  get roots (): readonly Root[] {
    return this.parts.catalog.roots.filter(({ name }) => this.grantOf(name) !== undefined)
  }

  /** Changes of the visible skills, and their catalog revision. */
  get feed (): ChangeFeed {
    this.#feed ??= new ChangeFeed(this)
    return this.#feed
  }

  /** Names of all skills, sorted by code point; fresh, and the same array while nothing changes. */
  async list (): Promise<readonly string[]> {
    await this.sync()
    if (this.unavailable !== undefined) throw this.unavailable
    return this.indexedNames()
  }

  async sync (): Promise<void> {
    await Promise.all(this.roots.map((root) => root.sync()))
  }

  /** The same from the index. */
  indexedNames (): readonly string[] {
    return this.visible.names
  }

  /** Returns undefined for no such skill, also for a name that no skill can have. */
  async find (name: string): Promise<CatalogSkill | undefined> {
    try {
      return await this.read(name, async ({ skill }) => skill)
    } catch (error) {
      if (isAbsent(error)) return undefined
      throw error
    }
  }

  /** The same from the index. */
  findIndexed (name: string): CatalogSkill | undefined {
    return this.visible.find(name)
  }

  /** Name of the root that a skill comes from. */
  rootOf (name: string): string | undefined {
    return this.visible.ownerOf(name)?.name
  }

  /** Resolves after the first index: from then on, every change of any file is reported. */
  async indexed (): Promise<void> {
    await this.parts.refresher.indexed(this.roots)
  }

  /** All valid skills, sorted by name. Waits for the first index, but only some seconds for a slow root. */
  async available (): Promise<readonly SkillMetadata[]> {
    await this.parts.refresher.mostlyIndexed(this.roots)
    return this.availableIndexed()
  }

  availableIndexed (): readonly SkillMetadata[] {
    return this.visible.available
  }

  /** Finds the names of skills that match a query, best match first. @throws a `folderError` if there is no root */
  async search (query: string): Promise<readonly string[]> {
    await this.list()
    await this.parts.refresher.mostlyIndexed(this.roots)
    return await this.parts.search.search(query, ({ root, name }) => this.visible.ownerOf(name) === root)
  }

  /**
   * Calls `answer` with one consistent state of the skill as it is now, again when the skill changes meanwhile. A
   * revision that the answer names stays readable.
   */
  async read<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    if (hasForbiddenSequence(name)) throw mainFileError.invalidName(name)
    const { catalog } = this.parts
    for (let count = 1; ; count++) {
      let found: IndexedSkill | undefined
      try {
        found = await catalog.find(name, this.#isVisible)
        if (found === undefined) throw this.unavailable ?? this.#absent(name)
        return await answer(new PresentState(this.#withShadowedFinding(found), found, catalog))
      } catch (error) {
        if (!(error instanceof SkillError)) throw error
        // A refused skill has just been read, but any other error may be caused by a folder that was replaced
        // meanwhile.
        const isSame = found === undefined || found.refused !== undefined || await catalog.isStill(found)
        if (error.code !== 'skill_changing' && isSame) throw error
        if (count === MAX_READS) throw error.code === 'skill_changing' ? error : skillError.changing(name)
        await pause(CHANGE_PAUSE_MS * count)
      }
    }
  }

  /** The same for the skill with this name in its frontmatter, else of this name. */
  async readByDisplayName<T> (displayName: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    await this.parts.refresher.mostlyIndexed(this.roots)
    const isCalledSo = (name: string): boolean => this.findIndexed(name)?.metadata.name === displayName
    const name = [displayName, ...this.indexedNames()].find(isCalledSo) ?? displayName
    // The index may still have a skill that is gone, in front of a folder of this name.
    for (const candidate of new Set([name, displayName])) {
      try {
        return await this.read(candidate, answer)
      } catch (error) {
        if (!isAbsent(error)) throw error
      }
    }
    throw mainFileError.skillNotFound(displayName)
  }

  /** Revisions of a skill that are kept, the one used last first. */
  keptRevisions (name: string): readonly string[] {
    const { all } = this.parts.catalog.kept
    const kept = all.filter(({ skill }) => skill.name === name && this.#isVisible(skill.root, name))
    return [...new Set(kept.map(({ manifest }) => manifest.revision))]
  }

  /** Returns a kept revision, if the rules of this moment allow it. */
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
   * Creates a view of these skills in one revision, for one request.
   * @param revision `sha256:<hex>`, or `current` for the one that each skill has at its first read
   */
  at (revision: string): PinnedView {
    return new PinnedView(this, revision, this.visible)
  }

  /** Goes up with each change of the names, and of the metadata of valid skills. */
  get generation (): number {
    return this.visible.generation
  }

  /** Error of a view whose roots are all missing; undefined if one exists. */
  get unavailable (): SkillError | undefined {
    const errors = this.roots.map((root) => root.unavailable)
    if (errors.length === 0) return this.scope === '' ? folderError.notFound('') : undefined
    if (errors.includes(undefined)) return undefined
    return errors.find((error) => error?.code === 'skills_folder_permission_denied') ?? errors[0]
  }

  /** While a root has never answered, nobody knows whether it has the skill. */
  #absent (name: string): SkillError {
    const isUnknown = this.roots.some((root) =>
      root.listing === undefined && root.failure?.state === 'failed' && this.#isVisible(root, name))
    return isUnknown ? mainFileError.noAnswer(name) : mainFileError.skillNotFound(name)
  }

  #withShadowedFinding (skill: IndexedSkill): IndexedSkill {
    const later = this.roots.slice(this.roots.indexOf(skill.root) + 1)
    const hidden = later.filter((root) => this.#isVisible(root, skill.name) && root.folders.has(skill.name))
    if (hidden.length === 0) return skill
    return { ...skill, findings: [...skill.findings, shadowing(hidden.map(({ name }) => name))] }
  }
}

/**
 * The skills of a view in one revision: a read of a skill that has another one now gives the kept one, or throws
 * `revision_changed`. Lists have no revision.
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

  /** Calls `answer` with the present state if it has the revision, or else with the kept revision. */
  override async read<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    const wanted = this.#revision === 'current' ? this.#read.get(name) : this.#revision
    let present: string | undefined
    const answerWanted = async (state: SkillState): Promise<T> => {
      present = (await state.manifest()).revision
      if (wanted !== undefined && wanted !== present) throw new RevisionChangedError(present)
      return await answer(state)
    }
    const value = await this.#view.read(name, answerWanted).catch(async (error: unknown) => {
      // A kept revision can be read even if the skill is gone or too large, or its disk fails.
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

/** The same as `View.read`, with the sentence of `read_file_in_skill` for a name that no skill can have. */
export async function readInSkill<T> (skills: View, name: string, read: (skill: SkillState) => Promise<T>): Promise<T> {
  if (hasForbiddenSequence(name)) throw fileError.invalidName()
  return await skills.read(name, read)
}

function isAbsent (error: unknown): boolean {
  return error instanceof SkillError && ['skill_not_found', 'invalid_skill_name'].includes(error.code)
}

/** The finding is not in the index, since the view decides which skills are hidden. */
function shadowing (roots: readonly string[]): Finding {
  const names = roots.map((name) => `'${name}'`).join(', ')
  return finding('shadowed', `skills of the same name are hidden by this one in: ${names}`,
    'Rename or remove all of these folders but one')
}
