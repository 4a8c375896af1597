import { appendFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type LongRun, readCommandLine, readNumber, runLong } from '../scripts/long-run.ts'
import { makeSkills } from './fixtures.ts'
import { machine } from './machine.ts'
import { startSkillserve, type Server } from './process.ts'
import { generationOf, watching } from './readiness.ts'
import { median } from './table.ts'

const USAGE = `
npm run growth -- [SIZE…]

What the service costs with 100, 1,000, 10,000 and 50,000 skills, or with as many as the SIZEs say: as a table, and for the first
four in bench/growth.md. Nothing is judged: it shows what grows with the number of skills, and what does not.
`

const SIZES = [100, 1_000, 10_000, 50_000]
const FILES = 2
const READS = 200
const LISTS = 20
const CHANGES = 20

/** Pause between two questions whether a change is in the index, in milliseconds. */
const POLL_MS = 2

type Figures = Readonly<Record<string, string>>

const { positionals } = readCommandLine(USAGE, { allowPositionals: true } as const)
const sizes = positionals.length === 0 ? SIZES : positionals.map((text) => readNumber(text, 'SIZE', (value) => Number.isInteger(value) && value > 0))

await runLong(async (run) => {
  const folder = run.folder('skillserve-growth')
  const columns: Figures[] = []
  for (const size of sizes) columns.push(await measure(run, join(folder, String(size)), size))
  const rows = Object.keys(columns[0] ?? {}).map((what) => `| ${what} | ${columns.map((figures) => figures[what]).join(' | ')} |`)
  const report = `# Growth

Measured ${new Date().toISOString().slice(0, 10)} with \`npm run growth\` on ${machine()}. Each skill has a SKILL.md of 4 KiB
and ${FILES} more files. One client, one request at a time, medians; every request over a connection that is open.

| | ${sizes.map((size) => `${size.toLocaleString('en')} skills`).join(' | ')} |
|---|${'---|'.repeat(sizes.length)}
${rows.join('\n')}
`
  run.print(report)
  if (positionals.length === 0) writeFileSync(new URL('growth.md', import.meta.url), report)
  return true
})

async function measure (run: LongRun, folder: string, size: number): Promise<Figures> {
  const skills = size.toLocaleString('en') + ' skills'
  const root = join(folder, 'skills')
  run.part(`${skills}: writing them`)
  const names = await makeSkills(root, size, FILES)
  run.part(`${skills}: start`)
  const begun = performance.now()
  const server = await startSkillserve(run, [root], { log: join(folder, 'log') })
  try {
    const { skills: listed } = await json(server, '/skills') as { readonly skills: readonly string[] }
    if (listed.length !== size) throw new Error(`${listed.length} skills listed`)
    const answered = performance.now() - begun
    const atFirst = server.rss()
    await watching(server)
    const watched = performance.now() - begun
    const atRest = server.rss()
    const startCpu = server.cpu()

    run.part(`${skills}: requests`)
    const list = await times(LISTS, () => json(server, '/skills'))
    const first = await times(READS, (index) => json(server, `/skills/${nameAt(names, index)}`))
    const again = await times(READS, (index) => json(server, `/skills/${nameAt(names, index)}`))
    const unknown = await times(LISTS, () => fetch(`${server.url}/skills/nobody`).then((response) => response.text()))
    run.part(`${skills}: changes and pages`)
    const change = await measureChanges(server, root, names)
    const pages = await measurePages(server)
    const { bytes } = await readBytes(server, '/skills')
    return {
      'start to first correct GET /skills': ms(answered),
      'start to every watch in place': ms(watched),
      'CPU time until then': ms(startCpu),
      'RSS at the first answer': mb(atFirst),
      'RSS, watching': mb(atRest),
      'GET /skills': ms(median(list)),
      'size of that answer': `${(bytes / 1_000).toFixed(1)} kB`,
      'GET /skills/:name, first time': ms(median(first)),
      'GET /skills/:name, again': ms(median(again)),
      'GET of a skill that is not there': ms(median(unknown)),
      'one SKILL.md changed: until it is in the index': ms(change.visible),
      'one SKILL.md changed: CPU time': ms(change.cpu),
      'GET /catalog, first page of 50': ms(pages.first),
      'GET /catalog, a page in the middle': ms(pages.middle),
      'RSS after all this': mb(server.rss())
    }
  } finally {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Spread over all names, the same ones each time. */
function nameAt (names: readonly string[], index: number): string {
  return names[Math.floor(index * names.length / READS) % names.length] ?? ''
}

async function measureChanges (server: Server, root: string, names: readonly string[]): Promise<{ visible: number, cpu: number }> {
  const visible: number[] = []
  const before = server.cpu()
  for (let i = 0; i < CHANGES; i++) {
    const generation = await generationOf(server)
    const begun = performance.now()
    appendFileSync(join(root, nameAt(names, i), 'SKILL.md'), 'changed\n')
    while (await generationOf(server) === generation) await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    visible.push(performance.now() - begun)
  }
  return { visible: median(visible), cpu: (server.cpu() - before) / CHANGES }
}

async function measurePages (server: Server): Promise<{ first: number, middle: number }> {
  let cursor: string | undefined
  const all: number[] = []
  do {
    const begun = performance.now()
    const page = await json(server, `/catalog${cursor === undefined ? '' : `?cursor=${encodeURIComponent(cursor)}`}`) as { readonly next_cursor: string | null }
    all.push(performance.now() - begun)
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined && all.length < 100)
  const first = await times(LISTS, () => json(server, '/catalog'))
  return { first: median(first), middle: median(all.slice(1)) }
}

async function times (count: number, run: (index: number) => Promise<unknown>): Promise<number[]> {
  const taken: number[] = []
  for (let index = 0; index < count; index++) {
    const begun = performance.now()
    await run(index)
    taken.push(performance.now() - begun)
  }
  return taken
}

async function readBytes (server: Server, path: string): Promise<{ bytes: number, text: string }> {
  const response = await fetch(server.url + path)
  if (!response.ok) throw new Error(`${response.status} from ${path}`)
  const text = await response.text()
  return { bytes: Buffer.byteLength(text), text }
}

async function json (server: Server, path: string): Promise<unknown> {
  return JSON.parse((await readBytes(server, path)).text)
}

function ms (value: number): string {
  return Number.isNaN(value) ? '–' : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`
}

function mb (bytes: number): string {
  return `${Math.round(bytes / 1_048_576)} MB`
}
