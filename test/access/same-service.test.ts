import assert from 'node:assert/strict'
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { openEvents } from '../helper/event-stream.ts'
import { bearer, buildGuarded, newSecret } from '../helper/guarded.ts'
import { listenRequest } from '../helper/mcp.ts'
import { startProcess } from '../helper/process.ts'
import { freePort } from '../helper/proxies.ts'
import { skill, until } from '../helper/skills.ts'
import { usedMemory } from '../helper/timing.ts'
import { compareServices, LEGACY_METHODS, MCP_METHODS, questions, RICH_WORLD, world } from './same-service.ts'

/** Worlds; the first is rich. `VIEW_RUNS=200` makes others each time. */
const RUNS = Number(process.env['VIEW_RUNS'] ?? 2)

const SEED = process.env['VIEW_RUNS'] === undefined ? { seed: 1 } : {}

/**
 * Routes without a question. Streams have tests of their own, a webhook has no caller, and the document of the API page
 * says whether the service has callers.
 */
const NOT_ASKED = [
  'GET /docs/json', 'GET /docs/yaml', 'GET /events', 'GET /livez', 'GET /ui/sign-in', 'HEAD /docs/json',
  'HEAD /docs/yaml', 'HEAD /events', 'HEAD /livez', 'HEAD /ui/sign-in', 'POST /hooks/git',
  'POST /ui/sign-in', 'POST /ui/sign-out'
]

t.test('K64: every answer of every route equals that of a service with nothing but what the caller sees', async (t) => {
  let answers = 0
  let missed: readonly string[] | undefined
  await fc.assert(fc.asyncProperty(world, async (each) => {
    const routes = await compareServices(each, (label, guarded, alone) => {
      answers++
      assert.deepEqual(guarded, alone, label)
    })
    missed = routes.filter((route) => missed?.includes(route) ?? true)
  }), { numRuns: RUNS, examples: [[RICH_WORLD]], ...SEED, endOnFailure: true })
  t.ok(answers > 300 * RUNS, `${answers} answers`)
  // Style and script of pages are the same for all.
  const asked = missed?.filter((route) => !route.includes(' /ui/assets/'))
  t.strictSame(asked, NOT_ASKED, 'a new route needs a question here')
})

t.test('K64: every method of MCP has a question', async (t) => {
  const server = readFileSync(new URL('../../src/mcp/server.ts', import.meta.url), 'utf8')
  const methods = Array.from(server.matchAll(/setRequestHandler\('([^']+)'/g), ([, method = '']) => method)
  t.ok(methods.length > 8)
  const known = { ...MCP_METHODS, ...LEGACY_METHODS }
  t.strictSame(methods.filter((method) => !Object.hasOwn(known, method)), [])
})

/** In name, description, text, path and content of what is hidden, and nowhere else. */
const CANARY = 'qzcanaryxv'

t.test('K64: no answer, header, metric, audit line or log line of a request holds anything hidden', async (t) => {
  const ann = newSecret('ann', 'groups: [docs]')
  const hidden = `---\nname: ${CANARY}\ndescription: ${CANARY} orange\n---\n${CANARY} orange\n`
  const folder = t.testdir({
    docs: { alpha: skill('alpha', { 'notes.txt': 'orange' }), beta: skill('beta') },
    ops: {
      [CANARY]: { 'SKILL.md': hidden, [`${CANARY}.txt`]: CANARY },
      alpha: { 'SKILL.md': hidden, 'notes.txt': CANARY },
      gamma: { 'SKILL.md': hidden, 'notes.txt': CANARY },
      delta: { 'SKILL.md': `---\nname: [${CANARY}\n---\n${CANARY}` }
    }
  })
  const at = (name: string) => join(folder, name)
  const rules = '  - { groups: [docs], roots: [docs] }\n  - { groups: [ops], roots: [ops] }\n'
  writeFileSync(at('access.yaml'), `tokens:\n  - ${ann.entry}\nrules:\n${rules}`)
  const metricsPort = String(await freePort())
  // The hidden skill of the same name comes first.
  const env = { METRICS_PORT: metricsPort, AUDIT_LOG: at('audit.log'), LOG_FORMAT: 'json' }
  const service = await startProcess(t, { args: [at('ops'), at('docs'), '--access', at('access.yaml')], env })
  // A skill with a hidden namesake, and a hidden one: the first test asks for every kind.
  const all = questions(['alpha', 'gamma'])
  const leaks: string[] = []
  let answers = 0
  for (const token of [ann.text, undefined]) {
    for (const [label, { method = 'GET', url, headers = {}, payload }] of all) {
      const all = { ...headers as Record<string, string>, ...token !== undefined && bearer(token) }
      const body = typeof payload === 'string' ? { body: payload } : {}
      const response = await fetch(`${service.url}${String(url)}`, { method, headers: all, ...body })
      const bytes = Buffer.from(await response.arrayBuffer())
      const text = `${JSON.stringify([...response.headers])}${bytes.toString('latin1')}`
      if (text.includes(CANARY)) leaks.push(label)
      answers++
    }
  }
  t.ok(answers > 400, `${answers} answers`)
  t.strictSame(leaks, [])
  t.notMatch(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text(), CANARY)
  await service.stop()
  const audit = readFileSync(at('audit.log'), 'utf8')
  t.match(audit, '"alpha"')
  t.notMatch(audit, CANARY)
  // The operator's own lines name skills; those of requests do not.
  const lines = service.log().filter((line) => JSON.stringify(line).includes(CANARY))
  t.ok(lines.length > 0, 'the operator reads of the skill that cannot be read')
  t.strictSame(lines.filter((line) => 'reqId' in line), [])
})

const ann = newSecret('ann', 'groups: [docs]')
const ACCESS = `tokens:\n  - ${ann.entry}\nrules:\n  - { groups: [docs], roots: [docs] }\n`
const ROUNDS = 100

/** Memory of code, caches and pools that were used for the first time, in bytes. */
const SLACK_BYTES = 8_000_000

const service = await buildGuarded(t, {
  roots: { docs: { guide: skill('guide'), plain: skill('plain') } }, access: ACCESS
})
const { url, folder, get, setAccess, accessFile, skills: { parts: { catalog, ledger }, feed } } = service

/** What is open or waited for: listeners, timers, sockets, descriptors. */
function openThings () {
  const listeners = [catalog, ledger, accessFile].flatMap((emitter) =>
    emitter.eventNames().map((name) => `${String(name)} ${emitter.listenerCount(name)}`))
  return {
    listeners, readers: ledger.readers, timers: active('Timeout'), descriptors: readdirSync('/proc/self/fd').length
  }
}

function active (type: string): number {
  return process.getActiveResourcesInfo().filter((name) => name === type).length
}

async function reload (round: number): Promise<void> {
  await setAccess(`${ACCESS}# ${round}\n`)
  t.equal((await get('/skills', ann.text)).status, 200)
}

async function follow (target: string): Promise<void> {
  const stream = await openEvents(url, {
    target, headers: [`Authorization: Bearer ${ann.text}`, 'Accept: text/event-stream']
  })
  t.match(stream.head, /^HTTP\/1.1 200/)
  stream.destroy()
}

async function listen (): Promise<void> {
  const gone = new AbortController()
  const response = await fetch(`${url}/mcp`, { ...listenRequest(bearer(ann.text)), signal: gone.signal })
  t.equal(response.status, 200)
  gone.abort()
  await response.text().catch(() => {})
}

for (const [what, use] of [
  ['reloads of the access file', reload],
  ['event streams', () => follow('/events')],
  ['MCP sessions of 2025', () => follow('/mcp')],
  ['MCP sessions of 2026', listen]
] as const) {
  t.test(`K60: ${ROUNDS} ${what} leave nothing behind`, { skip: process.platform !== 'linux' && 'no /proc' }, async (t) => {
    await until(() => feed.revision !== undefined)
    const isQuiet = () => openThings().readers === 0 && ledger.listenerCount('change') === 0
    for (let round = 0; round < 20; round++) await use(round)
    await until(isQuiet)
    const before = { ...openThings(), memory: usedMemory() }
    for (let round = 0; round < ROUNDS; round++) await use(round)
    await until(isQuiet)
    const after = { ...openThings(), memory: usedMemory() }
    t.strictSame(after.listeners, before.listeners)
    t.ok(after.timers <= before.timers + 2, `${before.timers} timers, then ${after.timers}`)
    t.ok(after.descriptors <= before.descriptors + 2, `${before.descriptors} descriptors, then ${after.descriptors}`)
    t.ok(after.memory - before.memory < SLACK_BYTES, `${after.memory - before.memory} bytes more`)
  })
}

t.test('K60: an edit after all that is announced once', async (t) => {
  const stream = await openEvents(url, { headers: [`Authorization: Bearer ${ann.text}`, 'Accept: text/event-stream'] })
  t.teardown(() => { stream.destroy() })
  appendFileSync(join(folder, 'docs/guide/SKILL.md'), '!')
  for (const root of catalog.roots) await catalog.refresh(root)
  t.match(await stream.event(0), { type: 'changed', data: { name: 'guide' } })
})
