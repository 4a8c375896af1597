import type { SearchAnswer, SkillSource, SourceAtRevision } from '../service.ts'
import { unlessRefused } from '../shared/errors.ts'
import type { CatalogSkill, SkillMetadata } from '../shared/skill.ts'
import { SkillReads } from './skill-reads.ts'
import type { SkillState } from './state.ts'

/** Reads skills in the wanted revision, the present or a kept one. */
interface RevisionReader {
  read<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T>
  /** Names of the skills whose kept revisions include the wanted one. */
  named (): readonly string[]
}

/** The skills of one request that asked for a revision. What is said of many skills has none, and passes through. */
export class SkillsAtRevision extends SkillReads implements SourceAtRevision {
  readonly #source: SkillSource
  readonly #reader: RevisionReader
  readonly #wanted: string
  /** By name of the skill: its first read decides for the others. */
  readonly #revisions = new Map<string, string>()

  /** @param wanted `sha256:<hex>`, or `current` for the present revision of each skill */
  constructor (source: SkillSource, reader: RevisionReader, wanted: string) {
    super()
    this.#source = source
    this.#reader = reader
    this.#wanted = wanted
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

  async read<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    const read = async (state: SkillState): Promise<T> => {
      const { revision } = await state.manifest()
      const value = await answer(state)
      this.#revisions.set(name, revision)
      return value
    }
    if (this.#wanted !== 'current') return await this.#reader.read(name, read)
    const first = this.#revisions.get(name)
    return await (first === undefined ? this.#source.read(name, read) : this.#source.at(first).read(name, read))
  }

  async readByDisplayName<T> (displayName: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    return await this.read(await this.#folderOf(displayName), answer)
  }

  /** The names of the revision count: the skill may be called otherwise by now, or be gone. */
  async #folderOf (displayName: string): Promise<string> {
    for (const name of this.#wanted === 'current' ? [] : this.#reader.named()) {
      const before = await unlessRefused(() => this.#reader.read(name, async ({ skill }) => skill.metadata.name))
      if (before === displayName || (before !== undefined && name === displayName)) return name
    }
    return await this.#source.readByDisplayName(displayName, async ({ skill }) => skill.name)
  }

  async find (name: string): Promise<CatalogSkill | undefined> {
    if (await this.#source.find(name) === undefined && this.keptRevisions(name).length === 0) return undefined
    return await this.read(name, async ({ skill }) => skill)
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

  findNow (name: string): CatalogSkill | undefined {
    return this.#source.findNow(name)
  }

  rootOf (name: string): string | undefined {
    return this.#source.rootOf(name)
  }

  keptRevisions (name: string): readonly string[] {
    return this.#source.keptRevisions(name)
  }

  at (revision: string): SourceAtRevision {
    return this.#source.at(revision)
  }
}
