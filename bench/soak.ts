/**
 * Reads, calls tools and edits for a while, and looks at the memory of the service meanwhile.
 *
 *   npm run soak -- [--minutes N]
 *
 * Exits with 1 when a request failed, or the memory grew faster than MAX_SLOPE after the warm-up.
 */
import { mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { makeSkills, skillText } from './fixtures.ts'
import { startSkillserve } from './process.ts'

const SKILLS = 1_000
const FILES = 4
const CLIENTS = 8
const SAMPLE_MS = 5_000
/** Edits per second: each gives a skill new content. */
const EDITS = 20
/** The part of the time that counts as warm-up. */
const WARM_UP = 0.25
/** In MB per minute. A leak of 1 KiB per hundred requests would be ten times this. */
const MAX_SLOPE = 1
const MB = 1_048_576

interface Sample {
  readonly minutes: number
  readonly megabytes: number
  readonly descriptors: number
}

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' } } })
const minutes = Number(values.minutes)
const folder = mkdtempSync(join(tmpdir(), 'skillserve-soak-'))
const root = join(folder, 'skills')
const names = makeSkills(root, SKILLS, FILES)
const service = await startSkillserve(root, join(folder, 'service.log'))
const start = performance.now()
const elapsed = (): number => (performance.now() - start) / 60_000
let requests = 0
const failures: string[] = []

/** One client: goes round the doors, over all skills. */
async function read (client: number): Promise<void> {
  for (let turn = client; elapsed() < minutes; turn++) {
    const name = names[(turn * 7919) % names.length] ?? ''
    const call = JSON.stringify([{ function: { name: 'get_skill', arguments: { skill_name: name } } }, { function: { name: 'Skill', arguments: { skill_name: name } } }])
    const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: call }
    const requested: ReadonlyArray<readonly [path: string, init?: RequestInit]> = [
      ['/skills'], [`/skills/${name}`], [`/skills/${name}/files`], [`/skills/${name}/files/docs/file-1.md`], ['/agent/tool-call', post],
      [`/catalog/${name}`], [`/skills/${name}/archive.zip`], [`/catalog?q=${name}&limit=5`], [`/skills/${name}x`]
    ]
    const [path, init] = requested[turn % requested.length] ?? ['/skills']
    const response = await fetch(service.url + path, init)
    await response.arrayBuffer()
    requests++
    if (response.status !== (path.endsWith('x') ? 404 : 200)) failures.push(`${response.status} ${path}`)
  }
}

async function edit (): Promise<number> {
  let edits = 0
  for (; elapsed() < minutes; edits++) {
    const name = names[(edits * 104_729) % names.length] ?? ''
    const draft = join(folder, 'draft')
    writeFileSync(draft, skillText(name, 4_096, `edit ${edits}`))
    renameSync(draft, join(root, name, edits % 2 === 0 ? 'SKILL.md' : 'docs/file-1.md'))
    await sleep(1_000 / EDITS)
  }
  return edits
}

async function sample (): Promise<readonly Sample[]> {
  const samples: Sample[] = []
  while (elapsed() < minutes) {
    samples.push({ minutes: elapsed(), megabytes: service.rss() / MB, descriptors: readdirSync(`/proc/${service.pid}/fd`).length })
    await sleep(SAMPLE_MS)
  }
  return samples
}

/** Slope of the line through the samples by least squares, in MB per minute. */
function slopeOf (samples: readonly Sample[]): number {
  const x = samples.reduce((sum, each) => sum + each.minutes, 0) / samples.length
  const y = samples.reduce((sum, each) => sum + each.megabytes, 0) / samples.length
  return samples.reduce((sum, each) => sum + (each.minutes - x) * (each.megabytes - y), 0) / samples.reduce((sum, each) => sum + (each.minutes - x) ** 2, 0)
}

try {
  const [samples, edits] = await Promise.all([sample(), edit(), ...Array.from({ length: CLIENTS }, (_, client) => read(client))])
  const warm = samples.filter((each) => each.minutes >= minutes * WARM_UP)
  const [first, last] = [warm[0], warm.at(-1)]
  const slope = slopeOf(warm)
  const peak = Math.max(...samples.map(({ megabytes }) => megabytes))
  console.log(`${minutes} min: ${requests} requests, ${edits} edits, ${failures.length} failed`)
  console.log(`memory after the warm-up: ${first?.megabytes.toFixed(0)} MB, at the end ${last?.megabytes.toFixed(0)} MB, peak ${peak.toFixed(0)} MB, slope ${slope.toFixed(2)} MB/min (at most ${MAX_SLOPE})`)
  console.log(`open descriptors: ${first?.descriptors}, at the end ${last?.descriptors}`)
  for (const failure of failures.slice(0, 10)) console.log(failure)
  if (failures.length > 0 || slope > MAX_SLOPE) process.exitCode = 1
} finally {
  await service.stop()
  rmSync(folder, { recursive: true })
}
