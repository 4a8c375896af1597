import { join } from 'node:path'
import type { Bench } from './bench.ts'
import { percentile } from './load.ts'
import { measurePages } from './pages.ts'
import { startSkillserve, type Server } from './process.ts'
import { makeSearchedSkills } from './searched-skills.ts'
import { type Row, spread } from './table.ts'

const SKILLS = 10_000
const QUERIES = 1_000
/** Queries before that: V8 compiles, and the skills are read for the revision of the catalog. */
const WARM_UP = 100
const TARGET_MS = 25

/** The rows about search: a server with its index built, asked one query after another. */
export async function measureSearch (bench: Bench): Promise<Row[]> {
  const { run, folder } = bench
  run.part(`search: writing ${SKILLS} skills`)
  const root = join(folder, 'searched')
  const queries = await makeSearchedSkills(root, SKILLS, WARM_UP + QUERIES)
  const server = await startSkillserve(run, [root], { log: join(folder, 'search.log'), stalls: true })
  try {
    while (!(await fetch(`${server.url}/readyz`)).ok) await new Promise((resolve) => setTimeout(resolve, 100))
    const before = server.rss()
    await server.stall()
    run.part('search: the index')
    const first = await timeOf(server, 'first')
    const start = performance.now()
    while (await isIncomplete(server)) await new Promise((resolve) => setTimeout(resolve, 100))
    const whole = first + performance.now() - start
    const stall = await server.stall()
    const memory = server.rss() - before
    const times: number[] = []
    run.part(`search: ${QUERIES} queries`, () => `${times.length} of ${QUERIES}`)
    for (const query of queries) times.push(await timeOf(server, query))
    const slowestOfFirst = Math.max(...times.splice(0, WARM_UP))
    const p99 = percentile(times, 0.99)
    return [
      {
        what: 'search p99 among 10,000 skills',
        against: '–',
        target: `≤ ${TARGET_MS} ms`,
        measured: `${p99.toFixed(1)} ms (${spread(times, 1)})`,
        note: `over HTTP, one entry, after ${WARM_UP} others of at most ${slowestOfFirst.toFixed(0)} ms; the first one ${(first / 1_000).toFixed(1)} s, the index with all bodies after ${(whole / 1_000).toFixed(1)} s, stalls of ${stall.own.toFixed(0)} ms at most`,
        pass: p99 <= TARGET_MS
      },
      {
        what: 'memory of the search index',
        against: 'RSS before the first search',
        target: '–',
        measured: `${Math.round(memory / 1_048_576)} MB`,
        note: '10,000 main files of 2 to 8 KiB, what is left of the work of building included',
        pass: undefined
      },
      ...await measurePages(bench, server, queries)
    ]
  } finally {
    await server.stop()
  }
}

async function isIncomplete (server: Server): Promise<boolean> {
  const { incomplete = false } = await (await fetch(`${server.url}/catalog?limit=1&q=first`)).json() as { incomplete?: boolean }
  return incomplete
}

async function timeOf (server: Server, query: string): Promise<number> {
  const start = performance.now()
  const response = await fetch(`${server.url}/catalog?limit=1&q=${encodeURIComponent(query)}`)
  await response.arrayBuffer()
  if (!response.ok) throw new Error(`${response.status} for ${query}`)
  return performance.now() - start
}
