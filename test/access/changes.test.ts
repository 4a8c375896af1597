import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Limits } from '../../src/limits/limits.ts'
import { openEvents } from '../helper/event-stream.ts'
import { bearer, buildGuarded, newSecret } from '../helper/guarded.ts'
import { AUDIENCE, startIssuer } from '../helper/issuer.ts'
import { listenRequest } from '../helper/mcp.ts'
import { openRaw, request } from '../helper/raw-http.ts'
import { skill, skillText, until } from '../helper/skills.ts'

const ann = newSecret('ann', 'groups: [docs]')
const bob = newSecret('bob', 'groups: [ops]')
const cy = newSecret('cy', 'groups: [docs, ops]')

const DOCS = '  - { groups: [docs], roots: [docs] }\n'
const OPS = '  - { groups: [ops], roots: [ops] }\n'

function accessOf (entries: readonly string[], rules = DOCS + OPS, more = ''): string {
  return `tokens:\n${entries.map((entry) => `  - ${entry}\n`).join('')}${more}rules:\n${rules}`
}

const ALL = [ann.entry, bob.entry, cy.entry]

const service = await buildGuarded(t, {
  roots: { docs: { guide: skill('guide'), plain: skill('plain') }, ops: { pager: skill('pager') } },
  access: accessOf(ALL),
  watcher: true
})
const { setAccess, breakAccess, get, folder, url, logText } = service

async function open (t: Test, token: string, headers: readonly string[] = []) {
  const stream = await openEvents(url, { headers: [`Authorization: Bearer ${token}`, ...headers] })
  t.teardown(() => { stream.destroy() })
  await stream.until('its beginning', () => /^[\da-f]{64}$/.test(stream.lastEventId))
  return stream
}

/** A request whose caller is admitted, and whose body is still to come. */
async function begin (t: Test, path: string, { headers, body }: RequestInit) {
  const connection = await openRaw(url)
  t.teardown(() => { connection.destroy() })
  const lines = Object.entries(headers as Record<string, string>).map(([name, value]) => `${name}: ${value}`)
  const text = String(body)
  // The interim answer says that the body is wanted: its caller has been admitted.
  const head = [...lines, `content-length: ${text.length}`, 'expect: 100-continue']
  connection.send(request('POST', path, { headers: head }))
  await until(() => connection.received.includes('100 Continue'))
  return { connection, finish: () => { connection.send(text) } }
}

const listSkills = (token: string) =>
  ({ headers: { ...bearer(token), 'content-type': 'application/json' }, body: '{}' })

t.test('K64: a stream reports what its caller sees, and its ids count nothing else', async (t) => {
  const [ofAnn, ofBob] = [await open(t, ann.text), await open(t, bob.text)]
  mkdirSync(join(folder, 'ops', 'new'))
  writeFileSync(join(folder, 'ops', 'new', 'SKILL.md'), skillText('new'))
  await ofBob.until('the new skill', () => ofBob.events.some(({ data }) => data['name'] === 'new'))
  appendFileSync(join(folder, 'docs', 'guide', 'SKILL.md'), '!')
  await ofAnn.until('the edit', () => ofAnn.events.some(({ data }) => data['name'] === 'guide'))
  t.notMatch(JSON.stringify(ofAnn.events), /new|pager/)
  rmSync(join(folder, 'ops', 'new'), { recursive: true })
  await ofBob.until('its end', () => ofBob.events.at(-1)?.type === 'removed')
})

t.test('K64: a change of policy ends the streams of callers whose view it changes, and no others', async (t) => {
  const [ofAnn, ofBob] = [await open(t, ann.text), await open(t, bob.text)]
  const target = { target: '/mcp', headers: [`Authorization: Bearer ${ann.text}`, 'Accept: text/event-stream'] }
  const mcp = await openEvents(url, target)
  t.teardown(() => { mcp.destroy() })
  // Both groups see the same skills as before, by another rule.
  await setAccess(accessOf(ALL, `${OPS}${DOCS}`))
  for (const [rules, skills] of [
    [`${DOCS}${OPS}  - { groups: [docs], roots: [ops] }\n`, ['guide', 'pager', 'plain']],
    [DOCS + OPS, ['guide', 'plain']]
  ] as const) {
    const stream = await open(t, ann.text)
    await setAccess(accessOf(ALL, rules))
    await stream.until('its end', () => stream.complete)
    t.strictSame(await (await get('/skills', ann.text)).json(), { skills })
    const headers = [`Authorization: Bearer ${ann.text}`, `Last-Event-ID: ${stream.lastEventId}`]
    const resumed = await openEvents(url, { headers })
    t.match(await resumed.event(0), { type: 'reset' })
    appendFileSync(join(folder, 'ops/pager/SKILL.md'), '!')
    appendFileSync(join(folder, 'docs/guide/SKILL.md'), '!')
    await resumed.until('the edit', () => resumed.events.some(({ data }) => data['name'] === 'guide'))
    if (skills.length === 2) t.notMatch(JSON.stringify(resumed.events), 'pager')
    resumed.destroy()
  }
  for (const stream of [ofAnn, mcp]) await stream.until('its end', () => stream.complete)
  t.notOk(ofBob.complete, 'bob sees what he saw')
})

t.test('K60: a token that is removed, or loses the scope for skills, ends its streams', async (t) => {
  const other = await open(t, bob.text)
  for (const [entries, status] of [
    [[bob.entry], 401], [[ann.entry.replace('groups', 'scopes: [metrics:read], groups'), bob.entry], 403]
  ] as const) {
    const all = (await get('/events', ann.text)).text()
    await setAccess(accessOf(entries))
    t.match(await all, 'retry:', 'it ends')
    t.equal((await get('/skills', ann.text)).status, status)
    t.equal((await get('/skills', bob.text)).status, 200)
    await setAccess(accessOf(ALL))
  }
  t.notOk(other.connection.ended)
})

t.test('K60 K64: a request under way sees what its caller may see when its body is there', async (t) => {
  const moved = await begin(t, '/agent/tools/list_skills', listSkills(ann.text))
  await setAccess(accessOf([ann.entry, cy.entry.replace('[docs, ops]', '[docs]')]))
  moved.finish()
  const { json } = await moved.connection.response()
  t.strictSame(json(), { skills: ['guide', 'plain'] }, 'another caller got other groups')
  const call = await begin(t, '/agent/tools/list_skills', listSkills(ann.text))
  const stream = await begin(t, '/mcp', listenRequest(bearer(ann.text)))
  await setAccess(accessOf([bob.entry]))
  call.finish()
  t.notMatch((await call.connection.response()).text, 'guide')
  stream.finish()
  await stream.connection.closed({ timeoutMs: 10_000 })
  await setAccess(accessOf(ALL))
})

t.test('K60: a broken file widens nothing: the last good one stays, and the log and /readyz say so', async (t) => {
  await breakAccess(`${accessOf(ALL)}  - { group: [docs] }\n`)
  t.match(logText(), 'access.yaml:8: rules[2].group is an unknown key; allowed: groups, roots, skills')
  for (const text of ['', '\0\0', `${accessOf(ALL)}  - { groups: [docs], roots: [op`]) {
    await breakAccess(text)
    t.strictSame(await (await get('/skills', ann.text)).json(), { skills: ['guide', 'plain'] })
    t.equal((await get('/skills')).status, 401)
    const state = await (await get('/readyz', ann.text)).json()
    t.match(state, { status: 'ready', detail: /the last good one stays in force/ })
  }
  rmSync(join(folder, 'access.yaml'))
  t.equal((await get('/skills', ann.text)).status, 200)
  await setAccess(accessOf([ann.entry]))
  t.equal((await get('/skills', bob.text)).status, 401)
  t.notMatch(JSON.stringify(await (await get('/readyz', ann.text)).json()), 'last good one')
  await setAccess(accessOf(ALL))
})

t.test('K64: a cursor of one view is not valid in another', async (t) => {
  const { next_cursor: cursor } = await (await get('/catalog?limit=1', ann.text)).json() as { next_cursor: string }
  t.equal((await get(`/catalog?limit=1&cursor=${cursor}`, ann.text)).status, 200)
  const other = await get(`/catalog?limit=1&cursor=${cursor}`, cy.text)
  t.match([other.status, await other.json()], [400, { code: 'bad_cursor' }])
})

t.test('K62: a stream ends when its token expires, its issuer changes, or its proxy is not a peer', async (t) => {
  const issuer = await startIssuer(t)
  const entry = (fields: string) => `issuers:\n  - { issuer: '${issuer.url}', ${fields} }\n`
  const good = `audiences: ['${AUDIENCE}']`
  const withIssuer = (fields: string) => accessOf(ALL, undefined, entry(fields))
  await setAccess(withIssuer(good))
  const exp = Math.floor(Date.now() / 1_000) - 5
  const late = await openEvents(url, { headers: [`Authorization: Bearer ${await issuer.sign({ exp })}`] })
  t.teardown(() => { late.destroy() })
  const soon = newSecret('soon', `groups: [docs], expires: '${new Date(Date.now() + 1_500).toISOString()}'`)
  await setAccess(accessOf([soon.entry], undefined, entry(good)))
  t.match(await (await get('/events', soon.text)).text(), 'retry:', 'a token that expires')
  t.notOk(late.complete, 'a JWT that the tolerance of clocks admits has its stream as long')
  for (const fields of ['audiences: [other]', `${good}, algorithms: [RS256]`, `${good}, groups_claim: roles`]) {
    await setAccess(withIssuer(good))
    const stream = await get('/events', await issuer.sign())
    t.equal(stream.status, 200)
    await setAccess(withIssuer(fields))
    t.match(await stream.text(), 'retry:', fields)
  }
  const proxied = (peer: string) => accessOf(ALL, undefined, `proxy: { peers: [${peer}] }\n`)
  await setAccess(proxied('127.0.0.1'))
  const headers = { 'x-auth-request-user': 'ann', 'x-auth-request-groups': 'docs' }
  const stream = await get('/events', undefined, { headers })
  t.equal(stream.status, 200)
  await setAccess(proxied('10.0.0.1'))
  t.match(await stream.text(), 'retry:')
})

t.test('K67: callers who leave while the keys for their tokens are read take no stream', async (t) => {
  const issuer = await startIssuer(t)
  const held: Array<() => void> = []
  // From the beginning: the keys are read when the service starts.
  issuer.answer = (request, response) => {
    held.push(() => { issuer.server.emit('request', request, response) })
  }
  const { plugin } = new Limits({ rate: 100, burst: 1_000, hasCallers: true })
  const access = `issuers:\n  - { issuer: '${issuer.url}', audiences: ['${AUDIENCE}'] }\nrules:\n${DOCS}`
  const service = await buildGuarded(t, { roots: { docs: { guide: skill('guide') } }, access, plugins: [plugin] })
  const authorization = `Authorization: Bearer ${await issuer.sign()}`
  const clients = await Promise.all(Array.from({ length: 17 }, () => openRaw(service.url)))
  for (const client of clients) {
    client.send(request('GET', '/events', { headers: [authorization, 'accept: text/event-stream'] }))
  }
  await until(() => held.length > 0)
  for (const client of clients) client.destroy()
  await until(() => service.logText().split('request aborted').length > clients.length)
  issuer.answer = undefined
  for (const answer of held) answer()
  const stream = await service.get('/events', await issuer.sign())
  t.equal(stream.status, 200)
  await stream.body?.cancel()
})
