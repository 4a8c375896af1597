import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench } from './bench.ts'
import { makeSkills } from './fixtures.ts'
import { type Stall, startSkillserve } from './process.ts'
import { watching } from './readiness.ts'
import type { Row } from './table.ts'

const SKILLS = 100
const MAX_STALL_MS = 50

/** Time after which the client closes an event stream, in milliseconds. */
const STREAM_MS = 500

/** Number of slow routes in the note. */
const NAMED = 4

const JSON_POST = { method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' } } as const
const INITIALIZE = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1' } } }

/** One request for each kind of answer. */
const REQUESTS: ReadonlyArray<readonly [path: string, body?: object]> = [
  ['/livez'], ['/readyz'], ['/skills'], ['/skills/NAME'], ['/skills/NAME/files'], ['/skills/NAME/files/file-0.md'], ['/skills/NAME/archive.zip'],
  ['/catalog'], ['/catalog?q=measured'], ['/catalog/NAME'], ['/events'], ['/openapi.json'], ['/openapi.yaml'], ['/docs/'],
  ['/agent/prompt'], ['/agent/tools'], ['/agent/tool-call', { function: { name: 'Skill', arguments: { skill_name: 'NAME' } } }],
  ['/mcp', INITIALIZE], ['/.well-known/agent-skills/index.json'], ['/.well-known/skills/index.json'], ['/nothing/here']
]

/** Measures the first request to each route, in a new process each. Only /readyz comes before. */
export async function measureFirstRequests ({ run, cores, folder: parent }: Bench): Promise<Row[]> {
  const root = join(parent, 'first')
  mkdirSync(root)
  const [name = ''] = await makeSkills(root, SKILLS, 2)
  const stalls: Array<Stall & { readonly path: string }> = []
  for (const [index, [path, body]] of REQUESTS.entries()) {
    run.part(`first request for ${path} (${index + 1} of ${REQUESTS.length})`)
    const server = await startSkillserve(run, [root], { log: join(parent, 'first.log'), stalls: true, wrap: cores.besideLoad })
    await watching(server)
    await server.stall()
    const text = JSON.stringify(body)?.replaceAll('NAME', name)
    const response = await fetch(server.url + path.replace('NAME', name), { ...text !== undefined && { ...JSON_POST, body: text }, ...path === '/events' && { signal: AbortSignal.timeout(STREAM_MS) } })
    await response.arrayBuffer().catch((error: unknown) => { if (path !== '/events') throw error })
    if (response.status >= 500) throw new Error(`${response.status} from ${path}`)
    stalls.push({ path: path.replace('NAME', ':name'), ...await server.stall() })
    await server.stop()
  }
  const slowest = stalls.toSorted((a, b) => b.own - a.own)
  const longest = slowest[0]?.own ?? Number.NaN
  return [{
    what: 'event-loop stall of the first request to any route',
    against: '–',
    target: `≤ ${MAX_STALL_MS} ms`,
    measured: `${longest.toFixed(0)} ms`,
    note: `${slowest.slice(0, NAMED).map(({ path, own }) => `${path} ${own.toFixed(0)}`).join(', ')}; without the wait for a core`,
    pass: longest <= MAX_STALL_MS
  }]
}
