import { setTimeout as pause } from 'node:timers/promises'
import type { Catalog, FoundSkill, Sees, SkillRef } from './catalog.ts'
import { finding, isUsable } from './format/findings.ts'
import type { IndexedSkill } from './read-skill.ts'
import type { Keep } from './revisions/kept-revisions.ts'
import { KeptState, PresentState, type SkillState } from './revisions/state.ts'
import type { CatalogSearch } from './search/catalog-search.ts'
import type { Root } from './roots/root.ts'
import type { SkillService, SkillStatus } from './service.ts'
import { folderError, mainFileError, RevisionChangedError, SkillError, skillError } from './shared/errors.ts'
import type { CatalogSkill, Finding, SkillMetadata } from './shared/skill.ts'
import { hasForbiddenSequence } from './shared/skill-name.ts'
import { compareCodePoints, sameOr } from './shared/text.ts'
import type { Refresher } from './watch/refresher.ts'

/** How often a skill is read again when it changes while it is read, and the pause before, in milliseconds. */
const MAX_READS = 3
const CHANGE_PAUSE_MS = 20

/** What all views of a process share. */
export interface ViewParts {
  readonly catalog: Catalog
  readonly search: CatalogSearch
  readonly refresher: Refresher
}

/** The skills of a root that a view has: all of them, or those whose names fit. */
export type Grant = 'all' | ((name: string) => boolean)

/** What a view has in its catalog, as of one generation of it. */
interface Visible {
  readonly generation: number
  /** Sorted by code point. */
  readonly names: readonly string[]
  /** The position of each name's root. */
  readonly owners: ReadonlyMap<string, number>
  readonly available: readonly SkillMetadata[]
}

/** A root of a view. */
interface VisibleRoot {
  /** Its position in the catalog. */
  readonly index: number
  readonly root: Root
  readonly grant: Grant
}

/** The revision that a request asks for. */
interface Asked {
  /** `sha256:<hex>`, or `current` for the one that each skill has at its first read. */
  readonly revision: string
  readonly view: View
  /** Revisions of the skills that were read, by name. */
  readonly read: Map<string, string>
}

/**
 * The skills of some roots, or some of their skills, as if there were no others. A name is resolved in the roots of the
 * view, in their order. All APIs read through a view, whether there are callers or not.
 */
export class View implements SkillService {
  readonly scope: string
  readonly #parts: ViewParts
  readonly #grants: ReadonlyMap<number, Grant>
  readonly #roots: readonly VisibleRoot[]
  readonly #asked: Asked | undefined
  #visible: Visible | undefined
  #changes = 0

  /**
   * @param scope differs from that of every other view
   * @param grants by the position of the root
   */
  constructor (scope: string, grants: ReadonlyMap<number, Grant>, parts: ViewParts, asked?: Asked) {
    this.scope = scope
    this.#parts = parts
    this.#grants = grants
    this.#asked = asked
    this.#roots = parts.catalog.roots.flatMap((root, index) => {
      const grant = grants.get(index)
      return grant === undefined ? [] : [{ index, root, grant }]
    })
  }

  readonly #sees: Sees = (root, name) => {
    const grant = this.#grants.get(root)
    return grant === 'all' || grant?.(name) === true
  }

  async list (): Promise<readonly string[]> {
    await this.#sync()
    this.#requireRoot()
    return this.namesNow()
  }

  async #sync (): Promise<void> {
    await Promise.all(this.#roots.map(({ root }) => root.sync()))
  }

  namesNow (): readonly string[] {
    return this.#now.names
  }

  async find (name: string): Promise<CatalogSkill | undefined> {
    const found = await this.#parts.catalog.find(name, this.#sees)
    if (this.#asked !== undefined && (found !== undefined || this.keptRevisions(name).length > 0)) {
      return await this.read(name, async ({ skill }) => skill)
    }
    if (found !== undefined) return this.#shown(found)
    this.#requireRoot()
    return undefined
  }

  findNow (name: string): IndexedSkill | undefined {
    return this.#parts.catalog.skillsIn(this.#now.owners.get(name) ?? -1).get(name)
  }

  rootOf (name: string): string | undefined {
    return this.#parts.catalog.roots[this.#now.owners.get(name) ?? -1]?.name
  }

  async indexed (): Promise<void> {
    await this.#parts.refresher.indexed
  }

  async available (): Promise<readonly SkillMetadata[]> {
    await this.#parts.refresher.indexed
    return this.availableNow()
  }

  availableNow (): readonly SkillMetadata[] {
    return this.#now.available
  }

  async search (query: string): Promise<readonly string[]> {
    await this.list()
    await this.#parts.refresher.indexed
    const { owners } = this.#now
    return await this.#parts.search.search(query, ({ root, name }) => owners.get(name) === root)
  }

  async read<T> (name: string, answer: (state: SkillState) => Promise<T>, keep: Keep = 'always'): Promise<T> {
    if (this.#asked !== undefined) return await this.#readAsked(this.#asked, name, answer)
    if (hasForbiddenSequence(name)) throw mainFileError.invalidName(name)
    const { catalog } = this.#parts
    for (let count = 1; ; count++) {
      const found = await catalog.find(name, this.#sees)
      if (found === undefined) throw this.unavailable ?? this.#absent(name)
      try {
        return await answer(new PresentState(this.#shown(found), found, catalog, keep))
      } catch (error) {
        if (!(error instanceof SkillError)) throw error
        // What was refused has just been read; another error may come from a folder that was replaced meanwhile.
        const isSame = found.skill.refused !== undefined || await catalog.isStill(found)
        if (error.code !== 'skill_changing' && isSame) throw error
        if (count === MAX_READS) throw error.code === 'skill_changing' ? error : skillError.changing(name)
        await pause(CHANGE_PAUSE_MS * count)
      }
    }
  }

  /** The present state of a skill if it has the revision, else the kept one. */
  async #readAsked<T> (
    { revision, view, read }: Asked, name: string, answer: (state: SkillState) => Promise<T>
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
      const kept = mayBeKept ? this.#keptState(name, wanted) : undefined
      if (kept === undefined) throw error
      return await answer(kept)
    })
    read.set(name, wanted ?? present ?? '')
    return value
  }

  async readByDisplayName<T> (displayName: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    await this.#parts.refresher.indexed
    const isCalledSo = (name: string): boolean => this.findNow(name)?.metadata.name === displayName
    const name = [displayName, ...this.namesNow()].find(isCalledSo) ?? displayName
    try {
      return await this.read(name, answer)
    } catch (error) {
      // Its sentence has the name that was asked for.
      const isNoName = error instanceof SkillError && ['skill_not_found', 'invalid_skill_name'].includes(error.code)
      throw isNoName ? mainFileError.skillNotFound(displayName) : error
    }
  }

  keptRevisions (name: string): readonly string[] {
    const kept = this.#parts.catalog.kept.all.filter(({ root, skill }) => skill.name === name && this.#sees(root, name))
    return [...new Set(kept.map(({ manifest }) => manifest.revision))]
  }

  #keptState (name: string, revision: string): SkillState | undefined {
    for (const { index, root } of this.#roots) {
      if (!this.#sees(index, name) || root.source?.allows?.(name, revision) === false) continue
      const kept = this.#parts.catalog.kept.get(index, name, revision)
      if (kept !== undefined) return new KeptState(kept)
    }
    return undefined
  }

  at (revision: string): View {
    return new View(this.scope, this.#grants, this.#parts, { revision, view: this, read: new Map() })
  }

  revisionOf (name: string): string | undefined {
    return this.#asked?.read.get(name)
  }

  get onlyRevision (): string | undefined {
    const revisions = new Set(this.#asked?.read.values())
    return revisions.size === 1 ? [...revisions][0] : undefined
  }

  subscribe (listener: (names: readonly string[]) => void): () => void {
    const { catalog } = this.#parts
    const onChanged = (changed: readonly SkillRef[]): void => {
      const names = changed.filter(({ root, name }) => this.#sees(root, name)).map(({ name }) => name)
      if (names.length > 0) listener([...new Set(names)])
    }
    catalog.on('changed', onChanged)
    return () => { catalog.off('changed', onChanged) }
  }

  get status (): SkillStatus {
    const { isIndexed, state } = this.#parts.refresher
    const { names } = this.#now
    const partial = this.#roots.filter(({ grant }) => grant !== 'all').map(({ root }) => root.name)
    return {
      ready: isIndexed && this.unavailable === undefined,
      indexed: isIndexed,
      generation: this.#changes,
      skills: names.length,
      roots: this.#roots.map(({ root, grant }) => grant === 'all'
        ? root.status
        // Skipped entries may belong to skills that the view must not have.
        : { ...root.status, skills: [...root.folders.keys()].filter(grant).length, skipped: 0 }),
      watcher: state,
      failures: [...new Set(this.#roots.flatMap(({ root }) => root.failureCode ?? []))],
      ...this.scope !== '' && { partial }
    }
  }

  async freshStatus (): Promise<SkillStatus> {
    await this.#sync()
    return this.status
  }

  /** The error of a view whose roots are all missing. */
  get unavailable (): SkillError | undefined {
    if (this.#roots.length === 0) return this.scope === '' ? folderError.notFound('') : undefined
    const errors = this.#roots.map(({ root }) => root.unavailable)
    if (errors.includes(undefined)) return undefined
    return errors.find((error) => error?.code === 'skills_folder_permission_denied') ?? errors[0]
  }

  #requireRoot (): void {
    const { unavailable } = this
    if (unavailable !== undefined) throw unavailable
  }

  /** What a root has that has never answered is not known. */
  #absent (name: string): SkillError {
    const isUnknown = this.#roots.some(({ index, root }) =>
      root.listing === undefined && root.failure?.state === 'failed' && this.#sees(index, name))
    return isUnknown ? mainFileError.noAnswer(name) : mainFileError.skillNotFound(name)
  }

  get #now (): Visible {
    if (this.#asked !== undefined) return this.#asked.view.#now
    const { catalog } = this.#parts
    const before = this.#visible
    if (before?.generation === catalog.generation) return before
    const owners = new Map<string, number>()
    for (const { index, root } of this.#roots) {
      for (const name of root.folders.keys()) if (this.#sees(index, name) && !owners.has(name)) owners.set(name, index)
    }
    const sorted = [...owners.keys()].sort(compareCodePoints)
    const skills = sorted.flatMap((name) => catalog.skillsIn(owners.get(name) ?? -1).get(name) ?? [])
    const names = sameOr(before?.names ?? [], sorted)
    const available = sameOr(before?.available ?? [], skills.filter(isUsable).map(({ metadata }) => metadata))
    this.#visible = { generation: catalog.generation, names, owners, available }
    if (names !== before?.names || available !== before.available) this.#changes++
    return this.#visible
  }

  #shown ({ root, skill }: FoundSkill): IndexedSkill {
    const hidden = this.#roots.filter((other) =>
      other.index > root && this.#sees(other.index, skill.name) && other.root.folders.has(skill.name))
    if (hidden.length === 0) return skill
    return { ...skill, findings: [...skill.findings, shadowing(hidden.map((other) => other.root.name))] }
  }
}

/** Which skills are hidden depends on the view, so that this finding is not in the catalog. */
function shadowing (roots: readonly string[]): Finding {
  const names = roots.map((name) => `'${name}'`).join(', ')
  return finding('shadowed', `skills of the same name are hidden by this one in: ${names}`,
    'Rename or remove all of these folders but one')
}
