import type { DiskState } from './model-disk.ts'

/** One system call that changed the disk, and the disk after it. */
export interface Step {
  readonly index: number
  /** When it was made, on the clock of `performance.now()`. */
  readonly at: number
  readonly what: string
  readonly disk: DiskState
}

/** States that are kept for the report of a violation after no request can be answered from them any more. */
const KEPT_FOR_REPORTS = 300

/** Every state that the disk has been in, in order; old ones are forgotten. */
export class History {
  readonly #steps: Step[]
  #oldest = 0

  constructor (disk: DiskState) {
    this.#steps = [{ index: 0, at: performance.now(), what: 'the beginning', disk }]
  }

  get last (): Step {
    const step = this.#steps.at(-1)
    if (step === undefined) throw new Error('a history is never empty')
    return step
  }

  add (what: string, disk: DiskState): void {
    this.#steps.push({ index: this.last.index + 1, at: performance.now(), what, disk })
  }

  /** From this step up to now, latest first: what an answer to a request sent after it may show. */
  since (index: number): readonly Step[] {
    return this.#steps.slice(Math.max(0, index - this.#oldest)).reverse()
  }

  /** The step that was the last one at a time. */
  at (time: number): number {
    const after = this.#steps.findIndex(({ at }) => at > time)
    return Math.max(this.#oldest, (after === -1 ? this.#steps.length : after) - 1 + this.#oldest)
  }

  /** No request that was sent before this step is still waiting for its answer. */
  forget (index: number): void {
    const count = index - KEPT_FOR_REPORTS - this.#oldest
    // In bulk: to move an array by one place for each step would cost more than the step.
    if (count < KEPT_FOR_REPORTS) return
    this.#steps.splice(0, count)
    this.#oldest += count
  }
}
