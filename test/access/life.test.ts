import { appendFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openEvents } from '../helper/event-stream.ts'
import { bearer, buildGuarded, newSecret } from '../helper/guarded.ts'
import { listenRequest } from '../helper/mcp.ts'
import { skill, until } from '../helper/skills.ts'
import { usedMemory } from '../helper/timing.ts'

const ann = newSecret('ann', 'groups: [docs]')
const ACCESS = `tokens:\n  - ${ann.entry}\nrules:\n  - { groups: [docs], roots: [docs] }\n`
const ROUNDS = 200

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
  t.test(`${ROUNDS} ${what} leave nothing behind`, { skip: process.platform !== 'linux' && 'no /proc' }, async (t) => {
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

t.test('an edit after all that is announced once', async (t) => {
  const stream = await openEvents(url, { headers: [`Authorization: Bearer ${ann.text}`, 'Accept: text/event-stream'] })
  t.teardown(() => { stream.destroy() })
  appendFileSync(join(folder, 'docs/guide/SKILL.md'), '!')
  for (const root of catalog.roots) await catalog.refresh(root)
  t.match(await stream.event(0), { type: 'changed', data: { name: 'guide' } })
})
