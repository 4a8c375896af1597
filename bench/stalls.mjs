// Loaded before a server that is measured: answers each message with the longest turns of the event loop since the last, in
// milliseconds. `wall` is by the clock; `own` leaves out the time in which the thread could run and another one had the core.
import { openSync, readSync } from 'node:fs'
import { performance } from 'node:perf_hooks'

const INTERVAL_MS = 2

const buffer = Buffer.alloc(64)
const schedstat = openSync('/proc/self/schedstat', 'r')

/** Of the main thread, in milliseconds: the second number of the kernel's `run wait slices`. */
function waited () {
  return Number(buffer.toString('latin1', 0, readSync(schedstat, buffer, 0, buffer.length, 0)).split(' ')[1]) / 1e6
}

let wall = performance.now()
let waiting = waited()
let longest = { wall: 0, own: 0 }

setInterval(() => {
  const now = performance.now()
  const turn = Math.max(0, now - wall - INTERVAL_MS)
  const soFar = waited()
  longest = { wall: Math.max(longest.wall, turn), own: Math.max(longest.own, turn - (soFar - waiting)) }
  wall = now
  waiting = soFar
}, INTERVAL_MS).unref()

process.on('message', () => {
  process.send?.(longest)
  longest = { wall: 0, own: 0 }
})
process.channel?.unref()
