/**
 * What a source costs: a push that changes one file among many skills, and a question to a skill against the same in a folder.
 *
 *   node --import tsx bench/sources.ts [SKILLS]
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createSkillManager, type SkillManager } from '../src/core/skill-manager.ts'
import { parseAddress } from '../src/sources/address/address.ts'
import { createSources } from '../src/sources/sources.ts'

const QUESTIONS = 20_000
const ROUNDS = 7
const PUSHES = 9
const OLD_ENOUGH_MS = 5_000

const count = Number(process.argv[2] ?? 10_000)
const folder = mkdtempSync(join(tmpdir(), 'skillserve-sources-'))
const repository = join(folder, 'repo')
const git = (...args: string[]): void => { execFileSync('git', ['-C', repository, '-c', 'user.name=a', '-c', 'user.email=a@example.org', ...args], { stdio: 'ignore' }) }

function write (index: number, text: string): void {
  const name = `skill-${index}`
  mkdirSync(join(repository, 'skills', name), { recursive: true })
  writeFileSync(join(repository, 'skills', name, 'SKILL.md'), `---\nname: ${name}\ndescription: Number ${index}\n---\n${text}\n`)
  writeFileSync(join(repository, 'skills', name, 'data.txt'), `${index}\n`)
}

function commit (): void {
  git('add', '-A')
  git('commit', '-q', '-m', 'change')
}

async function cpuOf (work: () => Promise<void>): Promise<{ wall: number, cpu: number }> {
  const start = performance.now()
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return { wall: Math.round(performance.now() - start), cpu: Math.round((user + system) / 1_000) }
}

/** CPU time of the ended processes of git, in milliseconds. */
function gitTime (): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[13]) + Number(fields[14])) * 10
}

/** Microseconds of CPU for one question, each in a poll phase of its own. */
async function perQuestion (skills: SkillManager): Promise<number> {
  const { cpu } = await cpuOf(async () => {
    for (let question = 0; question < QUESTIONS; question++) {
      skills.beginRequest({})
      await skills.readMainFile(`skill-${question % 50}`, 'SKILL.md')
    }
  })
  return cpu * 1_000 / QUESTIONS
}

function median (values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
}

mkdirSync(repository)
git('init', '-q', '-b', 'main')
for (let index = 0; index < count; index++) write(index, 'First.')
commit()
const sources = await createSources({ sources: [parseAddress(`git+file://${repository}`)], stateDir: join(folder, 'state'), env: process.env })
console.log('first fetch, ms', await cpuOf(() => sources.sync()))
const skills = createSkillManager({ projectRoots: sources.roots })
await skills.initialize()
const changes: number[] = []
skills.subscribe(({ added, changed, removed }) => { changes.push(added.length + changed.length + removed.length) })
const pushes: Array<{ readonly wall: number, readonly cpu: number, readonly git: number }> = []
for (let push = 0; push < PUSHES; push++) {
  write(7, `Push ${push}.`)
  commit()
  const before = gitTime()
  const cost = await cpuOf(async () => {
    await sources.sync()
    if ((await skills.readMainFile('skill-7', 'SKILL.md')).utf8?.includes(`Push ${push}.`) !== true) throw new Error('the push is not served')
  })
  pushes.push({ ...cost, git: gitTime() - before })
}
console.log(`push of one file, median of ${PUSHES}, ms until it is served: wall ${median(pushes.map(({ wall }) => wall))}, CPU ${median(pushes.map(({ cpu }) => cpu))}, CPU of git ${median(pushes.map(({ git }) => git))}`)
console.log('nothing new, ms', await cpuOf(() => sources.sync()), 'skills changed', changes.join())
const plain = createSkillManager({ projectRoots: [join(repository, 'skills')] })
await plain.initialize()
// What was written a moment ago is read at each question, wherever it lies.
await pause(OLD_ENOUGH_MS)
const rounds: Array<{ readonly source: number, readonly folder: number }> = []
for (let round = 0; round < ROUNDS; round++) rounds.push({ source: await perQuestion(skills), folder: await perQuestion(plain) })
const [source, folder_] = [median(rounds.map(({ source }) => source)), median(rounds.map(({ folder }) => folder))]
console.log(`one document, µs of CPU: source ${source.toFixed(2)}, folder ${folder_.toFixed(2)}, source against folder ${(source / folder_).toFixed(2)}`)
await skills.close()
await plain.close()
await sources.close()
rmSync(folder, { recursive: true })
