/**
 * Measures what a second replica is worth: `npm run build && node --import tsx bench/replicas.ts`. On one machine with two cores the
 * load takes its share of both. The figure is requests per second of CPU time of the replicas: two on two cores against one.
 */

import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { type ServiceProcess, startProcess } from '../test/helper/process.ts'

const SKILLS = fileURLToPath(new URL('../skills', import.meta.url))
const MILLISECONDS = 4_000
const CONNECTIONS = 16
const TICKS_A_SECOND = 100

/** CPU time of a process so far, in seconds. */
function cpuOf ({ pid }: ServiceProcess): number {
  const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
  const fields = rest.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND
}

/** Answers in turn from each replica until the time is over. */
async function load (replicas: readonly ServiceProcess[]): Promise<number> {
  const agent = new Agent({ keepAlive: true })
  const end = performance.now() + MILLISECONDS
  let answered = 0
  const ask = ({ port }: ServiceProcess) => new Promise<void>((resolve, reject) => {
    request({ host: '127.0.0.1', port, path: '/skills/calculator', agent }, (response) => {
      response.resume().once('end', resolve)
      if (response.statusCode !== 200) reject(new Error(String(response.statusCode)))
    }).once('error', reject).end()
  })
  await Promise.all(Array.from({ length: CONNECTIONS }, async (_, client) => {
    for (let count = client; performance.now() < end; count++) {
      const replica = replicas[count % replicas.length]
      if (replica !== undefined) await ask(replica)
      answered++
    }
  }))
  agent.destroy()
  return answered
}

const ends: Array<() => void> = []
try {
  const replicas = await Promise.all([0, 1].map(() => startProcess({ teardown: (end) => { ends.push(end) } }, { args: [SKILLS] })))
  await load(replicas)
  /** Requests that the busiest replica has CPU time for within a second: with a core for each, they all work at once. */
  const rates: number[] = []
  for (const some of [replicas.slice(0, 1), replicas]) {
    const before = some.map(cpuOf)
    const answered = await load(some)
    const busiest = Math.max(...some.map((replica, index) => cpuOf(replica) - (before[index] ?? 0)))
    rates.push(answered / busiest)
    console.log(`${some.length} replicas: ${answered} answers, ${Math.round(answered / busiest)} a second of CPU time of the busiest`)
  }
  const [one = 1, two = 0] = rates
  console.log(`two against one: ${(two / one).toFixed(2)} (at least 1.6)`)
} finally {
  for (const end of ends) end()
}
