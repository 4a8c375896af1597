import { appendFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import autocannon from 'autocannon'
import type { LongRun } from '../scripts/long-run.ts'
import { idle, makeSkills, type Server, skillText, startSkillserve, watching } from './servers.ts'
import { type Row, rowOf } from './table.ts'

const MANY = 10_000
const FEW = 100
const ROUNDS = 3
const REWRITTEN = 1_000
/** Skills rewritten before this process, which makes the load too, does something else. */
const AT_A_STRETCH = 5
const CHANGES = 40
const STREAM_MS = 500

const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
/** One request for each kind of answer. */
const REQUESTS: ReadonlyArray<readonly [path: string, body?: object]> = [
  ['/skills'], ['/skills/NAME'], ['/skills/NAME/files'], ['/skills/NAME/files/file-0.md'], ['/skills/NAME/archive.zip'],
  ['/catalog'], ['/catalog?q=measured'], ['/catalog/NAME'], ['/events'], ['/openapi.json'], ['/docs/'], ['/'],
  ['/ui/skills/NAME'], ['/agent/prompt'], ['/agent/tools'], ['/.well-known/agent-skills/index.json'], ['/nothing/here'],
  ['/agent/tool-call', { function: { name: 'Skill', arguments: { skill_name: 'NAME' } } }],
  ['/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }]
]

/** Start, memory, stalls and changes with many skills, all watched. */
export async function measureScale (run: LongRun, folder: string): Promise<Row[]> {
  const [many, few] = [join(folder, 'many'), join(folder, 'few')]
  run.part(`${MANY} skills of 10 files are written`)
  const names = await makeSkills(many, MANY, 9)
  await makeSkills(few, FEW, 9)
  const starts = [await measureStart(run, few, FEW, 1), await measureStart(run, many, MANY, 3)]
  run.part(`${MANY} skills are watched`)
  const big = await startSkillserve(run, [many], { log: `${many}.log`, stalls: true })
  const small = await startSkillserve(run, [few], { log: `${few}.log`, stalls: true })
  await watching(big)
  await watching(small)
  const memory = [
    rowOf({ what: 'RSS at 10,000 skills × 10 files, watching', values: [big.rss()], atMost: 500, unit: ' MB' }),
    rowOf({ what: 'RSS at 100 skills, watching', values: [small.rss()], atMost: 160, unit: ' MB' })
  ]
  const stalls: number[] = []
  const ratios: number[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    run.part(`${REWRITTEN} skills are rewritten under load, and single ones, round ${round} of ${ROUNDS}`)
    stalls.push(await stallOfRewrite(big, many, names, round))
    ratios.push(await costOfChanges(big, many, names, round) / await costOfChanges(small, few, names, round))
  }
  await big.stop()
  await small.stop()
  return [
    ...starts,
    ...memory,
    rowOf({ what: 'longest stall while 1,000 skills are rewritten', values: stalls, atMost: 500, unit: ' ms' }),
    rowOf({ what: 'one changed skill among 10,000, against among 100', values: ratios, atMost: 2 })
  ]
}

/** From the command to the first correct list. */
async function measureStart (run: LongRun, root: string, count: number, atMost: number): Promise<Row> {
  const values: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const begun = performance.now()
    const server = await startSkillserve(run, [root], { log: `${root}.log` })
    const { skills } = await (await fetch(`${server.url}/skills`)).json() as { readonly skills: readonly string[] }
    values.push((performance.now() - begun) / 1_000)
    await server.stop()
    if (skills.length !== count) throw new Error(`${skills.length} skills are listed`)
  }
  return rowOf({ what: `start to the first correct GET /skills, ${count} skills`, values, atMost, unit: ' s' })
}

async function stallOfRewrite (server: Server, root: string, names: readonly string[], round: number): Promise<number> {
  await server.stall()
  const load = autocannon({ url: `${server.url}/skills/${names.at(-1)}`, connections: 32, duration: 5 })
  for (const [index, name] of names.slice(0, REWRITTEN).entries()) {
    const file = join(root, name, 'SKILL.md')
    writeFileSync(`${file}.new`, skillText(name, `for the ${round}. time`))
    renameSync(`${file}.new`, file)
    if (index % AT_A_STRETCH === 0) await nextTurn()
  }
  await load
  return await server.stall()
}

/** CPU time of one change, watcher and index together, in milliseconds. */
async function costOfChanges (server: Server, root: string, names: readonly string[], round: number): Promise<number> {
  const generation = async () =>
    (await (await fetch(`${server.url}/readyz`)).json() as { readonly generation: number }).generation
  await idle(server)
  const before = server.cpu()
  for (const name of names.slice(0, CHANGES)) {
    const old = await generation()
    appendFileSync(join(root, name, 'SKILL.md'), `changed ${round}\n`)
    while (await generation() === old) await sleep(10)
  }
  return (server.cpu() - before) / CHANGES
}

/** The first request to each kind of route, each in a new process. */
export async function measureFirst (run: LongRun, folder: string): Promise<Row[]> {
  const root = join(folder, 'first')
  const [name = ''] = await makeSkills(root, FEW, 2)
  const stalls: Array<readonly [path: string, milliseconds: number]> = []
  for (const [path, body] of REQUESTS) {
    run.part(`first request of ${path}`)
    const server = await startSkillserve(run, [root], { log: join(folder, 'first.log'), stalls: true })
    await watching(server)
    await server.stall()
    const text = JSON.stringify(body)?.replaceAll('NAME', name)
    const response = await fetch(server.url + path.replace('NAME', name), {
      ...text !== undefined && { method: 'POST', headers: HEADERS, body: text },
      ...path === '/events' && { signal: AbortSignal.timeout(STREAM_MS) }
    })
    await response.arrayBuffer().catch((error: unknown) => { if (path !== '/events') throw error })
    stalls.push([path, await server.stall()])
    await server.stop()
  }
  const slowest = stalls.toSorted((a, b) => b[1] - a[1]).slice(0, 4)
  const note = slowest.map(([path, milliseconds]) => `${path} ${milliseconds.toFixed(0)}`).join(', ')
  const what = 'longest stall of the first request to any route'
  return [rowOf({ what, values: [slowest[0]?.[1] ?? NaN], atMost: 250, unit: ' ms', note })]
}
