import { setImmediate as nextTurn } from 'node:timers/promises'
import { SLICE_MS } from './limits.ts'

/** A value, or a promise of it: local disks answer synchronously, network disks later. Always `await` it. */
export type Awaitable<T> = T | Promise<T>

/**
 * Makes a job that never runs twice at the same time. A call while it runs gets the next run, which begins after the
 * call, and therefore finds whatever its caller knows of. However many call, one more run serves all.
 */
export function coalesce (job: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let queued: Promise<void> | undefined
  return function run (): Promise<void> {
    if (running === undefined) return start()
    queued ??= running.then(start, start)
    return queued
  }

  function start (): Promise<void> {
    queued = undefined
    // With a queued run it stays set: a call in the turns before that one begins must not start a third.
    running = job().finally(() => { if (queued === undefined) running = undefined })
    return running
  }
}

export type Queue = <T>(job: () => Promise<T>) => Promise<T>

/**
 * Makes a queue: jobs begin in the order in which they come, each when one before it has ended, one way or the other.
 * @param width how many jobs may run at the same time
 */
export function createQueue (width = 1): Queue {
  const waiting: Array<() => void> = []
  let free = width
  return async (job) => {
    if (free > 0) free--
    else await new Promise<void>((resolve) => { waiting.push(resolve) })
    try {
      return await job()
    } finally {
      const next = waiting.shift()
      if (next === undefined) free++
      else next()
    }
  }
}

/** When sliced work began in the present turn of the event loop; 0 before it does. */
let turnStart = 0

function startTurn (): number {
  if (turnStart === 0) {
    turnStart = performance.now()
    setImmediate(() => { turnStart = 0 })
  }
  return turnStart
}

/** What has waited longest goes first. */
const waitForTurn = createTurnstile()

async function nextSlice (): Promise<void> {
  await waitForTurn()
  turnStart = 0
  // Begun by the next question, the piece before that question would count for nothing.
  startTurn()
}

/**
 * Cuts long work in slices: call it between two pieces, and every few milliseconds everybody else gets a turn. A turn goes to
 * one piece of sliced work. A hundred jobs at the same time therefore make no turn a hundred times as long, and each job gets its share.
 */
export function createSlicer (sliceMs = SLICE_MS): () => Promise<void> | undefined {
  startTurn()
  return () => performance.now() - startTurn() < sliceMs ? undefined : nextSlice()
}

/** Visits all items in slices, one after the other. A visit without a promise costs no turn of the microtask queue. */
export async function forEachInSlices<T> (items: Iterable<T>, visit: (item: T) => Promise<void> | void): Promise<void> {
  const yieldIfNeeded = createSlicer()
  for (const item of items) {
    const visited = visit(item)
    if (visited !== undefined) await visited
    const pause = yieldIfNeeded()
    if (pause !== undefined) await pause
  }
}

/** Does sliced work that is written as a generator: it may pause at each `yield`. */
export async function inSlices<T> (work: Generator<undefined, T>): Promise<T> {
  const yieldIfNeeded = createSlicer()
  for (;;) {
    const pause = yieldIfNeeded()
    if (pause !== undefined) await pause
    const { done, value } = work.next()
    if (done === true) return value
  }
}

/** Does the same work without a pause. */
export function atOnce<T> (work: Generator<undefined, T>): T {
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value
  }
}

/** Lets one job pass in each turn of the event loop, in the order in which they come. */
export function createTurnstile (): () => Promise<void> {
  const enter = createQueue()
  return () => enter(async () => { await nextTurn() })
}
