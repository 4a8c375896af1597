import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Test } from 'tap'

/** Time of `plainWork` on the idle machine on which the limits were chosen, in milliseconds. */
const PLAIN_WORK_MS = 4.2
/** How long, and how often at least, a limit is tried before it counts as missed. */
const PATIENCE_MS = 20_000
const MIN_TRIES = 10

const TEXT = 'The quick brown fox jumps over the lazy dog. '.repeat(2_000)

/**
 * Asserts that `run` is done within `limit` milliseconds, on a machine that has other things to do. It is tried again
 * as long as it is late. What it waits for counts, but not that other processes have all cores. A slow machine gets
 * more time, by as much as it is slower at plain work.
 * @returns what the last try gave
 */
export async function checkTime<T> (t: Test, limit: number, run: () => T, what = 'in time'): Promise<Awaited<T>> {
  // `npm run test:unit` measures nothing: it runs on machines of every kind.
  if (process.env['UNTIMED'] !== undefined) return await run()
  const { value, took, allowed } = await timeWithin(limit, run)
  t.ok(took < allowed, `${what}: ${took.toFixed(1)} ms of ${allowed.toFixed(0)} ms`)
  return value
}

/** Returns the best time of several tries, and the limit for this machine, in milliseconds. */
export async function timeWithin<T> (
  limit: number, run: () => T
): Promise<{ readonly value: Awaited<T>, readonly took: number, readonly allowed: number }> {
  const begun = performance.now()
  let { value, took } = await timeOf(run)
  let allowed = limit
  const isPatient = (tries: number): boolean => tries < MIN_TRIES || performance.now() - begun < PATIENCE_MS
  for (let tries = 1; took >= allowed && isPatient(tries); tries++) {
    const again = await timeOf(run)
    value = again.value
    took = Math.min(took, again.took)
    allowed = limit * await slowness()
  }
  return { value, took, allowed }
}

/** Returns the wall clock time of one run, without the time that this thread has waited for a core. */
export async function timeOf<T> (run: () => T): Promise<{ readonly value: Awaited<T>, readonly took: number }> {
  const wall = performance.now()
  const waited = waitedForCore()
  const value = await run()
  return { value, took: performance.now() - wall - (waitedForCore() - waited) }
}

/** Time that this thread has waited for a core since its start, in milliseconds; 0 where the system does not say. */
function waitedForCore (): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'latin1').split(' ')[1]) / 1_000_000
  } catch {
    return 0
  }
}

let plainMs = Infinity

/**
 * Returns by how much this machine is slower at plain work, at its best since the start, times the threads that share
 * one core now: threads that read files wait for a core too.
 */
export async function slowness (): Promise<number> {
  plainMs = Math.min(plainMs, (await timeOf(plainWork)).took)
  return Math.max(1, plainMs / PLAIN_WORK_MS) * Math.max(1, runningThreads() / availableParallelism())
}

/** Threads of the whole machine that run or wait for a core; 0 where the system does not say. */
function runningThreads (): number {
  try {
    return Number(/(\d+)\/\d+/.exec(readFileSync('/proc/loadavg', 'latin1'))?.[1] ?? 0)
  } catch {
    return 0
  }
}

/** The work of the service in small: objects, text and a hash. */
function plainWork (): void {
  const counts = new Map<string, number>()
  const words = TEXT.split(' ')
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  createHash('sha256').update(TEXT.repeat(10)).digest('hex')
  JSON.parse(JSON.stringify(words))
}

/** Pause between two checks of the stopwatch, in milliseconds. */
const STOPWATCH_STEP_MS = 50

/**
 * Starts to count milliseconds; the returned function says how many there were. A pause of the whole machine, or of
 * this process, counts as one step: whatever is waited for has made no progress in it either.
 */
export function startStopwatch (): () => number {
  let counted = 0
  let last = performance.now()
  const count = (): void => {
    const now = performance.now()
    counted += Math.min(now - last, STOPWATCH_STEP_MS)
    last = now
  }
  const timer = setInterval(count, STOPWATCH_STEP_MS).unref()
  return () => {
    clearInterval(timer)
    count()
    return counted
  }
}

setFlagsFromString('--expose-gc')

/** Collects all garbage of the process. */
const collectGarbage = runInNewContext('gc') as () => void

/** Returns the heap that each of many kept values takes, in bytes. */
export function heapOfEach<T> (count: number, make: (index: number) => T): number {
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  const kept = Array.from({ length: count }, (_, index) => make(index))
  collectGarbage()
  return (process.memoryUsage().heapUsed - before) / kept.length
}

/** Bytes of heap, and of buffers outside of it, that are in use. */
export function usedMemory (): number {
  collectGarbage()
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
