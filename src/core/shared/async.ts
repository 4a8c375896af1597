import { setImmediate as nextTurn } from 'node:timers/promises'
import pLimit from 'p-limit'

/** Longest piece of work in one turn of the event loop, in milliseconds. */
const SLICE_MS = 5

/**
 * Makes a job that never runs twice at the same time. A call while it runs gets the next run, which begins after the
 * call, and therefore finds whatever its caller knows of. However many call, one more run serves all.
 */
export function coalesce (job: () => Promise<void>): () => Promise<void> {
  const enter = pLimit(1)
  let next: Promise<void> | undefined
  return () => {
    next ??= enter(() => {
      next = undefined
      return job()
    })
    return next
  }
}

/** When long work began in the present turn of the event loop. */
let workStartedAt: number | undefined

/** To be awaited between two pieces of long work: when all such work has taken SLICE_MS, everybody else gets a turn. */
export function yieldIfNeeded (): Promise<void> | undefined {
  if (workStartedAt === undefined) {
    workStartedAt = performance.now()
    setImmediate(() => { workStartedAt = undefined })
  }
  return performance.now() - workStartedAt < SLICE_MS ? undefined : nextTurn()
}
