import type { Inspected, Unread } from '../content/manifest.ts'
import type { RootSkills } from '../root-skills.ts'

type Inspection = Inspected | Unread | undefined

/** The state of a skill; `epoch`: when it was up to date. */
interface Kept {
  readonly state: Inspected
  epoch: number
}

const OUTDATED = -1

/**
 * The states of a root's skills, inspected once for all views that follow them. Each view has a change feed, and each feed
 * compares all skills. Fifty views of 10,000 skills would read the root fifty times. A state is handed out until the root reports that the
 * skill may have changed. While nobody follows the root, nothing is kept.
 */
export class SharedInspections {
  readonly #skills: RootSkills
  readonly #kept = new Map<string, Kept>()
  readonly #running = new Map<string, Promise<Inspection>>()
  #followers = 0
  #epoch = 0
  #stopTouches = (): void => {}

  constructor (skills: RootSkills) {
    this.#skills = skills
    // Registered before other listeners, so that none of them gets a state that is outdated by the event it was told of.
    skills.subscribe(({ added, changed, removed }) => { this.#outdate([...added, ...changed, ...removed]) })
  }

  /** As the root's. */
  observe (listener: (names?: Iterable<string>) => void): () => void {
    if (this.#followers++ === 0) this.#stopTouches = this.#skills.observe((names) => { this.#outdate(names) })
    const stop = this.#skills.observe(listener)
    return () => {
      stop()
      if (--this.#followers === 0) this.#unfollow()
    }
  }

  /** As the root's. */
  async inspect (name: string, known?: Inspected): Promise<Inspection> {
    if (this.#followers === 0) return await this.#skills.files.inspect(name, known)
    const kept = this.#kept.get(name)
    if (kept?.epoch === this.#epoch) return kept.state
    let inspection = this.#running.get(name)
    if (inspection === undefined) {
      inspection = this.#skills.files.inspect(name, kept?.state ?? known)
      this.#running.set(name, inspection)
      await this.#keep(name, inspection)
    }
    return await inspection
  }

  async #keep (name: string, inspection: Promise<Inspection>): Promise<void> {
    const state = await inspection.catch(() => undefined)
    // The entry was replaced or removed: the skill may have changed meanwhile.
    if (this.#running.get(name) !== inspection) return
    this.#running.delete(name)
    // Without a fingerprint, the next change may not show.
    if (state === undefined || 'ended' in state || state.fingerprint === undefined) this.#kept.delete(name)
    else this.#kept.set(name, { state, epoch: this.#epoch })
  }

  #unfollow (): void {
    this.#stopTouches()
    this.#kept.clear()
    this.#running.clear()
  }

  #outdate (names: Iterable<string> | undefined): void {
    if (names === undefined) {
      this.#epoch++
      this.#running.clear()
      return
    }
    for (const name of names) {
      this.#running.delete(name)
      const kept = this.#kept.get(name)
      if (kept !== undefined) kept.epoch = OUTDATED
    }
  }
}
