import { setTimeout as pause } from 'node:timers/promises'
import type { Catalog, IsVisible, SkillRef } from './catalog.ts'
import { finding, isUsable } from './format/findings.ts'
import type { IndexedSkill } from './read-skill.ts'
import type { Keep } from './revisions/kept-revisions.ts'
import { KeptState, PresentState, type SkillState } from './revisions/state.ts'
import type { CatalogSearch } from './search/catalog-search.ts'
import type { Root, RootStatus } from './roots/root.ts'
import { folderError, mainFileError, RevisionChangedError, SkillError, skillError } from './shared/errors.ts'
import type { CatalogSkill, Finding, SkillMetadata } from './shared/skill.ts'
import { hasForbiddenSequence } from './shared/skill-name.ts'
import { compareCodePoints, sameOr } from './shared/text.ts'
import type { Refresher } from './watch/refresher.ts'
import type { WatcherState } from './watch/watcher.ts'

/** How often a skill is read again when it changes while it is read, and the pause before, in milliseconds. */
const MAX_READS = 3
const CHANGE_PAUSE_MS = 20

/** What /readyz reports. */
export interface SkillStatus {
  /** A root is there, and its first index is complete. */
  readonly ready: boolean
  /** The first index of each root is complete. */
  readonly indexed: boolean
  readonly generation: number
  readonly skills: number
  readonly roots: readonly RootStatus[]
  readonly watcher: WatcherState
  /** Codes of what kept the last refresh from reading the disk; what was there before is served. */
  readonly failures: readonly string[]
  /** Names of the roots of which only some skills may be seen; absent without callers. */
  readonly partial?: readonly string[]
}

/** What all views of a process share. */
export interface ViewParts {
  readonly catalog: Catalog
  readonly search: CatalogSearch
  readonly refresher: Refresher
}

/** The skills of a root that a view has: all of them, or those whose names fit. */
export type Grant = 'all' | ((name: string) => boolean)

/** The grant of a root, by its name. */
export type GrantOf = (root: string) => Grant | undefined

/** What a view has in its catalog, as of one generation of it. */
interface Visible {
  readonly generation: number
  /** Sorted by code point. */
  readonly names: readonly string[]
  /** The root of each name. */
  readonly owners: ReadonlyMap<string, Root>
  readonly available: readonly SkillMetadata[]
}

/** The revision that a request asks for. */
interface Pinned {
  /** `sha256:<hex>`, or `current` for the one that each skill has at its first read. */
  readonly revision: string
  readonly view: View
  /** Revisions of the skills that were read, by name. */
  readonly read: Map<string, string>
}

/**
 * The skills of some roots, or some of their skills, as if there were no others. A name is resolved in the roots of the
 * view, in their order. All APIs read through a view, whether there are callers or not.
 *
 * What is asked for by name is fresh: a change that was complete before the call is in the answer. What is said of many
 * skills follows changes within a second. Every failure is a `SkillError`.
 */
export class View {
  /** Identifies the set of skills: a cursor of one is not valid for another. Empty where everybody sees the same. */
  readonly scope: string
  protected readonly parts: ViewParts
  readonly #grantOf: GrantOf
  readonly #pinned: Pinned | undefined
  #visible: Visible | undefined
  #changes = 0

  constructor (scope: string, grantOf: GrantOf, parts: ViewParts, pinned?: Pinned) {
    this.scope = scope
    this.parts = parts
    this.#grantOf = grantOf
    this.#pinned = pinned
  }

  /** Those with a grant. */
  get #roots (): readonly Root[] {
    return this.parts.catalog.roots.filter(({ name }) => this.#grantOf(name) !== undefined)
  }

  readonly #isVisible: IsVisible = (root, name) => {
    const grant = this.#grantOf(root.name)
    return grant === 'all' || grant?.(name) === true
  }

  /** Names of all skills, sorted by code point; fresh. The same array while nothing changes. Throws without a root. */
  async list (): Promise<readonly string[]> {
    await this.#sync()
    if (this.unavailable !== undefined) throw this.unavailable
    return this.indexedNames()
  }

  async #sync (): Promise<void> {
    await Promise.all(this.#roots.map((root) => root.sync()))
  }

  /** What `list` gave last, without a comparison with the disk. */
  indexedNames (): readonly string[] {
    return this.#now.names
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
    const root = this.#now.owners.get(name)
    return root && this.parts.catalog.skillsIn(root).get(name)
  }

  /** Name of the root that a skill comes from; undefined without such a skill. */
  rootOf (name: string): string | undefined {
    return this.#now.owners.get(name)?.name
  }

  /** Resolves after the first index: from then on, every change of any file is reported. */
  async indexed (): Promise<void> {
    await this.parts.refresher.indexed(this.#roots)
  }

  /** All valid skills, sorted by name. Waits for the first index, and some seconds for that of a slow root. */
  async available (): Promise<readonly SkillMetadata[]> {
    await this.parts.refresher.mostlyIndexed(this.#roots)
    return this.availableIndexed()
  }

  /** The valid skills that the index has now. */
  availableIndexed (): readonly SkillMetadata[] {
    return this.#now.available
  }

  /** Names of skills that fit the words of a query, the best first. Throws `folderError`'s sentences without a root. */
  async search (query: string): Promise<readonly string[]> {
    await this.list()
    await this.parts.refresher.mostlyIndexed(this.#roots)
    const { owners } = this.#now
    return await this.parts.search.search(query, ({ root, name }) => owners.get(name) === root)
  }

  /**
   * What `answer` makes of a skill in one state; fresh. `answer` may run several times, and reads through its argument.
   * @param keep whether a revision that the answer names stays readable
   */
  async read<T> (name: string, answer: (state: SkillState) => Promise<T>, keep: Keep = 'always'): Promise<T> {
    if (this.#pinned !== undefined) return await this.#readPinned(this.#pinned, name, answer)
    if (hasForbiddenSequence(name)) throw mainFileError.invalidName(name)
    const { catalog } = this.parts
    for (let count = 1; ; count++) {
      let found: IndexedSkill | undefined
      try {
        found = await catalog.find(name, this.#isVisible)
        if (found === undefined) throw this.unavailable ?? this.#absent(name)
        return await answer(new PresentState(this.#shown(found), found, catalog, keep))
      } catch (error) {
        if (!(error instanceof SkillError)) throw error
        // What was refused has just been read; another error may come from a folder that was replaced meanwhile.
        const isSame = found === undefined || found.refused !== undefined || await catalog.isStill(found)
        if (error.code !== 'skill_changing' && isSame) throw error
        if (count === MAX_READS) throw error.code === 'skill_changing' ? error : skillError.changing(name)
        await pause(CHANGE_PAUSE_MS * count)
      }
    }
  }

  /** The present state of a skill if it has the revision, else the kept one. */
  async #readPinned<T> (
    { revision, view, read }: Pinned, name: string, answer: (state: SkillState) => Promise<T>
  ): Promise<T> {
    const wanted = revision === 'current' ? read.get(name) : revision
    let present: string | undefined
    const answerWanted = async (state: SkillState): Promise<T> => {
      present = (await state.manifest()).revision
      if (wanted !== undefined && wanted !== present) throw new RevisionChangedError(present)
      return await answer(state)
    }
    const value = await view.read(name, answerWanted).catch(async (error: unknown) => {
      // Also of a skill that is gone, too large, or whose disk fails.
      const mayBeKept = error instanceof SkillError && wanted !== undefined && present !== wanted
      const kept = mayBeKept ? await this.#keptState(name, wanted) : undefined
      if (kept === undefined) throw error
      return await answer(kept)
    })
    read.set(name, wanted ?? present ?? '')
    return value
  }

  /** As `read`, of the skill with this name in its frontmatter, else of this name. */
  async readByDisplayName<T> (displayName: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    await this.parts.refresher.mostlyIndexed(this.#roots)
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

  /** The kept revision, as the rules of this moment allow it. */
  async #keptState (name: string, revision: string): Promise<SkillState | undefined> {
    const { catalog } = this.parts
    const present = await catalog.find(name, this.#isVisible)
    for (const root of this.#roots) {
      if (!this.#isVisible(root, name)) continue
      const kept = await catalog.findKept({ root, name }, revision, present)
      if (kept !== undefined && root.source?.allows?.(name, revision) !== false) return new KeptState(kept)
    }
    return undefined
  }

  /**
   * These skills in one revision: reads of a skill with another present revision give the kept one, or throw
   * `revision_changed`. What is said of many skills has no revision. Made for one request.
   * @param revision `sha256:<hex>`, or `current` for the one that each skill has at its first read
   */
  at (revision: string): View {
    return new View(this.scope, this.#grantOf, this.parts, { revision, view: this, read: new Map() })
  }

  /** The revision of a skill that was read through `at`; undefined otherwise. */
  revisionOf (name: string): string | undefined {
    return this.#pinned?.read.get(name)
  }

  /** The revision of everything that was read through `at`, if it is one. */
  get onlyRevision (): string | undefined {
    const revisions = new Set(this.#pinned?.read.values())
    return revisions.size === 1 ? [...revisions][0] : undefined
  }

  /** Calls the listener with names of skills of which any file has changed, came or went. Returns what stops it. */
  subscribe (listener: (names: readonly string[]) => void): () => void {
    const { catalog } = this.parts
    const onChanged = (changed: readonly SkillRef[]): void => {
      const names = changed.filter(({ root, name }) => this.#isVisible(root, name)).map(({ name }) => name)
      if (names.length > 0) listener([...new Set(names)])
    }
    catalog.on('changed', onChanged)
    return () => { catalog.off('changed', onChanged) }
  }

  get status (): SkillStatus {
    const { names } = this.#now
    const roots = this.#roots
    const grants = roots.map((root) => [root, this.#grantOf(root.name)] as const)
    const isReadable = roots.length === 0 || roots.some(({ isIndexed, listing }) => isIndexed && listing !== undefined)
    return {
      ready: isReadable && this.unavailable === undefined,
      indexed: roots.every(({ isIndexed }) => isIndexed),
      generation: this.#changes,
      skills: names.length,
      roots: grants.map(([root, grant]) => typeof grant !== 'function'
        ? root.status
        // Skipped entries may belong to skills that the view must not have.
        : { ...root.status, skills: [...root.folders.keys()].filter(grant).length, skipped: 0 }),
      watcher: this.parts.refresher.state,
      failures: [...new Set(this.#roots.flatMap(({ failureCode }) => failureCode ?? []))],
      ...this.scope !== '' && { partial: grants.filter(([, grant]) => grant !== 'all').map(([{ name }]) => name) }
    }
  }

  /** The status after a comparison of the roots with the disk. */
  async freshStatus (): Promise<SkillStatus> {
    await this.#sync()
    return this.status
  }

  /** The error of a view whose roots are all missing. */
  get unavailable (): SkillError | undefined {
    const errors = this.#roots.map((root) => root.unavailable)
    if (errors.length === 0) return this.scope === '' ? folderError.notFound('') : undefined
    if (errors.includes(undefined)) return undefined
    return errors.find((error) => error?.code === 'skills_folder_permission_denied') ?? errors[0]
  }

  /** What a root has that has never answered is not known. */
  #absent (name: string): SkillError {
    const isUnknown = this.#roots.some((root) =>
      root.listing === undefined && root.failure?.state === 'failed' && this.#isVisible(root, name))
    return isUnknown ? mainFileError.noAnswer(name) : mainFileError.skillNotFound(name)
  }

  get #now (): Visible {
    if (this.#pinned !== undefined) return this.#pinned.view.#now
    const { catalog } = this.parts
    const before = this.#visible
    if (before?.generation === catalog.generation) return before
    const owners = new Map<string, Root>()
    for (const root of this.#roots) {
      for (const name of root.folders.keys()) {
        if (!owners.has(name) && this.#isVisible(root, name)) owners.set(name, root)
      }
    }
    const sorted = [...owners.keys()].sort(compareCodePoints)
    const skills = sorted.flatMap((name) => {
      const root = owners.get(name)
      return (root && catalog.skillsIn(root).get(name)) ?? []
    })
    const names = sameOr(before?.names ?? [], sorted)
    const available = sameOr(before?.available ?? [], skills.filter(isUsable).map(({ metadata }) => metadata))
    this.#visible = { generation: catalog.generation, names, owners, available }
    if (names !== before?.names || available !== before.available) this.#changes++
    return this.#visible
  }

  #shown (skill: IndexedSkill): IndexedSkill {
    const later = this.#roots.slice(this.#roots.indexOf(skill.root) + 1)
    const hidden = later.filter((root) => this.#isVisible(root, skill.name) && root.folders.has(skill.name))
    if (hidden.length === 0) return skill
    return { ...skill, findings: [...skill.findings, shadowing(hidden.map(({ name }) => name))] }
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
