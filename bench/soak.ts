import { appendFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type LongRun, readCommandLine, readNumber, runLong } from '../scripts/long-run.ts'
import { makeSkills, skillText } from './fixtures.ts'
import { startSkillserve, type Server } from './process.ts'
import { watching } from './readiness.ts'

const USAGE = `
npm run soak -- [--minutes N]

Runs the service for N minutes (default 10) under a mixture of reads, tool calls and edits, and watches its memory and descriptors.
Exits with 1 when the memory grows faster than it may, when descriptors are left over, or when an answer was none.
`

const SKILLS = 500
const FILES = 4
const LARGE_BYTES = 1_000_000
const CLIENTS = 8
const EDIT_EVERY_MS = 20
const SAMPLE_EVERY_MS = 1_000

/** Of the time, in which caches fill and code is compiled: not counted. */
const WARM_UP = 0.3

/** What the least squares of the samples may rise by, in MB a minute: at 50,000 requests a minute, 40 bytes a request. */
const MAX_SLOPE = 2

/** A slope says nothing about less time than this, in minutes; shorter runs are shown, and judged by the rest. */
const MIN_MINUTES = 5

interface Sample {
  readonly minutes: number
  /** Resident memory in MB. */
  readonly rss: number
  readonly descriptors: number
}

const { values } = readCommandLine(USAGE, { options: { minutes: { type: 'string', default: '10' } } } as const)
const minutes = readNumber(values.minutes, '--minutes', (value) => value > 0)

await runLong(async (run) => {
  const folder = run.folder('skillserve-soak')
  const root = join(folder, 'skills')
  const names = await makeSkills(root, SKILLS, FILES)
  for (const name of names.slice(0, 20)) writeFileSync(join(root, name, 'large.bin'), Buffer.alloc(LARGE_BYTES, name))
  const server = await startSkillserve(run, [root], { log: join(folder, 'log') })
  const report = await soak(run, server, root, names)
  await server.stop()
  return judge(run, report)
})

async function soak (run: LongRun, server: Server, root: string, names: readonly string[]) {
  const samples: Sample[] = []
  const counts = { requests: 0, edits: 0, errors: 0 }
  await watching(server)
  const before = countDescriptors(server)
  const start = performance.now()
  const end = start + minutes * 60_000
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
  run.part(`${CLIENTS} clients and an editor over ${SKILLS} skills for ${minutes} min`, () => {
    const { minutes: passed = 0, rss = 0 } = samples.at(-1) ?? {}
    return `${passed.toFixed(1)} min, ${counts.requests} requests, ${counts.edits} edits, ${counts.errors} errors, ${rss.toFixed(0)} MB`
  })

  await Promise.all([...Array.from({ length: CLIENTS }, read), edit(), sample()])
  agent.destroy()
  await sleep(SAMPLE_EVERY_MS)
  return { samples, counts, before, after: countDescriptors(server) }

  async function read (): Promise<void> {
    while (performance.now() < end) {
      const name = pick(names)
      const asked = chooseRequest(name)
      const status = await ask(agent, server.url, asked).catch(() => 0)
      counts.requests++
      // A skill may be away at this moment, and the file of a download change.
      if (status === 0 ? asked.path.endsWith('large.bin') === false : status >= 500) counts.errors++
    }
  }

  async function edit (): Promise<void> {
    for (; performance.now() < end; counts.edits++) {
      const skill = join(root, pick(names))
      const file = join(skill, 'SKILL.md')
      switch (counts.edits % 4) {
        case 0:
          writeFileSync(`${file}.new`, skillText(skill.slice(root.length + 1), 4096, `edit ${counts.edits}`))
          renameSync(`${file}.new`, file)
          break
        case 1:
          appendFileSync(join(skill, 'file-0.md'), 'x')
          break
        case 2:
          renameSync(skill, `${skill}-away`)
          await sleep(1)
          renameSync(`${skill}-away`, skill)
          break
        default:
          writeFileSync(join(skill, `temporary-${counts.edits}`), 'x')
          rmSync(join(skill, `temporary-${counts.edits}`))
      }
      await sleep(EDIT_EVERY_MS)
    }
  }

  async function sample (): Promise<void> {
    while (performance.now() < end) {
      samples.push({ minutes: (performance.now() - start) / 60_000, rss: server.rss() / 1_048_576, descriptors: countDescriptors(server) })
      await sleep(SAMPLE_EVERY_MS)
    }
  }
}

interface Asked {
  readonly path: string
  readonly body?: string
}

function chooseRequest (name: string): Asked {
  const call = (tool: string, args: object) => ({ path: '/agent/tool-call', body: JSON.stringify({ function: { name: tool, arguments: args } }) })
  return pick([
    { path: '/skills' },
    { path: `/skills/${name}` },
    { path: `/skills/${name}/files` },
    { path: `/skills/${name}/files/docs/file-1.md` },
    { path: `/skills/${name}/files/large.bin` },
    { path: '/skills/nobody' },
    call('get_skill', { skill_name: name }),
    call('read_file_in_skill', { skill_name: name, file_path: 'file-0.md' }),
    call('Skill', { skill_name: name }),
    call('Skill', { skill_name: 'nobody' }),
    call('skill', { skill: name })
  ])
}

function ask (agent: Agent, url: string, { path, body }: Asked): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url + path, {
      agent, ...body !== undefined && { method: 'POST', headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) } }
    }, (response) => {
      response.on('error', reject).on('end', () => { resolve(response.statusCode ?? 0) }).resume()
    })
    request.on('error', reject).end(body)
  })
}

function judge (run: LongRun, { samples, counts, before, after }: Awaited<ReturnType<typeof soak>>): boolean {
  const settled = samples.filter((each) => each.minutes >= minutes * WARM_UP)
  const slope = leastSquares(settled.map((each) => [each.minutes, each.rss]))
  const isLong = minutes >= MIN_MINUTES
  run.print(`requests     ${counts.requests}, ${counts.errors} errors, ${counts.edits} edits in ${minutes} min`)
  run.print(`RSS          ${samples[0]?.rss.toFixed(1)} MB at the start, ${settled[0]?.rss.toFixed(1)} MB warm, ${samples.at(-1)?.rss.toFixed(1)} MB at the end, ${Math.max(...samples.map(({ rss }) => rss)).toFixed(1)} MB at most`)
  run.print(`slope        ${slope.toFixed(3)} MB/min after the first ${100 * WARM_UP} %, allowed ${MAX_SLOPE}${isLong ? '' : `; not judged below ${MIN_MINUTES} min`}`)
  run.print(`descriptors  ${before} before, ${Math.max(...samples.map(({ descriptors }) => descriptors))} at most, ${after} after`)
  return counts.errors === 0 && after <= before && !(isLong && slope > MAX_SLOPE)
}

function leastSquares (points: ReadonlyArray<readonly [x: number, y: number]>): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const x = mean(points.map((point) => point[0]))
  const y = mean(points.map((point) => point[1]))
  return points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0) / points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0)
}

function countDescriptors ({ pid }: Server): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

function pick<T> (values: readonly T[]): T {
  const value = values[Math.floor(Math.random() * values.length)]
  if (value === undefined) throw new RangeError('nothing to pick from')
  return value
}
