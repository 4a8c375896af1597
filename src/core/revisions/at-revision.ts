import type { SkillSource, SourceAtRevision } from '../service.ts'
import { RevisionChangedError, SkillError, unlessRefused } from '../shared/errors.ts'
import type { CatalogSkill, SkillMetadata } from '../shared/skill.ts'
import { SkillReads } from './skill-reads.ts'
import type { SkillState } from './state.ts'

type Kept = (name: string, revision: string) => SkillState | undefined

/**
 * The skills of one request that asked for a revision: each is the present one if it has that revision, else a kept
 * one. What is said of many skills has no revision, and passes through.
 */
export class SkillsAtRevision extends SkillReads implements SourceAtRevision {
  readonly #source: SkillSource
  readonly #wanted: string
  readonly #kept: Kept
  /** Of the skills that were read, by name. */
  readonly #revisions = new Map<string, string>()

  /** @param wanted `sha256:<hex>`, or `current` for the revision that each skill has at its first read */
  constructor (source: SkillSource, wanted: string, kept: Kept) {
    super()
    this.#source = source
    this.#wanted = wanted
    this.#kept = kept
  }

  revisionOf (name: string): string | undefined {
    return this.#revisions.get(name)
  }

  get onlyRevision (): string | undefined {
    const revisions = new Set(this.#revisions.values())
    return revisions.size === 1 ? [...revisions][0] : undefined
  }

  async read<T> (name: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    const wanted = this.#wanted === 'current' ? this.#revisions.get(name) : this.#wanted
    let present: string | undefined
    const answerWanted = async (state: SkillState): Promise<T> => {
      present = (await state.manifest()).revision
      if (wanted !== undefined && wanted !== present) throw new RevisionChangedError(present)
      return await answer(state)
    }
    const value = await this.#source.read(name, answerWanted).catch(async (error: unknown) => {
      // Also of a skill that is gone, too large, or whose disk fails.
      const mayBeKept = error instanceof SkillError && wanted !== undefined && present !== wanted
      const kept = mayBeKept ? this.#kept(name, wanted) : undefined
      if (kept === undefined) throw error
      return await answer(kept)
    })
    this.#revisions.set(name, wanted ?? present ?? '')
    return value
  }

  /** A name that no skill has in its frontmatter any more is taken for the folder's. */
  async readByDisplayName<T> (displayName: string, answer: (state: SkillState) => Promise<T>): Promise<T> {
    const name = await unlessRefused(() =>
      this.#source.readByDisplayName(displayName, async ({ skill }) => skill.name))
    return await this.read(name ?? displayName, answer)
  }

  async find (name: string): Promise<CatalogSkill | undefined> {
    if (await this.#source.find(name) === undefined && this.keptRevisions(name).length === 0) return undefined
    return await this.read(name, async ({ skill }) => skill)
  }

  get scope (): string {
    return this.#source.scope
  }

  list = (): Promise<readonly string[]> => this.#source.list()
  available = (): Promise<readonly SkillMetadata[]> => this.#source.available()
  availableNow = (): readonly SkillMetadata[] => this.#source.availableNow()
  search = (query: string): Promise<readonly string[]> => this.#source.search(query)
  findNow = (name: string): CatalogSkill | undefined => this.#source.findNow(name)
  rootOf = (name: string): string | undefined => this.#source.rootOf(name)
  keptRevisions = (name: string): readonly string[] => this.#source.keptRevisions(name)
  at = (revision: string): SourceAtRevision => this.#source.at(revision)
}
