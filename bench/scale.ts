import { spawnSync } from 'node:child_process'
import { appendFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { grouped } from '../src/core/shared/text.ts'
import type { Bench } from './bench.ts'
import { makeSkills, skillText } from './fixtures.ts'
import { load } from './load.ts'
import { MAIN, startSkillserve, type Server, type Stall } from './process.ts'
import { generationOf, watching } from './readiness.ts'
import { median, spread, type Row } from './table.ts'

const MANY = 10_000
const FEW = 100
/** Files of each skill beside its main file. */
const FILES = 9
const START_ROUNDS = 5

const REWRITTEN = 1_000
const REWRITE_ROUNDS = 3
const QUIET_MS = 3_000
const BUSY_MS = 5_000
/** Head start of the load, in milliseconds. */
const BEGUN_MS = 500
/** Skills rewritten before the event loop runs: this process also generates the load. */
const AT_A_STRETCH = 5

const CHANGE_ROUNDS = 5
const CHANGES = 40
const POLL_MS = 10

/** The reference: lists the folder, and reads every main file. */
const BARE_READ = `
const fs = require('node:fs'), start = performance.now(), root = process.argv[1]
for (const name of fs.readdirSync(root)) fs.readFileSync(root + '/' + name + '/SKILL.md')
console.log(performance.now() - start)`

/** Measures start, memory, stalls and changes with many skills. */
export async function measureScale (bench: Bench): Promise<Row[]> {
  const { run, cores, folder } = bench
  const many = join(folder, 'many')
  const few = join(folder, 'few')
  run.part(`writing ${MANY} skills of ${FILES + 1} files`)
  const names = await makeSkills(many, MANY, FILES, { linked: true })
  await makeSkills(few, FEW, FILES)
  const rows = [await measureStart(bench, many), measureValidate(bench, many)]
  run.part(`waiting until ${MANY} skills are watched`)
  const options = { wrap: cores.besideLoad, stalls: true }
  const big = await startSkillserve(run, [many], { ...options, log: join(folder, 'many.log') })
  const small = await startSkillserve(run, [few], { ...options, log: join(folder, 'few.log') })
  await watching(big)
  await watching(small)
  rows.push(memoryRow(big), ...await measureRewrite(bench, big, many, names), await measureChange(bench, { big, many, small, few }))
  await big.stop()
  await small.stop()
  return rows
}

async function measureStart ({ run, cores, folder }: Bench, root: string): Promise<Row> {
  const ratios: number[] = []
  const times: number[] = []
  const [file = '', ...args] = cores.onAll([process.execPath, '-e', BARE_READ, root])
  for (let round = 0; round < START_ROUNDS; round++) {
    run.part(`start with ${MANY} skills, round ${round + 1} of ${START_ROUNDS}`)
    const bare = Number(spawnSync(file, args, { encoding: 'utf8' }).stdout)
    const start = performance.now()
    const server = await startSkillserve(run, [root], { log: join(folder, 'start.log'), wrap: cores.onAll })
    const { skills } = await (await fetch(`${server.url}/skills`)).json() as { readonly skills: readonly string[] }
    const time = performance.now() - start
    await server.stop()
    if (skills.length !== MANY) throw new Error(`${skills.length} skills listed`)
    ratios.push(time / bare)
    times.push(time)
  }
  return {
    what: 'start to first correct GET /skills, 10,000 skills',
    against: 'readdir + read of the same files',
    target: '≤ 4',
    measured: `${median(ratios).toFixed(2)} (${spread(ratios)})`,
    note: `${Math.round(median(times))} ms, the start of Node included`,
    pass: median(ratios) <= 4
  }
}

function measureValidate ({ run, cores }: Bench, root: string): Row {
  run.part(`validate with ${MANY} skills`)
  const [file = '', ...args] = cores.onAll([process.execPath, MAIN, 'validate', '--target', 'all', root])
  const start = performance.now()
  const { stdout } = spawnSync(file, args, { encoding: 'utf8', maxBuffer: 64 * 1_048_576 })
  const wall = performance.now() - start
  if (!stdout.includes(`${grouped(MANY)} skills: no findings;`)) throw new Error(stdout.slice(-200))
  return {
    what: `\`validate --target all\`, 10,000 skills × ${FILES + 1} files`,
    against: '–',
    target: '≤ 10 s',
    measured: `${(wall / 1_000).toFixed(1)} s`,
    note: 'the start of Node included',
    pass: wall <= 10_000
  }
}

function memoryRow (server: Server): Row {
  const megabytes = server.rss() / 1_048_576
  return {
    what: 'RSS at 10,000 skills × 10 files, watching',
    against: '–',
    target: '≤ 250 MB',
    measured: `${Math.round(megabytes)} MB`,
    note: 'after the first index, every watch in place',
    pass: megabytes <= 250
  }
}

/** Rewrites 1,000 skills, one after another, while clients read. */
async function measureRewrite ({ run }: Bench, server: Server, root: string, names: readonly string[]): Promise<Row[]> {
  const request = { url: `${server.url}/skills/${names.at(-1)}` }
  await load(request, { milliseconds: 1_000 })
  const stalls: Stall[] = []
  const quietTimes: number[] = []
  const ratios: number[] = []
  for (let round = 0; round < REWRITE_ROUNDS; round++) {
    run.part(`${REWRITTEN} skills rewritten under load, round ${round + 1} of ${REWRITE_ROUNDS}`)
    const quiet = await load(request, { milliseconds: QUIET_MS })
    await server.stall()
    const loaded = load(request, { milliseconds: BUSY_MS })
    await sleep(BEGUN_MS)
    for (const [index, name] of names.slice(0, REWRITTEN).entries()) {
      const file = join(root, name, 'SKILL.md')
      writeFileSync(`${file}.new`, skillText(name, 4096, `for the ${round + 1}. time`))
      renameSync(`${file}.new`, file)
      if (index % AT_A_STRETCH === 0) await nextTurn()
    }
    const busy = await loaded
    stalls.push(await server.stall())
    quietTimes.push(quiet.p99)
    ratios.push(busy.p99 / quiet.p99)
  }
  const own = stalls.map((stall) => stall.own)
  return [
    {
      what: 'longest event-loop stall while 1,000 skills are rewritten under load',
      against: '–',
      target: '≤ 50 ms',
      measured: `${median(own).toFixed(0)} ms (${spread(own, 0)})`,
      note: `${median(stalls.map(({ cpu }) => cpu)).toFixed(0)} ms of it CPU time; ${median(stalls.map(({ wall }) => wall)).toFixed(0)} ms by the clock, waiting for a core included`,
      pass: median(own) <= 50
    },
    {
      what: 'p99 of GET /skills/:name during that',
      against: 'its quiet p99',
      target: '≤ 5',
      measured: `${median(ratios).toFixed(2)} (${spread(ratios)})`,
      note: `quiet ${median(quietTimes).toFixed(1)} ms`,
      pass: median(ratios) <= 5
    }
  ]
}

interface Changed {
  readonly big: Server
  readonly many: string
  readonly small: Server
  readonly few: string
}

/** Measures the CPU time of single changes, watcher and index together. */
async function measureChange ({ run }: Bench, { big, many, small, few }: Changed): Promise<Row> {
  const ratios: number[] = []
  const costs: number[] = []
  for (let round = 0; round < CHANGE_ROUNDS; round++) {
    run.part(`single changes, round ${round + 1} of ${CHANGE_ROUNDS}`)
    const mine = await costOfChanges(big, many, round)
    const theirs = await costOfChanges(small, few, round)
    ratios.push(mine / theirs)
    costs.push(mine / CHANGES)
  }
  return {
    what: 'cost of one changed skill among 10,000',
    against: 'among 100',
    target: '≤ 2',
    measured: `${median(ratios).toFixed(2)} (${spread(ratios)})`,
    note: `${median(costs).toFixed(1)} ms of CPU time each`,
    pass: median(ratios) <= 2
  }
}

async function costOfChanges (server: Server, root: string, round: number): Promise<number> {
  const before = server.cpu()
  for (let i = 0; i < CHANGES; i++) {
    const name = `skill-${String(i).padStart(5, '0')}`
    const generation = await generationOf(server)
    appendFileSync(join(root, name, 'SKILL.md'), `changed ${round}\n`)
    while (await generationOf(server) === generation) await sleep(POLL_MS)
  }
  return server.cpu() - before
}
