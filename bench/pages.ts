import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench } from './bench.ts'
import { makeSkills } from './fixtures.ts'
import { percentile } from './load.ts'
import { type Server, startSkillserve } from './process.ts'
import { median, type Row, spread } from './table.ts'

/** As many as a list shows on a page. */
const FEW = 50
const ROUNDS = 200
const WARM_UP = 100

/** What the script of the pages waits after a key, in milliseconds. */
const QUIET_MS = 30

const PAGE = { accept: 'text/html' }

/** Bodies that take a parser long, or make much of little. */
const HOSTILE = {
  quotes: '>'.repeat(50_000),
  images: '!['.repeat(131_000),
  brackets: '['.repeat(262_000),
  rows: `|a|b|\n|-|-|\n${'|1|2|\n'.repeat(170_000)}`,
  hidden: 'a\u200b'.repeat(260_000),
  data: 'aB3dE5gH'.repeat(130_000)
} as const

interface Times {
  /** Of the first byte, and of the whole, in milliseconds. */
  readonly first: number
  readonly whole: number
}

/**
 * Measures the pages for people, by turns with what they are compared with.
 * @param many a server with 10,000 skills whose search index is built
 * @param queries words that are in their texts
 */
export async function measurePages ({ run, folder }: Bench, many: Server, queries: readonly string[]): Promise<Row[]> {
  const root = join(folder, 'pages')
  const [name = ''] = await makeSkills(root, FEW, 2)
  const few = await startSkillserve(run, [root], { log: join(folder, 'pages.log') })
  run.part('pages: the list, and a skill')
  for (let i = 0; i < WARM_UP; i++) for (const { url } of [few, many]) await timeOf(`${url}/`)
  const lists = await byTurns(`${many.url}/`, `${few.url}/`, PAGE)
  const skills = await byTurns(`${few.url}/ui/skills/${name}`, `${few.url}/skills/${name}`, {})
  run.part('pages: search while typing')
  const typed: number[] = []
  for (const query of queries.slice(0, WARM_UP + ROUNDS)) typed.push((await timeOf(`${many.url}/?q=${encodeURIComponent(query.slice(0, 3))}`)).whole + QUIET_MS)
  typed.splice(0, WARM_UP)
  await few.stop()
  const p99 = percentile(typed, 0.99)
  const ratio = median(lists.map(([page, other]) => page.whole / other.whole))
  const firstByte = median(skills.map(([page, other]) => page.first / other.first))
  return [
    {
      what: 'the list of 10,000 skills as a page',
      against: `that of ${FEW}, which is as long`,
      target: '≤ 2',
      measured: ratio.toFixed(2),
      note: `${median(lists.map(([page]) => page.whole)).toFixed(1)} ms and ${median(lists.map(([, other]) => other.whole)).toFixed(1)} ms`,
      pass: ratio <= 2
    },
    {
      what: 'first byte of the page of a skill',
      against: 'GET /skills/:name',
      target: '≤ 3',
      measured: firstByte.toFixed(2),
      note: `${median(skills.map(([page]) => page.first)).toFixed(2)} ms and ${median(skills.map(([, other]) => other.first)).toFixed(2)} ms`,
      pass: firstByte <= 3
    },
    {
      what: 'three letters typed among 10,000 skills, p99',
      against: '–',
      target: '≤ 100 ms',
      measured: `${p99.toFixed(0)} ms (${spread(typed, 0)})`,
      note: `with the ${QUIET_MS} ms that the script waits after a key`,
      pass: p99 <= 100
    },
    await measureHostile({ run, folder })
  ]
}

/** The pages of hostile texts, each asked for the first time, and how long they keep others waiting. */
async function measureHostile ({ run, folder }: Pick<Bench, 'run' | 'folder'>): Promise<Row> {
  const root = join(folder, 'hostile')
  for (const [name, body] of Object.entries(HOSTILE)) {
    mkdirSync(join(root, name), { recursive: true })
    writeFileSync(join(root, name, 'SKILL.md'), `---\nname: ${name}\ndescription: ${name}\n---\n${body}`.slice(0, 1_048_576))
  }
  mkdirSync(join(root, 'plain'))
  writeFileSync(join(root, 'plain/SKILL.md'), '---\nname: plain\ndescription: plain\n---\nText.\n')
  const server = await startSkillserve(run, [root], { log: join(folder, 'hostile.log'), stalls: true })
  run.part('pages: hostile texts')
  // What the first page loads is measured with the first requests.
  await timeOf(`${server.url}/ui/skills/plain`)
  await server.stall()
  const times: Array<readonly [name: string, ms: number, stall: number]> = []
  for (const name of Object.keys(HOSTILE)) {
    const { whole } = await timeOf(`${server.url}/ui/skills/${name}`)
    times.push([name, whole, (await server.stall()).own])
  }
  await server.stop()
  const slowest = Math.max(...times.map(([, ms]) => ms))
  const longest = Math.max(...times.map(([, , stall]) => stall))
  return {
    what: 'pages of hostile texts: the slowest, and the longest stall',
    against: '–',
    target: '≤ 1,000 ms, ≤ 50 ms',
    measured: `${slowest.toFixed(0)} ms, ${longest.toFixed(0)} ms`,
    note: times.map(([name, ms, stall]) => `${name} ${ms.toFixed(0)} (${stall.toFixed(0)})`).join(', '),
    pass: slowest <= 1_000 && longest <= 50
  }
}

async function byTurns (one: string, other: string, headers: Readonly<Record<string, string>>): Promise<ReadonlyArray<readonly [Times, Times]>> {
  const pairs: Array<readonly [Times, Times]> = []
  for (let i = 0; i < ROUNDS + WARM_UP; i++) pairs.push([await timeOf(one), await timeOf(other, headers)])
  return pairs.slice(WARM_UP)
}

async function timeOf (url: string, headers: Readonly<Record<string, string>> = PAGE): Promise<Times> {
  const start = performance.now()
  const response = await fetch(url, { headers })
  const first = performance.now() - start
  await response.arrayBuffer()
  if (!response.ok) throw new Error(`${response.status} from ${url}`)
  return { first, whole: performance.now() - start }
}
