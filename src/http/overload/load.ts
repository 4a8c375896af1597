import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { CoreLog } from '../../core/shared/log.ts'

/** What is refused: 0 nothing, 1 what costs most, 2 everything but probes. */
export type LoadLevel = 0 | 1 | 2

/**
 * Mean delays of the event loop from which each level begins, in milliseconds. Every client waits that long for its turn. A
 * deployment that rewrites 1,000 skills stays below 50 ms.
 */
const LEVELS_MS = [0, 250, 1_000] as const

/** A level ends when the delay is below this share of its beginning. */
const END_SHARE = 0.5

/** Pause between two measurements, and the steps in which delays are measured, in milliseconds. */
const INTERVAL_MS = 1_000
const STEP_MS = 20

/** Measures whether the process has more to do than it can. A level begins when two measurements in a row reach it: a single stall is no overload. */
export class Load {
  readonly #log: CoreLog
  #level: LoadLevel = 0
  #measured: LoadLevel = 0
  #stop = (): void => {}

  constructor (log: CoreLog) {
    this.#log = log
  }

  get level (): LoadLevel {
    return this.#level
  }

  start (): void {
    const delays = monitorEventLoopDelay({ resolution: STEP_MS })
    delays.enable()
    const timer = setInterval(() => {
      // NaN when the loop was too late for a single measurement: this timer has waited as long.
      this.take(Number.isNaN(delays.mean) ? INTERVAL_MS : delays.mean / 1e6 - STEP_MS)
      delays.reset()
    }, INTERVAL_MS).unref()
    this.#stop = () => {
      clearInterval(timer)
      delays.disable()
    }
  }

  close (): void {
    this.#stop()
  }

  /** @param delayMs mean delay of the event loop since the last call, in milliseconds */
  take (delayMs: number): void {
    const before = this.#level
    const measured = levelAfter(before, delayMs)
    this.#level = measured > before ? Math.max(before, Math.min(measured, this.#measured)) as LoadLevel : measured
    this.#measured = measured
    if (this.#level === before) return
    const fields = { eventLoopDelayMs: Math.round(delayMs) }
    if (this.#level === 0) this.#log.info(fields, 'the service is no longer overloaded')
    else if (this.#level === 1) this.#log.warn(fields, 'the service is overloaded: archives, searches and lists with entries are refused')
    else this.#log.warn(fields, 'the service is overloaded: everything but probes is refused')
  }
}

function levelAfter (before: LoadLevel, delayMs: number): LoadLevel {
  const isAt = (level: 1 | 2) => delayMs >= LEVELS_MS[level] * (before >= level ? END_SHARE : 1)
  return isAt(2) ? 2 : isAt(1) ? 1 : 0
}
