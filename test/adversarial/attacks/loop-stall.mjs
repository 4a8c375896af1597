// Loaded before a service that is attacked: says at each SIGWINCH how long the longest turn of its event loop was since
// the last.
// Of wall clock and CPU time the less: neither is what other processes take work of this one.
import { performance } from 'node:perf_hooks'

const INTERVAL_MS = 2

let wall = performance.now()
let cpu = process.cpuUsage()
let longest = 0

setInterval(() => {
  const now = performance.now()
  const { user, system } = process.cpuUsage(cpu)
  longest = Math.max(longest, Math.min(now - wall, (user + system) / 1_000))
  wall = now
  cpu = process.cpuUsage()
}, INTERVAL_MS).unref()

process.on('SIGWINCH', () => {
  console.log(JSON.stringify({ msg: 'longest turn', ms: Math.round(longest) }))
  longest = 0
})
