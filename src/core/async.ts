import { setImmediate as nextTurn } from 'node:timers/promises'
import { SLICE_MS } from './limits.ts'

/**
 * Makes a job that never runs twice at the same time. A call while it runs gets the next run, which begins after the
 * call: whoever asks is answered by a run that can have seen what they saw. However many ask, one more run serves all.
 */
export function coalesce (job: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let queued: Promise<void> | undefined
  return async function run (): Promise<void> {
    if (running === undefined) {
      running = job().finally(() => { running = undefined })
      return await running
    }
    queued ??= running.then(again, again)
    return await queued
  }

  async function again (): Promise<void> {
    queued = undefined
    running = job().finally(() => { running = undefined })
    return await running
  }
}

/** Cuts long work in slices: call it between two pieces, and every few milliseconds everybody else gets a turn. */
export function createSlicer (sliceMs = SLICE_MS): () => Promise<void> | undefined {
  let start = performance.now()
  return () => {
    if (performance.now() - start < sliceMs) return undefined
    return nextTurn().then(() => { start = performance.now() })
  }
}
