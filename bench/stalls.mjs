// Preloaded into a server. Answers each message with the longest stall of the event loop since the previous message, in milliseconds.
// `wall` is wall-clock time. `own` excludes the time in which other threads had the core, and decides which stall is the longest.
// `cpu` is CPU time; the difference between `own` and `cpu` is time spent waiting for the disk.
import { openSync, readSync } from 'node:fs'
import { performance } from 'node:perf_hooks'

const INTERVAL_MS = 2

const buffer = Buffer.alloc(64)
const schedstat = openSync('/proc/self/schedstat', 'r')

/** Of the main thread, in milliseconds: the time that it had a core, and the time that it waited for one. */
function scheduled () {
  const [ran, waited] = buffer.toString('latin1', 0, readSync(schedstat, buffer, 0, buffer.length, 0)).split(' ')
  return { ran: Number(ran) / 1e6, waited: Number(waited) / 1e6 }
}

const NONE = { own: 0, wall: 0, cpu: 0 }

let begun = performance.now()
let before = scheduled()
let longest = NONE

setInterval(() => {
  const now = performance.now()
  const after = scheduled()
  const wall = now - begun - INTERVAL_MS
  const own = wall - (after.waited - before.waited)
  if (own > longest.own) longest = { own, wall, cpu: after.ran - before.ran }
  begun = now
  before = after
}, INTERVAL_MS).unref()

process.on('message', () => {
  process.send?.(longest)
  longest = NONE
})
process.channel?.unref()
