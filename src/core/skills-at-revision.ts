import type { MainFilePreference } from './format/main-files.ts'
import type { SkillArchive } from './content/archive.ts'
import type { RevisionChoice } from './content/skill-files.ts'
import type { SkillState } from './content/skill-state.ts'
import { fileError, mainFileError, unlessRefused } from './shared/errors.ts'
import type { FileContent } from './files/file-content.ts'
import type { ServableFile } from './files/file-store.ts'
import type { SearchAnswer } from './search/search.ts'
import type { CatalogSkill, Manifest, SkillMetadata } from './shared/skill.ts'
import { hasForbiddenSequence } from './shared/skill-name.ts'
import type { SourceAtRevision, SkillSource } from './skill-source.ts'

/** Reads a skill in a chosen revision. */
export interface RevisionReader {
  read<T> (name: string, answer: (state: SkillState) => Promise<T>, revision: RevisionChoice): Promise<T>
  /** Names of the skills that have a revision in memory. */
  keepersOf (revision: RevisionChoice): readonly string[]
}

/** The skills of one request that asked for a revision. What is asked of all skills together has none, and passes through. */
export class SkillsAtRevision implements SourceAtRevision {
  readonly #source: SkillSource
  readonly #files: RevisionReader
  readonly #wanted: RevisionChoice
  /** By name of the skill: its first read decides for the others. */
  readonly #revisions = new Map<string, string>()
  readonly #notesPresent: boolean
  #present: string | undefined

  constructor (source: SkillSource, files: RevisionReader, wanted: RevisionChoice, notesPresent = false) {
    this.#source = source
    this.#files = files
    this.#wanted = wanted
    this.#notesPresent = notesPresent && wanted !== 'current'
  }

  get scope (): string {
    return this.#source.scope
  }

  revisionOf (name: string): string | undefined {
    return this.#revisions.get(name)
  }

  get onlyRevision (): string | undefined {
    const revisions = new Set(this.#revisions.values())
    return revisions.size === 1 ? revisions.values().next().value : undefined
  }

  get presentRevision (): string | undefined {
    return this.#present
  }

  async read<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    // Before the answer, which may hold an open file.
    if (this.#notesPresent) this.#present = await this.#presentOf(name)
    return await this.#files.read(name, async (state) => {
      const { revision } = await state.manifest()
      const value = await answer(state)
      this.#revisions.set(name, revision)
      if (this.#wanted === 'current') this.#present = revision
      return value
    }, this.#revisions.get(name) ?? this.#wanted)
  }

  /** Whoever asks for a revision waits for it. */
  readListed<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    return this.read(name, answer)
  }

  async readByDisplayName<T> (displayName: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    return await this.read(await this.#folderOf(displayName), answer)
  }

  /** The names of a revision count: the skill may be called otherwise by now, or be gone. */
  async #folderOf (displayName: string): Promise<string> {
    const others = new Set<string>()
    for (const name of this.#wanted === 'current' ? [] : this.#files.keepersOf(this.#wanted)) {
      const before = await this.#nameBefore(name)
      if (before === displayName) return name
      if (before !== undefined) others.add(name)
    }
    if (others.has(displayName)) return displayName
    const name = await this.#source.readByDisplayName(displayName, async ({ skill }) => skill.name)
    if (others.has(name)) throw mainFileError.skillNotFound(displayName)
    return name
  }

  /** What the frontmatter of a skill calls it in the wanted revision; undefined when that is not given out. */
  async #nameBefore (name: string): Promise<string | undefined> {
    return await unlessRefused(() => this.#files.read(name, async ({ skill }) => skill.metadata.name, this.#wanted))
  }

  async find (name: string): Promise<CatalogSkill | undefined> {
    if (await this.#source.find(name) === undefined && this.keptRevisions(name).length === 0) return undefined
    return await this.read(name, async ({ skill }) => skill)
  }

  readMainFile (name: string, preference: MainFilePreference): Promise<FileContent> {
    return this.read(name, (state) => state.mainFile(preference))
  }

  readFile (name: string, path: string): Promise<FileContent> {
    return this.#readFiles(name, (state) => state.file(path))
  }

  openFile (name: string, path: string): Promise<ServableFile> {
    return this.#readFiles(name, (state) => state.open(path))
  }

  manifest (name: string): Promise<Manifest> {
    return this.#readFiles(name, (state) => state.manifest())
  }

  archive (name: string, nameOf?: (path: string) => string): Promise<SkillArchive> {
    return this.#readFiles(name, (state) => state.archive(nameOf))
  }

  /** The doors of files have a sentence of their own for names. */
  async #readFiles<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    if (hasForbiddenSequence(name)) throw fileError.invalidName()
    return await this.read(name, answer)
  }

  list (): Promise<readonly string[]> {
    return this.#source.list()
  }

  available (): Promise<readonly SkillMetadata[]> {
    return this.#source.available()
  }

  availableNow (): readonly SkillMetadata[] {
    return this.#source.availableNow()
  }

  search (query: string): Promise<SearchAnswer> {
    return this.#source.search(query)
  }

  rootOf (name: string): string | undefined {
    return this.#source.rootOf(name)
  }

  keptRevisions (name: string): readonly string[] {
    return this.#source.keptRevisions(name)
  }

  at (revision: string, notesPresent?: boolean): SourceAtRevision {
    return this.#source.at(revision, notesPresent)
  }

  /** Undefined for a skill that is gone, or that changes without pause: a kept revision of it can still be read. */
  async #presentOf (name: string): Promise<string | undefined> {
    return (await unlessRefused(() => this.#source.manifest(name)))?.revision
  }
}
