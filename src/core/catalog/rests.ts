import { setTimeout } from 'node:timers/promises'
import { SLICE_MS } from '../shared/limits.ts'

/** Rest after a run, as a multiple of what it took, and the longest, in milliseconds. */
const REST_FACTOR = 4
const MAX_REST_MS = 250

/** Makes a job rest after each run that took more than a slice: the next run waits for that. */
export function withRests (job: () => Promise<void>): () => Promise<void> {
  let restUntil = 0
  return async () => {
    if (performance.now() < restUntil) await setTimeout(restUntil - performance.now())
    const start = performance.now()
    await job()
    const took = performance.now() - start
    if (took > SLICE_MS) restUntil = start + took + Math.min(REST_FACTOR * took, MAX_REST_MS)
  }
}
