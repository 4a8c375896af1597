import { setImmediate as nextTurn } from 'node:timers/promises'

/** Longest piece of work in one turn of the event loop, in milliseconds. */
const SLICE_MS = 5

type Job<T> = () => Promise<T>

/**
 * Creates a function that never runs two jobs with one key at the same time. Calls during a run share one further run,
 * which begins after them, so that no result is older than its call. Jobs with one key must be equal.
 */
export function createCoalescer<T> (): (key: string, job: Job<T>) => Promise<T> {
  const running = new Map<string, Promise<T>>()
  const waiting = new Map<string, Promise<T>>()

  function start (key: string, job: Job<T>): Promise<T> {
    const run = job().finally(() => { running.delete(key) })
    running.set(key, run)
    return run
  }

  return (key, job) => {
    const next = waiting.get(key)
    if (next !== undefined) return next
    const current = running.get(key)
    if (current === undefined) return start(key, job)
    const run = current.catch(() => {}).then(() => {
      waiting.delete(key)
      return start(key, job)
    })
    waiting.set(key, run)
    return run
  }
}

export function coalesce<T> (job: Job<T>): Job<T> {
  const run = createCoalescer<T>()
  return () => run('', job)
}

/** In the present turn of the event loop. */
let workStartedAt: number | undefined

/** Await it between two pieces of long work: ends the turn of the event loop after SLICE_MS of such work. */
export function yieldIfNeeded (): Promise<void> | undefined {
  if (workStartedAt === undefined) {
    workStartedAt = performance.now()
    setImmediate(() => { workStartedAt = undefined })
  }
  return performance.now() - workStartedAt < SLICE_MS ? undefined : nextTurn()
}
