import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeSkills, skillText } from './fixtures.ts'
import type { Load, Request } from './load.ts'
import { startReference, startSkillserve } from './process.ts'
import { median, type Row, spread } from './table.ts'

const SKILLS = 100
const ROUNDS = 5
const SECONDS = 2

interface Comparison {
  readonly what: string
  readonly ours: Request
  readonly reference: Request
  readonly atLeast: number
  readonly against: string
}

/** The rows of requests per second: each against its reference in alternating rounds of one run. */
export async function measureThroughput (folder: string, load: Load, rounds = ROUNDS): Promise<Row[]> {
  const root = join(folder, 'skills')
  const [name = ''] = makeSkills(root, SKILLS, 2)
  const notes = join(root, name, 'notes.md')
  writeFileSync(notes, skillText('notes', 4096))
  const ours = await startSkillserve(root, join(folder, 'skillserve.log'))
  try {
    const paths = { document: `/skills/${name}`, file: `/skills/${name}/files/notes.md`, list: '/skills' }
    const call = JSON.stringify({ id: 'call_1', type: 'function', function: { name: 'get_skill', arguments: JSON.stringify({ skill_name: name }) } })
    const fixture = join(folder, 'reference.json')
    mkdirSync(folder, { recursive: true })
    writeFileSync(fixture, JSON.stringify({
      document: await text(ours.url + paths.document),
      file: await text(ours.url + paths.file),
      list: await text(ours.url + paths.list),
      toolResult: await text(`${ours.url}/agent/tool-call`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: call }),
      filePath: notes
    }))
    const bare = await startReference(fixture, join(folder, 'reference.log'))
    try {
      const plain = await text(`${bare.url}/plain`)
      const etags = { document: await etag(ours.url + paths.document), file: await etag(ours.url + paths.file), list: await etag(ours.url + paths.list) }
      const against = 'bare Fastify route'
      const comparisons: Comparison[] = [
        { what: 'GET /skills/:name', ours: { url: ours.url + paths.document }, reference: { url: `${bare.url}/document/x` }, atLeast: 0.85, against },
        { what: 'GET a 4 KiB file', ours: { url: ours.url + paths.file }, reference: { url: `${bare.url}/file/x/notes.md` }, atLeast: 0.85, against },
        { what: 'GET /skills (100 skills)', ours: { url: ours.url + paths.list }, reference: { url: `${bare.url}/list` }, atLeast: 0.85, against },
        ...(['document', 'file', 'list'] as const).map((key) => ({
          what: `304 for ${key}`,
          ours: { url: ours.url + paths[key], headers: { 'if-none-match': etags[key] } },
          reference: { url: ours.url + paths[key] },
          atLeast: 1,
          against: 'our own 200'
        })),
        { what: 'POST tool-call get_skill', ours: { url: `${ours.url}/agent/tool-call`, body: call }, reference: { url: `${bare.url}/tool-call`, body: call }, atLeast: 0.75, against: 'bare Fastify POST' },
        { what: 'GET a 4 KiB file', ours: { url: ours.url + paths.file }, reference: { url: `${bare.url}/static/notes.md` }, atLeast: 1.5, against: '@fastify/static' },
        { what: 'bare Fastify route', ours: { url: `${bare.url}/document/x` }, reference: { url: plain }, atLeast: 0, against: 'node:http, same bytes' }
      ]
      const rows: Row[] = []
      for (const comparison of comparisons) rows.push(await compare(comparison, load, rounds))
      return rows
    } finally {
      await bare.stop()
    }
  } finally {
    await ours.stop()
  }
}

async function compare ({ what, ours, reference, atLeast, against }: Comparison, load: Load, rounds: number): Promise<Row> {
  await load(ours, 1)
  await load(reference, 1)
  const ratios: number[] = []
  const absolute: number[] = []
  for (let round = 0; round < rounds; round++) {
    // Whoever goes first changes places, so that a machine that slows down or speeds up favours neither.
    const first = round % 2 === 0
    const a = await load(first ? ours : reference, SECONDS)
    const b = await load(first ? reference : ours, SECONDS)
    const [mine, theirs] = first ? [a, b] : [b, a]
    ratios.push(mine.requestsPerSecond / theirs.requestsPerSecond)
    absolute.push(mine.requestsPerSecond)
  }
  const ratio = median(ratios)
  return {
    what,
    against,
    target: atLeast === 0 ? '–' : `≥ ${atLeast}`,
    measured: `${ratio.toFixed(2)} (${spread(ratios)})`,
    note: `${Math.round(median(absolute))} requests/s`,
    pass: atLeast === 0 ? undefined : ratio >= atLeast
  }
}

async function text (url: string, init?: RequestInit): Promise<string> {
  const response = await fetch(url, init)
  if (!response.ok) throw new Error(`${response.status} from ${url}`)
  return await response.text()
}

async function etag (url: string): Promise<string> {
  return (await fetch(url)).headers.get('etag') ?? ''
}
