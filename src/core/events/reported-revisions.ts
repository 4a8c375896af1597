import { forEachInSlices } from '../shared/async.ts'
import { SkillError } from '../shared/errors.ts'
import type { CoreLog } from '../shared/log.ts'
import type { SkillService } from '../skill-source.ts'

interface ReportedRevisionsOptions {
  readonly skills: Pick<SkillService, 'manifest' | 'keptRevisions'>
  readonly log: CoreLog
}

/** Has the revisions of events kept, as those of manifests are, before anybody is told of them. */
export class ReportedRevisions {
  readonly #options: ReportedRevisionsOptions
  /** Skills whose present revision was handed out, and kept unless others took its room. */
  readonly #kept = new Set<string>()
  #stopped = false

  constructor (options: ReportedRevisionsOptions) {
    this.#options = options
  }

  /** The skill has another revision. */
  forget (name: string): void {
    this.#kept.delete(name)
  }

  stop (): void {
    this.#stopped = true
  }

  /**
   * Has the revision of a skill kept. It reads the skill a second time: an inspection gathers no bytes, because those of all skills
   * have no room. False when the skill is in another state already.
   */
  async keep (name: string, revision: string): Promise<boolean> {
    try {
      const isPresent = (await this.#options.skills.manifest(name)).revision === revision
      if (isPresent) this.#kept.add(name)
      return isPresent
    } catch (err) {
      if (!(err instanceof SkillError)) this.#options.log.warn({ err, skill: name }, 'a revision could not be kept')
      return false
    }
  }

  /**
   * Has those of these present revisions kept that are not.
   * @param revisions by name of the skill
   * @returns undefined where all are kept
   */
  keepAll (revisions: ReadonlyMap<string, string>): Promise<void> | undefined {
    const due = [...revisions].filter(([name, revision]) => !this.#kept.has(name) || !this.#options.skills.keptRevisions(name).includes(revision))
    return due.length === 0 ? undefined : this.#keepEach(due)
  }

  async #keepEach (due: ReadonlyArray<readonly [name: string, revision: string]>): Promise<void> {
    await forEachInSlices(due, async ([name, revision]) => { if (!this.#stopped) await this.keep(name, revision) })
  }
}
