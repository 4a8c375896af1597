import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import t, { type Test } from 'tap'
import { Limits } from '../../src/limits/limits.ts'
import { openEvents } from '../helper/event-stream.ts'
import { bearer, buildGuarded, type GuardedService, newSecret } from '../helper/guarded.ts'
import { AUDIENCE, startIssuer } from '../helper/issuer.ts'
import { listenRequest, modernRequest } from '../helper/mcp.ts'
import { openRaw, type RawConnection, request } from '../helper/raw-http.ts'
import { skill, until } from '../helper/skills.ts'

const ROOTS = { docs: { guide: skill('guide') }, ops: { pager: skill('pager') } }
const RULES = 'rules:\n  - { groups: [docs], roots: [docs] }\n  - { groups: [ops], roots: [ops] }\n'

const ann = newSecret('ann', 'groups: [docs]')
const bob = newSecret('bob', 'groups: [docs]')

function access (...entries: readonly string[]): string {
  return `tokens:\n${entries.map((entry) => `  - ${entry}\n`).join('')}${RULES}`
}

/** A request whose caller is known, and whose body is still to come. */
async function begin (t: Test, service: GuardedService, { path, headers, body }: { readonly path: string, readonly headers: Readonly<Record<string, string>>, readonly body: string }): Promise<{ readonly connection: RawConnection, finish (): void }> {
  const connection = await openRaw(service.url)
  t.teardown(() => { connection.destroy() })
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  // The interim answer says that the body is wanted: whoever asks has been admitted.
  connection.send(request('POST', path, { headers: [...lines, `content-length: ${body.length}`, 'expect: 100-continue'] }))
  await until(() => connection.received.includes('100 Continue'))
  return { connection, finish: () => { connection.send(body) } }
}

function listSkills (token: string) {
  return { path: '/agent/tools/list_skills', headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, body: '{}' }
}

function listen (token: string) {
  const { headers, body } = listenRequest({ authorization: `Bearer ${token}` })
  return { path: '/mcp', headers: headers as Record<string, string>, body: String(body) }
}

t.test('K64: a request that is under way while another caller of the same view gets other groups sees what its own may see', async (t) => {
  const service = await buildGuarded(t, { roots: ROOTS, access: access(ann.entry, bob.entry) })
  const stream = await openEvents(service.url, { headers: [`Authorization: Bearer ${bob.text}`] })
  t.teardown(() => { stream.destroy() })
  const { connection, finish } = await begin(t, service, listSkills(ann.text))
  await service.setAccess(access(ann.entry, bob.entry.replace('[docs]', '[ops]')))
  finish()
  t.strictSame((await connection.response()).json(), { skills: ['guide'] })
})

t.test('K60: a request that is under way when its token is removed sees nothing, and opens no stream', async (t) => {
  const service = await buildGuarded(t, { roots: ROOTS, access: access(ann.entry, bob.entry) })
  const [call, stream] = [await begin(t, service, listSkills(ann.text)), await begin(t, service, listen(ann.text))]
  await service.setAccess(access(bob.entry))
  call.finish()
  t.notMatch((await call.connection.response()).text, 'guide')
  stream.finish()
  await stream.connection.closed({ timeoutMs: 10_000 })
})

t.test('K60: an answer of MCP that has begun is finished when the policy changes, as every other', async (t) => {
  let finish = () => {}
  const gate = new Promise<void>((resolve) => { finish = resolve })
  const reached = new Set<string>()
  const hold: FastifyPluginAsync = fp(async (app) => {
    app.addHook('onSend', async ({ url }) => {
      reached.add(url)
      if (url === '/mcp') await gate
    })
  })
  const service = await buildGuarded(t, { roots: ROOTS, access: access(ann.entry, bob.entry), plugins: [hold] })
  const { headers, body } = modernRequest({ method: 'skills/list', params: {} }, bearer(ann.text))
  const answer = fetch(`${service.url}/mcp`, { method: 'POST', headers: headers as Record<string, string>, body: String(body) })
  await until(() => reached.has('/mcp'))
  await service.setAccess(access(bob.entry))
  finish()
  t.match(await (await answer).text(), 'guide')
})

t.test('K60: a token that loses the scope for skills ends its streams', async (t) => {
  const service = await buildGuarded(t, { roots: ROOTS, access: access(ann.entry, bob.entry) })
  const stream = await service.get('/events', ann.text)
  await service.setAccess(access(ann.entry.replace('groups', 'scopes: [metrics:read], groups'), bob.entry))
  t.match(await stream.text(), 'retry:', 'it ends')
})

for (const [label, before, after] of [
  ['audience', `audiences: ['${AUDIENCE}']`, 'audiences: [other]'],
  ['algorithm', `audiences: ['${AUDIENCE}']`, `audiences: ['${AUDIENCE}'], algorithms: [RS256]`],
  ['claim for groups', `audiences: ['${AUDIENCE}']`, `audiences: ['${AUDIENCE}'], groups_claim: roles`]
] as const) {
  t.test(`K62: a JWT whose issuer gets another ${label} ends its streams: it has to be judged anew`, async (t) => {
    const issuer = await startIssuer(t)
    const accessOf = (fields: string) => `issuers:\n  - { issuer: '${issuer.url}', ${fields} }\n${RULES}`
    const service = await buildGuarded(t, { roots: ROOTS, access: accessOf(before) })
    const stream = await service.get('/events', await issuer.sign())
    t.equal(stream.status, 200)
    await service.setAccess(accessOf(after))
    t.match(await stream.text(), 'retry:', 'it ends')
  })
}

t.test('K67: callers who leave while the keys for their tokens are read take no stream', async (t) => {
  const issuer = await startIssuer(t)
  const held: Array<() => void> = []
  // From the beginning: the keys are read when the service starts.
  issuer.answer = (request, response) => {
    held.push(() => { issuer.server.emit('request', request, response) })
  }
  const { plugin } = new Limits({ rate: 100, burst: 1_000, hasCallers: true })
  const service = await buildGuarded(t, { roots: ROOTS, access: `issuers:\n  - { issuer: '${issuer.url}', audiences: ['${AUDIENCE}'] }\n${RULES}`, plugins: [plugin] })
  const authorization = `Authorization: Bearer ${await issuer.sign()}`
  const clients = await Promise.all(Array.from({ length: 17 }, () => openRaw(service.url)))
  for (const [index, client] of clients.entries()) {
    client.send(index === 0
      ? request('POST', '/agent/tool-call', { headers: [authorization, 'content-type: application/json', 'content-length: 1000000'] })
      : request('GET', '/events', { headers: [authorization, 'accept: text/event-stream'] }))
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

t.test('K62: a proxy that is no peer any more ends the streams of its callers', async (t) => {
  const accessOf = (peer: string) => `proxy: { peers: [${peer}] }\n${RULES}`
  const service = await buildGuarded(t, { roots: ROOTS, access: accessOf('127.0.0.1') })
  const stream = await service.get('/events', undefined, { headers: { 'x-auth-request-user': 'ann', 'x-auth-request-groups': 'docs' } })
  t.equal(stream.status, 200)
  await service.setAccess(accessOf('10.0.0.1'))
  t.match(await stream.text(), 'retry:', 'it ends')
})

t.test('K62: a JWT that the tolerance of clocks admits has its stream as long', async (t) => {
  const issuer = await startIssuer(t)
  const accessOf = (entry: string) => `issuers:\n  - { issuer: '${issuer.url}', audiences: ['${AUDIENCE}'] }\n${access(entry)}`
  const service = await buildGuarded(t, { roots: ROOTS, access: accessOf(ann.entry) })
  const soon = new Date(Date.now() + 4_000).toISOString().replace(/\.\d+/, '')
  const other = newSecret('other', `groups: [docs], expires: '${soon}'`)
  await service.setAccess(accessOf(other.entry))
  const late = await openEvents(service.url, { headers: [`Authorization: Bearer ${await issuer.sign({ exp: Math.floor(Date.now() / 1_000) - 5 })}`] })
  t.teardown(() => { late.destroy() })
  // It ends by the same check of all streams.
  t.match(await (await service.get('/events', other.text)).text(), 'retry:')
  t.notOk(late.complete)
})
