import type { Awaitable } from '../shared/async.ts'
import type { CatalogChange } from '../catalog/catalog.ts'
import type { MainFilePreference } from '../format/main-files.ts'
import type { SkillArchive } from '../content/archive.ts'
import { hidesSome } from '../content/kept/kept-revisions.ts'
import type { Inspected, Unread } from '../content/manifest.ts'
import type { SkillState } from '../content/skill-state.ts'
import type { PollPhase } from '../disk/poll-phase.ts'
import type { FileContent } from '../files/file-content.ts'
import type { ServableFile } from '../files/file-store.ts'
import { fileError, mainFileError, RevisionChangedError, SkillError } from '../shared/errors.ts'
import { MAX_ATTEMPTS } from '../shared/limits.ts'
import type { CatalogSkill, Manifest, SkillMetadata } from '../shared/skill.ts'
import { hasForbiddenSequence } from '../shared/skill-name.ts'
import { compareCodePoints } from '../shared/text.ts'
import { type RevisionReader, SkillsAtRevision } from '../skills-at-revision.ts'
import type { SearchAnswer } from '../search/search.ts'
import type { SourceAtRevision, SkillService, SkillStatus } from '../skill-source.ts'
import { findByDisplayName, type NamedSkills } from './display-names.ts'
import { keepersOf, keptBy, keptRevisionsOf } from './kept-by-members.ts'
import type { MemberLists } from './member-lists.ts'
import { MemberOrder, NOBODY } from './member-order.ts'
import type { RootsSearch } from './roots-search.ts'
import { shadowingState, withShadowing } from './shadowing.ts'
import { ViewChanges } from './view-changes.ts'
import { ignoreMissingRoot, isMissing, type ViewMember } from './view-member.ts'
import { viewStatus } from './view-status.ts'

/** What all views of a process use together. */
export interface ViewGround {
  readonly phase: PollPhase
  readonly search: RootsSearch
}

/**
 * The skills of some roots, or some of their skills, as if there were no others. A name is resolved in the roots of the view, in
 * their order. What is not in the view is never asked for. Consumers: all doors, whether callers are told apart or not.
 */
export class View implements SkillService, NamedSkills {
  #scope: string
  readonly #ground: ViewGround
  readonly #changes: ViewChanges
  readonly #order: MemberOrder
  #lists: MemberLists

  /** @param scope differs from that of every other view */
  constructor (scope: string, lists: MemberLists, ground: ViewGround) {
    this.#scope = scope
    this.#lists = lists
    this.#ground = ground
    this.#order = new MemberOrder(() => this.#lists, ground.phase)
    this.#changes = new ViewChanges({ members: () => this.#members, names: () => this.#lists.namesNow(), generation: () => this.generation })
  }

  get scope (): string {
    return this.#scope
  }

  /** A copy of the view, for a listener that follows it. */
  copy (): View {
    return new View(this.#scope, this.#lists, this.#ground)
  }

  /** Becomes a copy of another view. Listeners hear of the difference as of any change. */
  become (other: View): void {
    this.#scope = other.#scope
    this.#lists = other.#lists
    this.#changes.membersChanged()
  }

  get #members (): readonly ViewMember[] {
    return this.#lists.members
  }

  /** Goes up with what callers of this view can see, counted from its first question. */
  get generation (): number {
    return this.#lists.generation
  }

  get status (): SkillStatus {
    return { ...viewStatus(this.#members), generation: this.generation, skills: this.namesNow().length }
  }

  async freshStatus (): Promise<SkillStatus> {
    await this.#order.all(() => this.#sync())
    return this.status
  }

  async #sync (): Promise<void> {
    await Promise.all(this.#members.map(({ skills }) => skills.sync()))
  }

  beginRequest (connection: object): void {
    this.#ground.phase.begin(connection)
  }

  subscribe (listener: (change: CatalogChange) => void): () => void {
    return this.#changes.subscribe(listener)
  }

  observe (listener: (names?: Iterable<string>) => void): () => void {
    return this.#changes.observe(listener)
  }

  async list (): Promise<readonly string[]> {
    await this.#order.all(async () => {
      for (const { skills } of this.#members) await skills.list().catch(ignoreMissingRoot)
    })
    if (this.unavailable !== undefined) throw this.unavailable
    return this.namesNow()
  }

  namesNow (): readonly string[] {
    return this.#lists.namesNow().names
  }

  rootOf (name: string): string | undefined {
    return this.#lists.ownerOf(name)?.skills.name
  }

  /** The error of a view whose roots are all missing. */
  get unavailable (): SkillError | undefined {
    if (this.#members[0]?.skills.unavailable === undefined) return undefined
    const errors = this.#members.map(({ skills }) => skills.unavailable)
    if (errors.includes(undefined)) return undefined
    return errors.find((error) => error?.code === 'skills_folder_permission_denied') ?? errors[0]
  }

  async available (): Promise<readonly SkillMetadata[]> {
    await this.#order.all(async () => {
      await this.#sync()
      await this.#indexed()
    })
    return this.availableNow()
  }

  async #indexed (): Promise<void> {
    await Promise.all(this.#members.map(({ skills }) => skills.indexed()))
  }

  availableNow (): readonly SkillMetadata[] {
    return this.#lists.availableNow()
  }

  get changeCount (): number {
    return this.#members.reduce((sum, { skills }) => sum + skills.changeCount, 0)
  }

  namedOtherwise (displayName: string): readonly string[] {
    return this.#members.flatMap((member) => member.skills.namedOtherwise(displayName).filter((name) => this.#lists.ownerOf(name) === member)).sort(compareCodePoints)
  }

  findNow (name: string): CatalogSkill | undefined {
    return this.#lists.ownerOf(name)?.skills.findNow(name)
  }

  folderIdNow (name: string): string | undefined {
    return this.#lists.ownerOf(name)?.skills.folderIdNow(name)
  }

  async search (query: string): Promise<SearchAnswer> {
    for (let attempt = 1; ; attempt++) {
      // At each search: a missing root is an error, and what is gone from a root is not found.
      await this.list()
      await this.available()
      const names = this.#lists.namesNow()
      const answer = await this.#ground.search.search(query, names, this.#members)
      if (attempt === MAX_ATTEMPTS || !this.#lists.hasMovedSince(names)) return answer
    }
  }

  async find (name: string): Promise<CatalogSkill | undefined> {
    const skill = await this.#order.first(name, async ({ skills }) => await skills.files.find(name) ?? NOBODY)
    if (skill !== NOBODY) return this.#shownSkill(skill)
    if (this.unavailable !== undefined) throw this.unavailable
    return undefined
  }

  async read<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    if (hasForbiddenSequence(name)) throw mainFileError.invalidName(name)
    return await this.#first(name, ({ skills }) => skills.files.read(name, this.#shown(name, answer)))
  }

  readListed<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    return this.#first(name, ({ skills }) => skills.files.readListed(name, this.#shown(name, answer)))
  }

  async readByDisplayName<T> (displayName: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    // Of several skills with one name the first in order counts: all must have been read.
    await this.#indexed()
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const meant = await findByDisplayName(this, displayName)
      if (meant === undefined) break
      const { name, metadata } = meant
      try {
        const found = await this.#first(name, ({ skills }) => skills.files.read(name, async (state) => {
          // Since then the skill may have got another name, or a root before its own another skill of this folder name.
          const isMeant = metadata.name !== displayName || state.skill.metadata.name === displayName
          return isMeant ? { value: await this.#shown(name, answer)(state) } : undefined
        }))
        if (found !== undefined) return found.value
      } catch (error) {
        if (!isMissing(error)) throw error
      }
    }
    throw this.unavailable ?? mainFileError.skillNotFound(displayName)
  }

  async verifyDisplayNames (): Promise<void> {
    await Promise.all(this.#members.map(({ skills }) => skills.verifyDisplayNames()))
  }

  readMainFile (name: string, preference: MainFilePreference): Awaitable<FileContent> {
    if (hasForbiddenSequence(name)) throw mainFileError.invalidName(name)
    return this.#order.atOnce(name, (skills) => skills.files.mainFileAtOnce(name, preference)) ?? this.#first(name, ({ skills }) => skills.files.readMainFile(name, preference))
  }

  async readFile (name: string, path: string): Promise<FileContent> {
    if (hasForbiddenSequence(name)) throw fileError.invalidName()
    return this.#order.atOnce(name, (skills) => skills.files.fileAtOnce(name, path)) ?? await this.#first(name, ({ skills }) => skills.files.readFile(name, path))
  }

  async openFile (name: string, path: string): Promise<ServableFile> {
    if (hasForbiddenSequence(name)) throw fileError.invalidName()
    const content = this.#order.atOnce(name, (skills) => skills.files.fileAtOnce(name, path))
    return content === undefined ? await this.#first(name, ({ skills }) => skills.files.openFile(name, path)) : { kind: 'content', content }
  }

  async manifest (name: string): Promise<Manifest> {
    if (hasForbiddenSequence(name)) throw fileError.invalidName()
    return await this.#first(name, ({ skills }) => skills.files.read(name, (state) => state.manifest()))
  }

  async archive (name: string, nameOf?: (path: string) => string): Promise<SkillArchive> {
    if (hasForbiddenSequence(name)) throw fileError.invalidName()
    return await this.#first(name, ({ skills }) => skills.files.read(name, (state) => state.archive(nameOf)))
  }

  async inspect (name: string, known?: Inspected): Promise<Inspected | Unread | undefined> {
    const state = await this.#order.first(name, async ({ skills, inspections }) => {
      // Without a known state, the state of this moment is wanted.
      return await (known === undefined ? skills.files : inspections).inspect(name, known) ?? NOBODY
    })
    return state === NOBODY ? undefined : state
  }

  keptRevisions (name: string): readonly string[] {
    return keptRevisionsOf(this.#members, name)
  }

  at (revision: string, notesPresent?: boolean): SourceAtRevision {
    const reader: RevisionReader = { read: (name, answer, wanted) => this.#readAt(name, answer, wanted), keepersOf: (wanted) => keepersOf(this.#members, wanted) }
    return new SkillsAtRevision(this, reader, revision, notesPresent)
  }

  /** A revision that is kept may be one of another root, from when that was the skill's. What the present skill hides, it hides there too. */
  async #readAt<T> (name: string, answer: (state: SkillState) => Promise<T>, revision: string): Promise<T> {
    if (hasForbiddenSequence(name)) throw mainFileError.invalidName(name)
    const isThere = this.#members.length > 1 && await this.find(name) !== undefined
    const owner = this.#lists.ownerOf(name)?.skills
    const present = isThere ? owner?.findNow(name) : undefined
    try {
      return await this.#first(name, ({ skills }) => skills.files.read(name, this.#shown(name, answer), revision, present))
    } catch (error) {
      // Also of a skill that is too large, or whose disk fails: it has no revision.
      const keeper = keptBy(this.#members, name).find(({ skills, revisions }) => skills !== owner && revisions.has(revision))
      if (!(error instanceof SkillError) || keeper === undefined) throw error
      // The other root may still have the skill in this revision.
      const unhidden = async (state: SkillState): Promise<T> => {
        if (present?.filter !== undefined && await hidesSome(present.filter, { manifest: await state.manifest() })) throw mainFileError.skillNotFound(name)
        return await answer(state)
      }
      return await keeper.skills.files.read(name, unhidden, revision).catch((second: unknown) => { throw isMissing(second) || second instanceof RevisionChangedError ? error : second })
    }
  }

  async #first<T> (name: string, ask: (member: ViewMember) => Promise<T>): Promise<T> {
    const answer = await this.#order.first(name, ask)
    if (answer === NOBODY) throw this.unavailable ?? mainFileError.skillNotFound(name)
    return answer
  }

  #shown<T> (name: string, answer: (state: SkillState) => Promise<T>): (state: SkillState) => Promise<T> {
    if (this.#members.length < 2) return answer
    // A kept revision is read from one root alone.
    return (state) => {
      const hidden = 'folder' in state.skill ? this.#hiddenRoots(name) : []
      return answer(hidden.length === 0 ? state : shadowingState(state, hidden))
    }
  }

  #shownSkill (skill: CatalogSkill): CatalogSkill {
    const hidden = this.#members.length > 1 ? this.#hiddenRoots(skill.name) : []
    return hidden.length === 0 ? skill : withShadowing(skill, hidden)
  }

  #hiddenRoots (name: string): readonly string[] {
    return this.#lists.hiddenBy(name).map(({ skills }) => skills.name)
  }
}
