import type { CatalogChange } from '../catalog/catalog.ts'
import type { MainFilePreference } from '../format/main-files.ts'
import type { SkillArchive } from '../content/archive.ts'
import type { Inspected, Unread } from '../content/manifest.ts'
import type { SkillState } from '../content/skill-state.ts'
import type { PollPhase } from '../disk/poll-phase.ts'
import type { FileContent } from '../files/file-content.ts'
import type { ServableFile } from '../files/file-store.ts'
import { mainFileError, SkillError } from '../ground/errors.ts'
import { MAX_ATTEMPTS } from '../ground/limits.ts'
import type { CatalogSkill, Manifest, SkillMetadata } from '../ground/skill.ts'
import { hasForbiddenSequence } from '../ground/skill-name.ts'
import { SkillsAtRevision } from '../skills-at-revision.ts'
import type { SearchAnswer } from '../search/search.ts'
import type { SourceAtRevision, SkillService, SkillStatus } from '../skill-source.ts'
import { MemberLists, type MergedNames } from './member-lists.ts'
import { ShadowingState, withShadowing } from './shadowing.ts'
import { ViewChanges } from './view-changes.ts'
import { ignoreMissingRoot, isMissing, type ViewMember } from './view-member.ts'
import { viewStatus } from './view-status.ts'

/** What all views of a process use together. */
export interface ViewGround {
  readonly phase: PollPhase
  /** Any root: its manager says what is wrong with a name that no skill can have. */
  readonly anyRoot: ViewMember
  /** Searches skills by name and root. */
  search (query: string, names: MergedNames, members: readonly ViewMember[]): Promise<SearchAnswer>
}

/**
 * The skills of some roots, or some of their skills, as if there were no others. A name is resolved in the roots of the view, in
 * their order. What is not in the view is never asked for. Consumer: access control, as every door takes a view.
 */
export class View implements SkillService {
  #scope: string
  readonly #ground: ViewGround
  readonly #changes: ViewChanges
  #members: readonly ViewMember[]
  readonly #lists: MemberLists

  /** @param scope differs from that of every other view */
  constructor (scope: string, members: readonly ViewMember[], ground: ViewGround) {
    this.#scope = scope
    this.#members = members
    this.#lists = new MemberLists(members)
    this.#ground = ground
    this.#changes = new ViewChanges({ members: () => this.#members, names: () => this.#lists.namesNow(), generation: () => this.generation })
  }

  get scope (): string {
    return this.#scope
  }

  /** Takes other roots, or patterns, from now on. Listeners hear of the difference as of any change. */
  setMembers (scope: string, members: readonly ViewMember[]): void {
    this.#scope = scope
    this.#members = members
    this.#lists.setMembers(members)
    this.#changes.membersChanged()
  }

  /** Goes up with what callers of this view can see, counted from its first question. */
  get generation (): number {
    return this.#lists.generation
  }

  get status (): SkillStatus {
    return { ...viewStatus(this.#members), generation: this.generation, skills: this.namesNow().length }
  }

  async freshStatus (): Promise<SkillStatus> {
    await Promise.all(this.#members.map(({ skills }) => skills.freshStatus()))
    return this.status
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
    for (let attempt = 1; ; attempt++) {
      const before = this.#changeCount
      for (const { skills } of this.#members) await skills.list().catch(ignoreMissingRoot)
      if (!this.#isOutdated(before, attempt)) break
    }
    const { unavailable } = this
    if (unavailable !== undefined) throw unavailable
    return this.namesNow()
  }

  namesNow (): readonly string[] {
    return this.#lists.namesNow().names
  }

  rootOf (name: string): string | undefined {
    return this.#members[this.#lists.namesNow().owners.get(name) ?? -1]?.skills.rootOf(name)
  }

  /** The error of a view that has roots, and none of them is there. */
  get unavailable (): SkillError | undefined {
    if (this.#members[0]?.skills.unavailable === undefined) return undefined
    const errors = this.#members.map(({ skills }) => skills.unavailable)
    if (errors.includes(undefined)) return undefined
    return errors.find((error) => error?.code === 'skills_folder_permission_denied') ?? errors[0]
  }

  async available (): Promise<readonly SkillMetadata[]> {
    await Promise.all(this.#members.map(({ skills }) => skills.available()))
    return this.availableNow()
  }

  availableNow (): readonly SkillMetadata[] {
    return this.#lists.availableNow()
  }

  async search (query: string): Promise<SearchAnswer> {
    // At each search: a missing root is an error, and what is gone from a root is not found.
    await this.list()
    await this.available()
    return await this.#ground.search(query, this.#lists.namesNow(), this.#members)
  }

  async find (name: string): Promise<CatalogSkill | undefined> {
    for (let attempt = 1; ; attempt++) {
      const before = this.#changeCount
      for (const member of this.#members) {
        const found = member.allows(name) ? await member.skills.find(name).catch(ignoreMissingRoot) : undefined
        if (found !== undefined) return this.#shownSkill(found)
      }
      if (!this.#isOutdated(before, attempt)) break
    }
    const { unavailable } = this
    if (unavailable !== undefined) throw unavailable
    return undefined
  }

  read<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    return this.#first(name, ({ skills }) => skills.read(name, this.#shown(name, answer)))
  }

  readListed<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    return this.#first(name, ({ skills }) => skills.readListed(name, this.#shown(name, answer)))
  }

  async readByDisplayName<T> (displayName: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    await this.available()
    const name = await this.#folderOf(displayName)
    if (name === undefined) throw mainFileError.skillNotFound(displayName)
    return await this.read(name, answer)
  }

  readMainFile (name: string, preference: MainFilePreference): Promise<FileContent> {
    return this.#first(name, ({ skills }) => skills.readMainFile(name, preference))
  }

  readFile (name: string, path: string): Promise<FileContent> {
    return this.#first(name, ({ skills }) => skills.readFile(name, path))
  }

  openFile (name: string, path: string): Promise<ServableFile> {
    return this.#first(name, ({ skills }) => skills.openFile(name, path))
  }

  manifest (name: string): Promise<Manifest> {
    return this.#first(name, ({ skills }) => skills.manifest(name))
  }

  archive (name: string, nameOf?: (path: string) => string): Promise<SkillArchive> {
    return this.#first(name, ({ skills }) => skills.archive(name, nameOf))
  }

  async inspect (name: string, known?: Inspected): Promise<Inspected | Unread | undefined> {
    for (const member of this.#members) {
      // With nothing to compare it with, the state of this moment is wanted.
      const found = member.allows(name) ? await (known === undefined ? member.skills : member.inspections).inspect(name, known) : undefined
      if (found !== undefined) return found
    }
    return undefined
  }

  keptRevisions (name: string): readonly string[] {
    return this.#members.flatMap((member) => member.allows(name) ? member.skills.keptRevisions(name) : [])
  }

  at (revision: string): SourceAtRevision {
    return new SkillsAtRevision(this, { read: (name, answer, wanted) => this.#readAt(name, answer, wanted) }, revision)
  }

  /** A revision that is kept may be one of a later root, from when that was the skill's. */
  async #readAt<T> (name: string, answer: (state: SkillState) => Promise<T>, revision: string): Promise<T> {
    try {
      return await this.#first(name, ({ skills }) => skills.at(revision).read(name, this.#shown(name, answer)))
    } catch (error) {
      const keeper = this.#members.find((member) => member.allows(name) && member.skills.keptRevisions(name).includes(revision))
      if (!(error instanceof SkillError) || error.code !== 'revision_changed' || keeper === undefined) throw error
      return await keeper.skills.at(revision).read(name, answer)
    }
  }

  /** The folder name of the skill with this frontmatter name, else of this folder name. */
  async #folderOf (displayName: string): Promise<string | undefined> {
    const folder = await this.find(displayName)
    if (folder?.metadata.name === displayName) return displayName
    for (let attempt = 0, changeCount = -1; attempt <= MAX_ATTEMPTS; attempt++) {
      const { names, owners } = this.#lists.namesNow()
      for (const name of names) {
        if (this.#members[owners.get(name) ?? -1]?.skills.findNow(name)?.metadata.name !== displayName) continue
        if ((await this.find(name))?.metadata.name === displayName) return name
      }
      if (changeCount === this.#changeCount) break
      changeCount = this.#changeCount
      // Any skill may have taken the name a moment ago.
      await Promise.all(this.#members.map(({ skills }) => skills.verifyDisplayNames()))
    }
    return folder?.name
  }

  /** Asks the roots of the view in order, until one has the skill. */
  async #first<T> (name: string, ask: (member: ViewMember) => Promise<T>): Promise<T> {
    // What is wrong with such a name differs from question to question. No disk is touched.
    if (hasForbiddenSequence(name)) return await ask(this.#ground.anyRoot)
    for (let attempt = 1; ; attempt++) {
      const before = this.#changeCount
      for (const member of this.#members) {
        try {
          if (member.allows(name)) return await ask(member)
        } catch (error) {
          if (!isMissing(error)) throw error
        }
      }
      if (!this.#isOutdated(before, attempt)) break
    }
    throw this.unavailable ?? mainFileError.skillNotFound(name)
  }

  /** Whether roots have changed since a question began: what moved from a later root to an earlier one was in neither. */
  #isOutdated (before: number, attempt: number): boolean {
    if (this.#members.length < 2 || attempt === MAX_ATTEMPTS || before === this.#changeCount) return false
    this.#ground.phase.forget()
    return true
  }

  get #changeCount (): number {
    let count = 0
    for (const { skills } of this.#members) count += skills.generation
    return count
  }

  #shown<T> (name: string, answer: (state: SkillState) => Promise<T>): (state: SkillState) => Promise<T> {
    if (this.#members.length < 2) return answer
    // A revision that is kept was read alone.
    return (state) => {
      const hidden = 'folder' in state.skill ? this.#hiddenRoots(name) : []
      return answer(hidden.length === 0 ? state : new ShadowingState(state, hidden))
    }
  }

  #shownSkill (skill: CatalogSkill): CatalogSkill {
    const hidden = this.#members.length > 1 ? this.#hiddenRoots(skill.name) : []
    return hidden.length === 0 ? skill : withShadowing(skill, hidden)
  }

  /** Names of the later roots of the view that have a skill of this name, too. */
  #hiddenRoots (name: string): readonly string[] {
    return (this.#lists.namesNow().shadowing.get(name) ?? []).flatMap((index) => this.#members[index]?.skills.rootOf(name) ?? [])
  }
}
