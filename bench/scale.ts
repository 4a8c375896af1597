import { spawnSync } from 'node:child_process'
import { appendFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeSkills, skillText } from './fixtures.ts'
import type { Load } from './load.ts'
import { startSkillserve, type Server } from './process.ts'
import { generationOf, watching } from './readiness.ts'
import { median, spread, type Row } from './table.ts'

const MANY = 10_000
const FEW = 100
const FILES = 9
const REWRITTEN = 1_000
const START_ROUNDS = 5
const CHANGE_ROUNDS = 5
const CHANGES = 40

/** What the plain job costs: list the folder, read every main file. */
const BARE_READ = `
const fs = require('node:fs'), start = performance.now(), root = process.argv[1]
for (const name of fs.readdirSync(root)) fs.readFileSync(root + '/' + name + '/SKILL.md')
console.log(performance.now() - start)`

/** The rows about size: start, memory, changes, stalls. */
export async function measureScale (folder: string, load: Load): Promise<Row[]> {
  const many = join(folder, 'many')
  const few = join(folder, 'few')
  const names = makeSkills(many, MANY, FILES)
  makeSkills(few, FEW, FILES)
  const rows = [await measureStart(folder, many)]
  const big = await startSkillserve(many, join(folder, 'many.log'))
  const small = await startSkillserve(few, join(folder, 'few.log'))
  try {
    await watching(big)
    await watching(small)
    rows.push(memoryRow(big))
    rows.push(...await measureRewrite(big, many, names, load))
    rows.push(await measureChange(big, many, small, few))
  } finally {
    await big.stop()
    await small.stop()
  }
  return rows
}

async function measureStart (folder: string, root: string): Promise<Row> {
  const ratios: number[] = []
  const times: number[] = []
  for (let round = 0; round < START_ROUNDS; round++) {
    const bare = Number(spawnSync(process.execPath, ['-e', BARE_READ, root], { encoding: 'utf8' }).stdout)
    const start = performance.now()
    const server = await startSkillserve(root, join(folder, 'start.log'))
    const { skills } = await (await fetch(`${server.url}/skills`)).json() as { skills: string[] }
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

/** 1,000 skills rewritten, one after another, while clients read. */
async function measureRewrite (server: Server, root: string, names: readonly string[], load: Load): Promise<Row[]> {
  const request = { url: `${server.url}/skills/${names.at(-1)}` }
  await load(request, 1)
  const stalls: number[] = []
  const ratios: number[] = []
  for (let round = 0; round < 3; round++) {
    const quiet = await load(request, 3)
    await server.stall()
    const loaded = load(request, 4)
    await new Promise((resolve) => setTimeout(resolve, 500))
    for (const [index, name] of names.slice(0, REWRITTEN).entries()) {
      const file = join(root, name, 'SKILL.md')
      writeFileSync(`${file}.new`, skillText(name, 4096, `for the ${round + 1}. time`))
      renameSync(`${file}.new`, file)
      if (index % 50 === 49) await new Promise((resolve) => setTimeout(resolve, 20))
    }
    const busy = await loaded
    stalls.push(await server.stall())
    ratios.push(busy.p99 / quiet.p99)
  }
  return [
    {
      what: 'longest event-loop stall while 1,000 skills are rewritten under load',
      against: '–',
      target: '≤ 50 ms',
      measured: `${median(stalls).toFixed(0)} ms (${spread(stalls, 0)})`,
      note: '',
      pass: median(stalls) <= 50
    },
    {
      what: 'p99 of GET /skills/:name during that',
      against: 'its quiet p99',
      target: '≤ 5',
      measured: `${median(ratios).toFixed(2)} (${spread(ratios)})`,
      note: '',
      pass: median(ratios) <= 5
    }
  ]
}

/** CPU time that single changed skills cost the process, watcher and index together. */
async function measureChange (big: Server, many: string, small: Server, few: string): Promise<Row> {
  const ratios: number[] = []
  const costs: number[] = []
  for (let round = 0; round < CHANGE_ROUNDS; round++) {
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
    while (await generationOf(server) === generation) await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return server.cpu() - before
}
