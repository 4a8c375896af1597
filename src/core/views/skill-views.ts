import { basename } from 'node:path'
import type { CatalogChange } from '../catalog/catalog.ts'
import type { RootOptions } from '../roots/roots.ts'
import { KEPT_REVISION_BYTES } from '../ground/limits.ts'
import { type SearchAnswer, SkillSearch, type SearchSource } from '../search/search.ts'
import type { SkillMetadata } from '../ground/skill.ts'
import { Signal } from '../ground/signal.ts'
import type { Refresh } from '../refresher.ts'
import { createSharedDisk, type SharedDisk } from '../shared-disk.ts'
import { createSkillManager, type SkillManager, type SkillManagerOptions } from '../skill-manager.ts'
import type { SkillStatus } from '../skill-source.ts'
import type { MergedNames } from './member-lists.ts'
import { SharedInspections } from './shared-inspections.ts'
import { View, type ViewGround } from './view.ts'
import type { ViewMember } from './view-member.ts'

/** The skills of a root that a view has: all of them, or those whose names fit. */
export type Grant = 'all' | ((name: string) => boolean)

interface NamedRoot {
  readonly name: string
  readonly skills: SkillManager
  readonly inspections: SharedInspections
}

/** No name of a skill holds a line end. */
const SEPARATOR = '\n'

/**
 * Skills for callers who see different ones: a manager for each root, and views that put them together. Stats, calls to disks
 * that hang, and the memory for contents are shared; each skill is indexed and read once, however many views have it.
 */
export class SkillViews {
  /** The memory for contents of files. */
  readonly contents: SharedDisk['store']
  /** Each refresh of a root. */
  readonly refreshed = new Signal<Refresh>()
  /** All roots, in their order. */
  readonly everything: View
  readonly #roots: readonly NamedRoot[]
  readonly #ground: ViewGround
  readonly #search: SkillSearch
  readonly #keys = new WeakMap<MergedNames, readonly string[]>()

  constructor ({ projectRoots, personalRoot, keep = {}, ...options }: SkillManagerOptions) {
    const shared = createSharedDisk(options.times?.diskAnswer, options.hasRoom)
    const count = projectRoots.length + (personalRoot === undefined ? 0 : 1)
    const maxBytes = Math.floor((keep.maxBytes ?? KEPT_REVISION_BYTES) / Math.max(count, 1))
    const open = (root: string | RootOptions, roots: Pick<SkillManagerOptions, 'projectRoots' | 'personalRoot'>): NamedRoot => {
      const skills = createSkillManager({ ...options, ...roots, shared, keep: { ...keep, maxBytes } })
      return { name: nameOf(root), skills, inspections: new SharedInspections(skills) }
    }
    this.#roots = [
      ...projectRoots.map((root) => open(root, { projectRoots: [root] })),
      ...personalRoot === undefined ? [] : [open(personalRoot, { projectRoots: [], personalRoot })]
    ]
    this.contents = shared.store
    for (const [index, { skills }] of this.#roots.entries()) skills.refreshed.subscribe((refresh) => { this.refreshed.emit({ ...refresh, roots: [index] }) })
    const [first] = this.#roots
    if (first === undefined) throw new Error('views need a root')
    this.#search = new SkillSearch(new AllSkills(this.#roots.map(({ skills }) => skills)))
    this.#ground = {
      phase: shared.phase,
      anyRoot: { ...first, allows: everything, isWhole: true },
      search: (query, names, members) => this.#searchWithin(query, names, members)
    }
    this.everything = this.createView('everything', new Map(this.rootNames.map((name) => [name, 'all'])))
  }

  /** Of all roots. */
  get status (): SkillStatus {
    return this.everything.status
  }

  /** Of all roots. */
  namesNow (): readonly string[] {
    return this.everything.namesNow()
  }

  /** Of all roots. */
  availableNow (): readonly SkillMetadata[] {
    return this.everything.availableNow()
  }

  /** Of all roots. */
  invalidNow (): ReadonlyMap<string, number> {
    return new Map(this.#roots.flatMap(({ skills }) => [...skills.invalidNow()]))
  }

  /** Whether changes in the root at this position cause events, or it is polled. */
  isWatching (root: number): boolean {
    return this.#roots[root]?.skills.isWatching() === true
  }

  /** In their order; may hold one name twice. */
  get rootNames (): readonly string[] {
    return this.#roots.map(({ name }) => name)
  }

  /** Names of the skills in a root, as of its last scan. */
  skillsIn (root: string): readonly string[] {
    return this.#roots.find(({ name }) => name === root)?.skills.namesNow() ?? []
  }

  /**
   * A view of the roots that have a grant, in the order of the roots.
   * @param scope differs from that of every other view
   */
  createView (scope: string, grants: ReadonlyMap<string, Grant>): View {
    return new View(scope, this.members(grants), this.#ground)
  }

  members (grants: ReadonlyMap<string, Grant>): readonly ViewMember[] {
    return this.#roots.flatMap((root) => {
      const grant = grants.get(root.name)
      if (grant === undefined) return []
      return grant === 'all' ? { ...root, allows: everything, isWhole: true } : { ...root, allows: grant, isWhole: false }
    })
  }

  async start (): Promise<void> {
    await Promise.all(this.#roots.map(({ skills }) => skills.start()))
  }

  /** Resolves when every skill has been read. */
  async available (): Promise<void> {
    await Promise.all(this.#roots.map(({ skills }) => skills.available()))
  }

  async close (): Promise<void> {
    await Promise.all(this.#roots.map(({ skills }) => skills.close()))
  }

  async #searchWithin (query: string, merged: MergedNames, members: readonly ViewMember[]): Promise<SearchAnswer> {
    let keys = this.#keys.get(merged)
    if (keys === undefined) {
      const positions = members.map((member) => this.#roots.findIndex(({ skills }) => skills === member.skills))
      keys = merged.names.map((name) => keyOf(positions[merged.owners.get(name) ?? -1] ?? -1, name))
      this.#keys.set(merged, keys)
    }
    const { hits, isComplete } = await this.#search.search(query, keys)
    return { hits: hits.map(({ name, score }) => ({ name: name.slice(name.indexOf(SEPARATOR) + 1), score })), isComplete }
  }
}

/** The skills of all roots, each under a key that names its root too. */
class AllSkills implements SearchSource {
  readonly #roots: readonly SkillManager[]

  constructor (roots: readonly SkillManager[]) {
    this.#roots = roots
  }

  async list (): Promise<readonly string[]> {
    return this.#roots.flatMap((skills, index) => skills.namesNow().map((name) => keyOf(index, name)))
  }

  findNow (key: string) {
    return this.#at(key).skills.findNow(this.#at(key).name)
  }

  find (key: string) {
    const { skills, name } = this.#at(key)
    return skills.find(name)
  }

  readMainFile (key: string, preference: 'SKILL.md' | 'SKILL.MD') {
    const { skills, name } = this.#at(key)
    return skills.readMainFile(name, preference)
  }

  subscribe (listener: (change: CatalogChange) => void): () => void {
    const stops = this.#roots.map((skills, index) => skills.subscribe(({ generation, added, changed, removed }) => {
      const keys = (names: readonly string[]) => names.map((name) => keyOf(index, name))
      listener({ generation, added: keys(added), changed: keys(changed), removed: keys(removed) })
    }))
    return () => { for (const stop of stops) stop() }
  }

  #at (key: string): { readonly skills: SkillManager, readonly name: string } {
    const end = key.indexOf(SEPARATOR)
    const skills = this.#roots[Number(key.slice(0, end))]
    if (skills === undefined) throw new RangeError('a key of no root')
    return { skills, name: key.slice(end + 1) }
  }
}

function keyOf (root: number, name: string): string {
  return `${root}${SEPARATOR}${name}`
}

function nameOf (root: string | RootOptions): string {
  return typeof root === 'string' ? basename(root) : root.name ?? basename(root.path)
}

function everything (): boolean {
  return true
}
