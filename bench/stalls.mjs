// Loaded before a server that is measured: answers each message with the longest turn of the event loop since the last, in
// milliseconds. `own` leaves out the time in which the thread could run and another one had the core; by it the longest is chosen.
// `wall` is the same turn by the clock, and `cpu` its CPU time: what `own` has more than that, it waited for the disk.
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
