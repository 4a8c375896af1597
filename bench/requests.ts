import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import autocannon from 'autocannon'
import { createSecret, digestOf } from '../src/access/secret.ts'
import type { LongRun } from '../scripts/long-run.ts'
import { makeSkills, type Server, startServer, startSkillserve, watching } from './servers.ts'
import { median, type Row, rowOf } from './table.ts'

const ROUNDS = 3
const SLICES = 3
/** V8 has compiled what is hot after this many. */
const WARM_UP = 6_000
const REQUESTS = 4_000
const CONNECTIONS = 32

/** Time after the start in which a server does what no request asks for, in milliseconds. */
const SETTLE_MS = 6_000

/** Time until log lines are in the file, in milliseconds. */
const FLUSH_MS = 500

const PLAIN = fileURLToPath(new URL('plain.mjs', import.meta.url))
const NAME = 'skill-00000'
const CALL = JSON.stringify({
  id: 'call_1', type: 'function', function: { name: 'get_skill', arguments: JSON.stringify({ skill_name: NAME }) }
})
const JSON_TYPE = { 'content-type': 'application/json' }

/** CPU time of a request by subject, in the slices of a round. */
type Costs = ReadonlyMap<string, readonly number[]>

type Subject = Pick<autocannon.Options, 'body' | 'headers'> & { readonly server: Server, readonly path: string }

/** Rows: what, the cost of which subject, divided by that of which. */
const RATIOS: ReadonlyArray<readonly [what: string, over: string, under: string, atMost: number]> = [
  ['GET /skills/:name, against plain Fastify', 'document', 'plain document', 1.4],
  ['GET /skills (100 skills), against plain Fastify', 'list', 'plain list', 1.4],
  ['POST tool-call get_skill, 4 KiB, against plain Fastify', 'call', 'plain call', 1.8],
  ...['document', 'list', 'file'].flatMap((what) => [
    [`${what}, If-None-Match, against its 200`, `${what} 304`, what, 1.05] as const,
    [`${what}, with a token, against without`, `${what} token`, what, 1.3] as const
  ]),
  ['call, with a token, against without', 'call token', 'call', 1.3]
]

/** CPU time of the server's process for one request, against a reference in the same minute. */
export async function measureRequests (run: LongRun, folder: string): Promise<Row[]> {
  const root = join(folder, 'requests')
  await makeSkills(root, 100, 2)
  writeFileSync(join(root, NAME, 'notes.md'), 'x'.repeat(4_096))
  const rounds: Costs[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    run.part(`CPU time of single requests, round ${round} of ${ROUNDS}`)
    rounds.push(await measureRound(run, folder, root))
  }
  const costOf = (name: string) =>
    `${(1_000 * median(rounds.flatMap((costs) => costs.get(name) ?? []))).toFixed(0)} µs`
  const ratios = (over: string, under: string) => rounds.map((costs) =>
    median((costs.get(over) ?? []).map((cost, slice) => cost / (costs.get(under)?.[slice] ?? Number.NaN))))
  return [
    ...RATIOS.map(([what, over, under, atMost]) =>
      rowOf({ what, values: ratios(over, under), atMost, note: `${costOf(over)}, ${costOf(under)}` })),
    rowOf({ what: '@fastify/static, the same file, against ours', values: ratios('static file', 'file'), atLeast: 1.5 })
  ]
}

/** New processes in each round: two processes of one program differ by up to 10 %. */
async function measureRound (run: LongRun, folder: string, root: string): Promise<Costs> {
  const token = createSecret('token')
  const access = join(folder, 'access.yaml')
  const entry = `{ name: bench, sha256: ${digestOf(token)}, groups: [all] }`
  writeFileSync(access, `tokens: [${entry}]\nrules: [{ groups: [all] }]\n`)
  const log = (name: string) => ({ log: join(folder, `${name}.log`), env: { LIMITS: 'off' } })
  const ours = await startSkillserve(run, [root], log('ours'))
  const guarded = await startSkillserve(run, ['--access', access, root], log('guarded'))
  await watching(ours)
  await sleep(SETTLE_MS)
  const paths = { document: `/skills/${NAME}`, list: '/skills', file: `/skills/${NAME}/files/notes.md` } as const
  const references = await writeReferences(ours, join(folder, 'ours.log'), root)
  const plain = await startServer(run, [PLAIN, references], log('plain'))
  const headers = { authorization: `Bearer ${token}` }
  const call = { path: '/agent/tool-call', body: CALL, headers: JSON_TYPE }
  const subjects = new Map<string, Subject>([
    ['plain document', { server: plain, path: '/document' }],
    ['plain list', { server: plain, path: '/list' }],
    ['plain call', { ...call, server: plain }],
    ['static file', { server: plain, path: '/static/notes.md' }],
    ['call', { ...call, server: ours }],
    ['call token', { ...call, server: guarded, headers: { ...JSON_TYPE, ...headers } }]
  ])
  for (const [name, path] of Object.entries(paths)) {
    const { headers: answer } = await fetch(ours.url + path, { headers: { 'accept-encoding': 'identity' } })
    subjects.set(name, { server: ours, path })
      .set(`${name} 304`, { server: ours, path, headers: { 'if-none-match': answer.get('etag') ?? '' } })
      .set(`${name} token`, { server: guarded, path, headers })
  }
  const costs = new Map<string, number[]>()
  for (const subject of subjects.values()) await costOf(subject, WARM_UP)
  for (let slice = 0; slice < SLICES; slice++) {
    for (const [name, subject] of subjects) costs.set(name, [...costs.get(name) ?? [], await costOf(subject, REQUESTS)])
  }
  for (const server of [ours, guarded, plain]) await server.stop()
  return costs
}

async function costOf ({ server, path, body, headers = {} }: Subject, amount: number): Promise<number> {
  const before = server.cpu()
  const { errors, statusCodeStats } = await autocannon({
    url: server.url + path, connections: CONNECTIONS, amount, headers, ...body && { method: 'POST', body }
  })
  const wrong = Object.keys(statusCodeStats ?? {}).filter((status) => status !== '200' && status !== '304')
  if (errors > 0 || wrong.length > 0) throw new Error(`${errors} errors, and ${wrong.join()} from ${path}`)
  return (server.cpu() - before) / amount
}

/** A file for the plain app: the bytes of our answers, and our two log lines of a tool call. */
async function writeReferences ({ url }: Server, log: string, root: string): Promise<string> {
  const textOf = async (path: string, init?: RequestInit) => await (await fetch(url + path, init)).text()
  const answers = {
    document: await textOf(`/skills/${NAME}`),
    list: await textOf('/skills'),
    call: await textOf('/agent/tool-call', { method: 'POST', headers: JSON_TYPE, body: CALL })
  }
  await sleep(FLUSH_MS)
  const lines = readFileSync(log, 'utf8').split('\n').filter((line) => line.includes('"msg":"[Tool '))
    .map((line) => (JSON.parse(line) as { readonly msg: string }).msg)
  if (lines.length !== 2) throw new Error(`a tool call left ${lines.length} lines in the log`)
  const file = join(log, '../references.json')
  writeFileSync(file, JSON.stringify({ ...answers, lines, root: join(root, NAME) }))
  return file
}
