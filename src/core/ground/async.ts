import { setImmediate as nextTurn } from 'node:timers/promises'
import { SLICE_MS } from './limits.ts'

/** A value, or a promise of it: local disks answer at once, network disks later. Always `await` it. */
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

/** Makes a queue: a job that is put into it begins when all before it have ended, one way or the other. */
export function createQueue (): Queue {
  let last: Promise<unknown> = Promise.resolve()
  return (job) => {
    const result = last.then(job)
    last = result.catch(() => {})
    return result
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

/**
 * Cuts long work in slices: call it between two pieces, and every few milliseconds everybody else gets a turn. All sliced
 * work shares the slice of a turn: a hundred jobs at the same time make no turn a hundred times as long.
 */
export function createSlicer (sliceMs = SLICE_MS): () => Promise<void> | undefined {
  startTurn()
  return () => performance.now() - startTurn() < sliceMs ? undefined : nextTurn()
}

/** Lets one job pass in each turn of the event loop, in the order in which they come. */
export function createTurnstile (): () => Promise<void> {
  const enter = createQueue()
  return () => enter(async () => { await nextTurn() })
}

/** `then` without a detour: what is there already is used at once, in the same turn. */
export function whenReady<T, R> (value: Awaitable<T>, use: (value: T) => Awaitable<R>): Awaitable<R> {
  return value instanceof Promise ? value.then(use) : use(value)
}

/** `catch` without a detour: takes a failure, whether it is thrown at once or a promise rejects. */
export function orElse<T> (attempt: () => Awaitable<T>, recover: (error: unknown) => Awaitable<T>): Awaitable<T> {
  try {
    const value = attempt()
    return value instanceof Promise ? value.catch(recover) : value
  } catch (error) {
    return recover(error)
  }
}

/** So many tests in a row take less than a slice, each of them a call to a local disk. */
const MAX_TESTS_AT_ONCE = 64

/** Whether a test holds for all items, asked one after the other. The answer comes at once where the tests answer at once and are few, else in slices. */
export function holdsForAll<T> (items: Iterable<T>, test: (item: T) => Awaitable<boolean>): Awaitable<boolean> {
  const rest = items[Symbol.iterator]()
  for (let count = 0; count < MAX_TESTS_AT_ONCE; count++) {
    const next = rest.next()
    if (next.done === true) return true
    const holds = test(next.value)
    if (holds instanceof Promise) return holds.then((isTrue) => isTrue && testRest())
    if (!holds) return false
  }
  return testRest()

  async function testRest (): Promise<boolean> {
    const yieldIfNeeded = createSlicer()
    for (let next = rest.next(); next.done !== true; next = rest.next()) {
      const holds = test(next.value)
      if (!(holds instanceof Promise ? await holds : holds)) return false
      await yieldIfNeeded()
    }
    return true
  }
}
