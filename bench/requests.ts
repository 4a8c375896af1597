import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Bench } from './bench.ts'
import { makeSkills, skillText } from './fixtures.ts'
import { type Costs, measureCosts, microseconds, ratioOf, type Subject, WARM_UP_REQUESTS } from './costs.ts'
import type { Request } from './load.ts'
import { startServer, startSkillserve, type Server } from './process.ts'
import { watching } from './readiness.ts'
import { median, type Row, spread } from './table.ts'

const SKILLS = 100
const ROUNDS = 4

/** Time until log lines are in the file, in milliseconds. */
const FLUSH_MS = 500

const PLAIN = fileURLToPath(new URL('plain.mjs', import.meta.url))
const BARE = fileURLToPath(new URL('bare.mjs', import.meta.url))

const PATHS = { document: (name: string) => `/skills/${name}`, file: (name: string) => `/skills/${name}/files/notes.md`, list: () => '/skills' } as const

/** Requests and servers. The members of a group are compared with each other. */
const GROUPS = [
  ['document', 'plain document', 'bare document', 'document, 304'],
  ['file', 'plain file', 'file, 304', '@fastify/static file'],
  ['list', 'plain list', 'list, 304'],
  ['tool call', 'plain tool call']
] as const
type Name = typeof GROUPS[number][number]

interface Limit {
  readonly what: string
  readonly against: string
  readonly over: Name
  readonly under: Name
  readonly atMost?: number
  readonly atLeast?: number
  /** Tolerance: two measurements of the same request differ by this much. */
  readonly within?: number
}

const LIMITS: readonly Limit[] = [
  { what: 'GET /skills/:name', against: 'plain Fastify', over: 'document', under: 'plain document', atMost: 0.9 },
  { what: 'GET a 4 KiB file', against: 'plain Fastify', over: 'file', under: 'plain file', atMost: 0.9 },
  { what: 'GET /skills (100 skills)', against: 'plain Fastify', over: 'list', under: 'plain list', atMost: 0.8 },
  { what: 'GET /skills/:name', against: 'bare node:http, no log', over: 'document', under: 'bare document', atMost: 1.5 },
  { what: 'GET /skills/:name, `If-None-Match`', against: 'its 200', over: 'document, 304', under: 'document', atMost: 1, within: 0.03 },
  { what: 'GET a 4 KiB file, `If-None-Match`', against: 'its 200', over: 'file, 304', under: 'file', atMost: 1, within: 0.03 },
  { what: 'GET /skills, `If-None-Match`', against: 'its 200', over: 'list, 304', under: 'list', atMost: 1, within: 0.03 },
  { what: 'POST tool-call get_skill, 4 KiB', against: 'plain Fastify', over: 'tool call', under: 'plain tool call', atMost: 1 },
  { what: '@fastify/static, the same file', against: 'GET a 4 KiB file', over: '@fastify/static file', under: 'file', atLeast: 4 }
]

/**
 * Measures single requests: CPU time of the server process per request, relative to that of a reference. Each round has new processes,
 * because two processes of the same program differ by up to 10 %.
 */
export async function measureRequests (bench: Bench): Promise<Row[]> {
  const root = join(bench.folder, 'requests', 'skills')
  const [name = ''] = await makeSkills(root, SKILLS, 2)
  writeFileSync(join(root, name, 'notes.md'), skillText('notes', 4096))
  const rounds: Array<Costs<Name>> = []
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push(await measureRound(bench, { root, name }, `round ${round + 1} of ${ROUNDS}`))
  }
  return LIMITS.map((limit) => toRow(limit, rounds))
}

async function measureRound ({ run, cores, folder: parent }: Bench, { root, name }: { readonly root: string, readonly name: string }, round: string): Promise<Costs<Name>> {
  const folder = join(parent, 'requests')
  const log = (server: string) => ({ log: join(folder, `${server}.log`), wrap: cores.besideLoad })
  const ours = await startSkillserve(run, [root], log('skillserve'))
  const references = await writeReferences(ours, name, join(root, name, 'notes.md'), join(folder, 'skillserve.log'))
  const plain = await startServer(run, [PLAIN, references], log('plain'))
  const bare = await startServer(run, [BARE, references], log('bare'))
  const subjects = await subjectsOf({ ours, plain, bare }, name)
  await watching(ours)

  const costs: Partial<Costs<Name>> = {}
  for (const group of GROUPS) {
    run.part(`CPU time of single requests, ${round}: ${group.join(', ')}`)
    Object.assign(costs, await measureCosts(Object.fromEntries(group.map((name) => [name, subjects[name]]))))
  }
  for (const server of [ours, plain, bare]) await server.stop()
  return costs as Costs<Name>
}

function toRow ({ what, against, over, under, atMost, atLeast, within = 0 }: Limit, rounds: ReadonlyArray<Costs<Name>>): Row {
  const ratios = rounds.map((costs) => ratioOf(costs, over, under))
  const ratio = median(ratios)
  return {
    what,
    against,
    target: atMost === undefined ? `≥ ${atLeast}` : `≤ ${atMost}${within === 0 ? '' : `, within ${100 * within} %`}`,
    measured: `${ratio.toFixed(2)} (${spread(ratios)})`,
    note: `${microseconds(rounds, over).toFixed(0)} µs of CPU time, ${microseconds(rounds, under).toFixed(0)} µs`,
    pass: atMost === undefined ? ratio >= (atLeast ?? 0) : ratio <= atMost + within
  }
}

async function subjectsOf ({ ours, plain, bare }: Record<'ours' | 'plain' | 'bare', Server>, name: string): Promise<Record<Name, Subject>> {
  const get = (server: Server, path: string) => ({ server, request: { url: server.url + path } satisfies Request, warmUp: WARM_UP_REQUESTS })
  const again = async (path: string) => {
    const { request, ...asked } = get(ours, path)
    // Without the encodings that `fetch` takes: the request is repeated as it was.
    const etag = (await fetch(request.url, { headers: { 'accept-encoding': 'identity' } })).headers.get('etag') ?? ''
    return { ...asked, request: { ...request, headers: { 'if-none-match': etag } } }
  }
  const call = (server: Server, path: string) => ({ server, request: { url: server.url + path, body: toolCall(name) }, warmUp: WARM_UP_REQUESTS })
  const { document, file, list } = PATHS
  return {
    document: get(ours, document(name)),
    'plain document': get(plain, '/document/x'),
    'bare document': get(bare, '/'),
    'document, 304': await again(document(name)),
    file: get(ours, file(name)),
    'plain file': get(plain, '/file/x/notes.md'),
    'file, 304': await again(file(name)),
    '@fastify/static file': { ...get(plain, '/static/notes.md'), warmUp: WARM_UP_REQUESTS / 4 },
    list: get(ours, list()),
    'plain list': get(plain, '/list'),
    'list, 304': await again(list()),
    'tool call': call(ours, '/agent/tool-call'),
    'plain tool call': call(plain, '/tool-call')
  }
}

function toolCall (name: string): string {
  return JSON.stringify({ id: 'call_1', type: 'function', function: { name: 'get_skill', arguments: JSON.stringify({ skill_name: name }) } })
}

/** Writes a file for the references: the bytes of the service's answers, and its log lines of a tool call. */
async function writeReferences (ours: Server, name: string, filePath: string, log: string): Promise<string> {
  const { document, file, list } = PATHS
  const answers = {
    document: await textOf(ours.url + document(name)),
    file: await textOf(ours.url + file(name)),
    list: await textOf(ours.url + list()),
    toolResult: await textOf(`${ours.url}/agent/tool-call`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: toolCall(name) })
  }
  await sleep(FLUSH_MS)
  const toolLines = readFileSync(log, 'utf8').split('\n').filter((line) => line.includes('"msg":"[Tool ')).map(messageOf)
  if (toolLines.length !== 2) throw new Error(`a tool call left ${toolLines.length} lines in the log`)
  const references = join(log, '../references.json')
  writeFileSync(references, JSON.stringify({ ...answers, filePath, toolLines }))
  return references
}

/** The message of a log line, padded because Fastify's own request ids are shorter. */
function messageOf (line: string): string {
  const { msg, reqId } = JSON.parse(line) as { readonly msg: string, readonly reqId: string }
  return msg.padEnd(msg.length + Math.max(0, reqId.length - 'req-xxx'.length), '.')
}

async function textOf (url: string, init?: RequestInit): Promise<string> {
  const response = await fetch(url, init)
  if (!response.ok) throw new Error(`${response.status} from ${url}`)
  return await response.text()
}
