const JITTER = 0.1
const FIRST_RETRY_MS = 2_000
const MAX_RETRY_MS = 900_000
const MIN_HOOK_PAUSE_MS = 5_000

interface ScheduleOptions {
  readonly intervalMs: number
  readonly random?: () => number
}

/**
 * When a source is checked again: at intervals, later after failures, immediately when a hook asks. All in
 * milliseconds.
 */
export class Schedule {
  readonly #options: ScheduleOptions
  #failures = 0
  #lastStart = Number.NEGATIVE_INFINITY

  constructor (options: ScheduleOptions) {
    this.#options = options
  }

  started (now: number): void {
    this.#lastStart = now
  }

  /** Pause after a check that did not fail. Replicas that started together drift apart. */
  pauseAfterSuccess (): number {
    this.#failures = 0
    return this.#jittered(this.#options.intervalMs)
  }

  /** @param retryAfter what the other side asked for */
  pauseAfterFailure (retryAfter = 0): number {
    const pause = Math.min(FIRST_RETRY_MS * 2 ** this.#failures++, MAX_RETRY_MS)
    return Math.max(this.#jittered(pause), Math.min(retryAfter, MAX_RETRY_MS))
  }

  /** Pause before a check that a hook asks for: hooks come in bursts. */
  pauseBeforeHook (now: number): number {
    return Math.max(0, this.#lastStart + MIN_HOOK_PAUSE_MS - now)
  }

  #jittered (pause: number): number {
    return Math.round(pause * (1 + JITTER * (2 * (this.#options.random ?? Math.random)() - 1)))
  }
}
