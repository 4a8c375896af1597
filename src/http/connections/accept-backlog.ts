import type { Server } from 'node:net'
import { setImmediate as nextIteration } from 'node:timers/promises'

/** Longest time that connections in the backlog are accepted before the port is closed, in milliseconds. */
const ACCEPT_MS = 1_000

/** Iterations of the event loop without a new connection; in the one after the last connection its request is read. */
const QUIET_ITERATIONS = 3

/**
 * Returns when all requests that have arrived by now are read. On a busy machine many connections wait in the backlog, and
 * the event loop accepts few of them in one iteration. Closing the port would reset the others.
 */
export async function readBacklog (server: Server): Promise<void> {
  let isQuiet = false
  const onConnection = () => { isQuiet = false }
  server.on('connection', onConnection)
  const deadline = performance.now() + ACCEPT_MS
  for (let quiet = 0; quiet < QUIET_ITERATIONS && performance.now() < deadline;) {
    isQuiet = true
    await nextIteration()
    quiet = isQuiet ? quiet + 1 : 0
  }
  server.off('connection', onConnection)
}
