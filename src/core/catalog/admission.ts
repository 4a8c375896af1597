import type { IndexedSkill } from './catalog.ts'
import type { SkillFolder } from '../roots/scan-root.ts'

/** `changed`: the files no longer match the index entry, and both are read again. */
export type CheckOutcome = 'served' | 'refused' | 'changed'

/** Decides which folders are skills for callers. Without one all are. */
export interface Admission {
  /** Names at the top of a skill that are not served from any. */
  readonly hiddenNames: ReadonlySet<string>
  /** Whether skills of the root are served only after a check. */
  guards (): boolean
  /** Checks a skill as it is on the disk. */
  check (skill: IndexedSkill): Promise<CheckOutcome>
}

/** The folders that are served: those that nobody guards, and those whose last check said so. */
export class AdmittedFolders {
  readonly #admission: Admission
  readonly #checked = new WeakSet<SkillFolder>()
  readonly #unchecked = new Set<string>()
  #policyChanges = 0

  constructor (admission: Admission) {
    this.#admission = admission
  }

  get hiddenNames (): ReadonlySet<string> {
    return this.#admission.hiddenNames
  }

  has (folder: SkillFolder): boolean {
    return this.#checked.has(folder) || !this.#admission.guards()
  }

  /** Whether the folder was served. */
  delete (folder: SkillFolder): boolean {
    return this.#checked.delete(folder)
  }

  /** Names that are to be checked before the next list. */
  get unchecked (): Iterable<string> {
    return this.#unchecked
  }

  checkLater (names: Iterable<string>): void {
    for (const name of names) this.#unchecked.add(name)
  }

  /** Runs the check of a name. If it fails, the next list tries again, and a request for the skill gets the reason. */
  async withCheck<Result> (name: string, run: () => Promise<Result>): Promise<Result> {
    this.#unchecked.delete(name)
    try {
      return await run()
    } catch (error) {
      this.checkLater([name])
      throw error
    }
  }

  /** The policy has changed: checks that are running start again. */
  policyChanged (): void {
    this.#policyChanges++
  }

  async check (skill: IndexedSkill): Promise<CheckOutcome> {
    const before = this.#policyChanges
    if (!this.#admission.guards()) return 'served'
    const outcome = await this.#admission.check(skill)
    if (before !== this.#policyChanges) return await this.check(skill)
    if (outcome === 'served') this.#checked.add(skill.folder)
    return outcome
  }
}
