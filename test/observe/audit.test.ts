import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fp from 'fastify-plugin'
import t from 'tap'
import { sha256 } from '../../src/core/shared/digest.ts'
import { overloadError } from '../../src/core/shared/errors.ts'
import type { Principal } from '../../src/http/callers.ts'
import { AuthFailures } from '../../src/observe/audit/auth-failures.ts'
import { type AuditLine, buildAudited, settle } from '../helper/audited.ts'
import type { Service } from '../helper/build.ts'
import { modernRequest } from '../helper/mcp.ts'
import { jsonRequest, openRaw, request } from '../helper/raw-http.ts'
import { skill, skills, until } from '../helper/skills.ts'

t.test('K73: each read through any door leaves one line, with the revision that was read', async (t) => {
  const { fetch, post, next, url } = await buildAudited(t)
  await settle()
  const { headers } = await fetch('/skills/demo/files')
  const revision = headers.get('skill-revision')
  t.match(await next(1), [{ event: 'skill.manifest', outcome: 'success', door: 'rest', target: { skill: 'demo', revision } }])

  const document = await fetch('/skills/demo')
  t.match(await next(1), [{ event: 'skill.read', outcome: 'success', principal: { kind: 'anonymous' }, source: { address: '127.0.0.1' }, target: { skill: 'demo', root: 'skills', revision, digest: sha256(document.bytes), bytes: document.bytes.length } }])
  await fetch('/skills/demo', { headers: { 'if-none-match': document.headers.get('etag') ?? '' } })
  t.match(await next(1), [{ event: 'skill.read', outcome: 'not_modified', target: { skill: 'demo', revision } }])

  for (const [path, event, door, target] of [
    ['/skills/demo/files/a.txt', 'skill.file_read', 'rest', { skill: 'demo', path: 'a.txt', revision }],
    ['/skills/demo/archive.zip', 'skill.archive', 'rest', { skill: 'demo', revision }],
    ['/catalog/demo', 'skill.entry', 'rest', { skill: 'demo', revision }],
    ['/catalog', 'skill.list', 'rest', { skills: 1 }],
    ['/catalog?q=words', 'skill.search', 'rest', { query_length: 5 }],
    [`/catalog?q=${'many%20'.repeat(180)}`, 'skill.search', 'rest', { query_length: 900 }],
    ['/skills', 'skill.list', 'rest', { skills: 1 }],
    ['/agent/prompt', 'skill.list', 'prompt', {}],
    ['/.well-known/agent-skills/index.json', 'discovery.index', 'well-known', { skills: 1 }],
    ['/.well-known/skills/demo/SKILL.md', 'skill.read', 'well-known', { skill: 'demo', path: 'SKILL.md', revision }]
  ] as const) {
    await fetch(path)
    t.match(await next(1), [{ event, outcome: 'success', door, target }], path)
  }

  await post('/agent/tool-call', [
    { id: 'a', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"demo"}' } },
    { id: 'b', type: 'function', function: { name: 'read_file_in_skill', arguments: '{"skill_name":"demo","file_path":"a.txt"}' } },
    { id: 'c', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"none"}' } }
  ])
  // The calls of a batch run at the same time, and each leaves its line when it ends.
  const kindOf = ({ event, outcome }: AuditLine): string => `${String(event)} ${String(outcome)}`
  t.match((await next(3)).toSorted((a, b) => kindOf(a) < kindOf(b) ? -1 : 1), [
    { event: 'skill.file_read', door: 'tool-call/openai', outcome: 'success', target: { skill: 'demo', path: 'a.txt', revision } },
    { event: 'skill.read', outcome: 'not_found', target: { skill: 'none', revision: undefined } },
    { event: 'skill.read', outcome: 'success', target: { skill: 'demo', revision } }
  ])

  const mcp = async (method: string, params: Readonly<Record<string, unknown>>) => (await globalThis.fetch(`${url}/mcp`, modernRequest({ method, params }))).text()
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}, 'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' } }
  await mcp('tools/call', { name: 'get_skill', arguments: { skill_name: 'demo' }, _meta: meta })
  await mcp('resources/read', { uri: 'skill://demo/a.txt' })
  await mcp('resources/read', { uri: 'skill://none/a.txt' })
  const ofMcp = await next(3)
  t.match(ofMcp[0], { client: 'test 1.0.0' })
  t.match(ofMcp.map(({ event, door, outcome, target }) => [event, door, outcome, target]), [
    ['skill.read', 'mcp/modern', 'success', { skill: 'demo', revision }],
    ['skill.file_read', 'mcp/modern', 'success', { skill: 'demo', path: 'a.txt', revision }],
    ['skill.file_read', 'mcp/modern', 'not_found', { skill: 'none', path: 'a.txt' }]
  ])
})

for (const [what, link, target, next] of [['a skill', 'skills/ok', '../v1/ok', '../v2/ok'], ['a folder above it', 'current', 'v1', 'v2']] as const) {
  t.test(`K73: a read before a link of ${what} was switched to older files never has their revision`, async (t) => {
    let switchLink: (() => void) | undefined
    // After the call has ended, and before anything else can run.
    const onSend = fp(async (app) => { app.addHook('onSend', async () => { switchLink?.() }) }, { fastify: '5.x' })
    const service = await buildAudited(t, {
      files: { ok: t.fixture('symlink', link === 'current' ? '../current/ok' : target) },
      siblings: { v1: skills('ok'), v2: { ok: { 'SKILL.md': '# Two' } }, current: t.fixture('symlink', 'v1') },
      linkTargets: ['v1', 'v2'],
      plug: () => [onSend]
    })
    await settle()
    const read = async () => {
      await service.post('/agent/tools/get_skill', { skill_name: 'ok' })
      return (await service.next(1))[0]?.target['revision']
    }
    t.match(await read(), /^sha256:/)
    switchLink = () => {
      switchLink = undefined
      symlinkSync(next, join(service.folder, 'next'))
      renameSync(join(service.folder, 'next'), join(service.folder, link))
    }
    t.equal(await read(), null)
    t.match(await read(), /^sha256:/, 'the read after it has it')
  })
}

for (const [what, change, isLink = false] of [
  ['another file of the skill changed', ({ root }) => { writeFileSync(join(root, 'demo/other.txt'), 'new') }],
  ['a link of the skill was switched to older files', ({ root, folder }) => {
    symlinkSync('../v2/demo', join(folder, 'link'))
    renameSync(join(folder, 'link'), join(root, 'demo'))
  }, true],
  ['the skill became another folder with older files', ({ root, folder }) => {
    renameSync(join(root, 'demo'), join(folder, 'old'))
    renameSync(join(folder, 'next'), join(root, 'demo'))
  }]
] satisfies ReadonlyArray<readonly [string, (service: Service) => void, boolean?]>) {
  t.test(`K73: a download during which ${what} never has the revision after it`, async (t) => {
    const large = Buffer.alloc(32_000_000)
    const demo = { ...skill('demo'), 'large.bin': large }
    const service = await buildAudited(t, {
      files: { demo: isLink ? t.fixture('symlink', '../v1/demo') : demo },
      siblings: { next: skill('demo'), ...isLink && { v1: { demo }, v2: skills('demo') } },
      linkTargets: ['v1', 'v2']
    })
    await settle()
    const connection = await openRaw(service.url)
    connection.send(request('GET', '/skills/demo/files/large.bin'))
    await once(connection.socket, 'data')
    connection.socket.pause()
    change(service)
    await service.fetch('/skills/demo/files')
    const [of] = await service.next(1)
    await settle()
    connection.socket.resume()
    t.equal((await connection.response()).body.length, large.length)
    const [line] = await service.next(1)
    t.match([of, line], [{ event: 'skill.manifest', target: { revision: /^sha256:/ } }, { event: 'skill.file_read', outcome: 'success', target: { bytes: large.length, revision: null } }])
  })
}

t.test('K73: refusals say so, and probes and pages about nothing leave no line', async (t) => {
  const { fetch, post, raw, next } = await buildAudited(t, { admitCall: (_request, tool) => tool?.name === 'list_skills' ? 'Rate limit: try again in 1 s' : undefined })
  await fetch('/livez')
  await fetch('/readyz')
  await fetch('/')
  await fetch('/skills/none')
  await raw('GET', '/skills', { host: 'evil.example' })
  await raw('GET', '/openapi.json', { host: 'evil.example' })
  t.match(await next(3), [
    { event: 'skill.read', outcome: 'not_found', target: { skill: 'none', code: 'skill_not_found' } },
    { event: 'skill.list', outcome: 'denied', target: { code: 'host_not_allowed' } },
    { event: 'access.denied', outcome: 'denied', door: 'rest', target: { code: 'host_not_allowed' } }
  ])
  await post('/agent/tool-call', { no: 'call' })
  await post('/agent/tools/get_skill', '{')
  await post('/agent/tool-call', { function: { name: 'list_skills' } })
  t.match(await next(3), [
    { event: 'access.denied', outcome: 'failure', door: 'tool-call', target: { code: 'unrecognised_tool_call' } },
    { event: 'access.denied', outcome: 'failure', door: 'rest', target: { code: 'invalid_json' } },
    { event: 'skill.list', outcome: 'denied', door: 'tool-call/openai' }
  ])
})

t.test('K73: the digest of a file is that of its bytes, however they are sent', async (t) => {
  const bytes = Buffer.from('a line of text\n'.repeat(1_000))
  const { fetch, next } = await buildAudited(t, { files: { demo: { ...skill('demo'), 'a.txt': bytes } } })
  for (const encoding of ['identity', 'gzip']) {
    t.equal((await fetch('/skills/demo/files/a.txt', { headers: { 'accept-encoding': encoding } })).headers.get('content-encoding'), encoding === 'gzip' ? encoding : null)
    t.match(await next(1), [{ event: 'skill.file_read', outcome: 'success', target: { path: 'a.txt', digest: sha256(bytes) } }], encoding)
  }
})

t.test('K73: a call whose answer is refused when it is made has the line of the call and no other', async (t) => {
  const { app, fetch, next } = await buildAudited(t, { plug: () => [fp(async (app) => { app.addHook('onSend', async ({ url }) => { if (url.startsWith('/agent')) throw overloadError.full() }) })] })
  const { statusCode } = await app.inject({ method: 'POST', url: '/agent/tools/get_skill', headers: { 'content-type': 'application/json' }, payload: '{"skill_name":"demo"}' })
  t.equal(statusCode, 503)
  await fetch('/skills')
  t.match((await next(2)).map(({ event }) => event), ['skill.read', 'skill.list'])
})

t.test('K73: a thousand reads are a thousand lines with ids of their own, and no content and no header is in them', async (t) => {
  const { fetch, text, url } = await buildAudited(t)
  const read = request('GET', '/skills/demo?revision=current', { headers: ['Authorization: Bearer CANARY-TOKEN', 'Cookie: session=CANARY-COOKIE', 'X-Forwarded-For: 203.0.113.7'] })
  await Promise.all(Array.from({ length: 10 }, async () => {
    const connection = await openRaw(url)
    t.teardown(() => { connection.destroy() })
    connection.send(Buffer.concat(Array<Buffer>(100).fill(read)))
    for (let i = 0; i < 100; i++) await connection.response()
  }))
  await fetch('/catalog?q=CANARY-QUERY')
  while (text().split('\n').length < 1002) await new Promise((resolve) => setTimeout(resolve, 5))
  const lines = text().trim().split('\n').map((line) => JSON.parse(line) as AuditLine)
  t.equal(lines.length, 1001)
  t.equal(new Set(lines.map(({ id }) => id)).size, 1001)
  t.match(lines[0], { source: { address: '127.0.0.1', forwarded: '203.0.113.7' } })
  t.notMatch(text(), 'CANARY')
})

t.test('K73: where the log is required, nothing is read while it cannot be written; probes answer', async (t) => {
  const { fetch, break: breakLog } = await buildAudited(t)
  breakLog()
  const { status, headers, json } = await fetch('/skills/demo')
  t.equal(status, 503)
  t.match(json(), { code: 'audit_unavailable' })
  t.ok(headers.get('retry-after'))
  t.equal((await fetch('/livez')).status, 200)
})

t.test('K73: where the log is required, nothing is read while ten thousand lines wait for a revision; probes answer, and /readyz says why', async (t) => {
  const { skills, url, fetch, text } = await buildAudited(t)
  let answer = (_state: undefined): void => {}
  const answered = new Promise<undefined>((resolve) => { answer = resolve })
  skills.inspect = async () => await answered
  t.equal((await fetch('/skills/demo')).status, 200)
  // Each is a line.
  const calls = jsonRequest('POST', '/agent/tool-call', Array(128).fill({ function: { name: 'list_skills' } }))
  const connection = await openRaw(url)
  t.teardown(() => { connection.destroy() })
  connection.send(Buffer.concat(Array<Buffer>(79).fill(calls)))
  for (let batch = 0; batch < 79; batch++) t.equal((await connection.response()).status, 200)
  t.match((await fetch('/skills')).json(), { status: 503, code: 'audit_unavailable' })
  t.match((await fetch('/readyz')).json(), { status: 503, detail: 'the audit log cannot be written, and AUDIT_REQUIRED refuses reads until it can' })
  t.equal((await fetch('/livez')).status, 200)
  answer(undefined)
  await until(() => text() !== '')
  t.equal((await fetch('/skills')).status, 200)
})

t.test('K73: each line has the digest of the one before it', async (t) => {
  const { fetch, text, audit } = await buildAudited(t)
  audit.started()
  for (let i = 0; i < 3; i++) await fetch('/skills')
  await audit.close()
  const lines = text().trim().split('\n')
  t.equal(lines.length, 5)
  const digest = (line = '') => createHash('sha256').update(line).digest('hex')
  for (const [i, line] of lines.entries()) t.equal((JSON.parse(line) as AuditLine)['prev'], i === 0 ? null : digest(lines[i - 1]))
})

t.test('K73: with a salt no name and no address is in it, and equal ones stay equal', async (t) => {
  const ann: Principal = { id: 'jwt:https://login.example/ann', name: 'ann', kind: 'jwt', groups: ['docs'], scopes: new Set(), view: '' }
  const login = fp(async (app) => { app.addHook('onRequest', async (request) => { if (request.url === '/catalog') request.principal = ann }) })
  const { fetch, text, audit } = await buildAudited(t, { salt: 'a salt of some length', plug: () => [login] })
  for (const path of ['/skills', '/skills', '/catalog', '/catalog']) await fetch(path, { headers: { 'x-forwarded-for': '203.0.113.7' } })
  await audit.close()
  t.notMatch(text(), /ann|login/)
  const [, , ...ofAnn] = text().trim().split('\n').map((line) => (JSON.parse(line) as AuditLine).principal)
  t.match(ofAnn, Array(2).fill({ kind: 'jwt', id: /^[\da-f]{24}$/, groups: ['docs'] }))
  t.strictSame(ofAnn[0], ofAnn[1])
  t.notMatch(text(), '127.0.0.1')
  t.notMatch(text(), '203.0.113.7')
  const addresses = text().trim().split('\n').slice(0, 2).map((line) => (JSON.parse(line) as { readonly source: { readonly address: string } }).source.address)
  t.match(addresses[0], /^[\da-f]{24}$/)
  t.equal(addresses[0], addresses[1])
})

t.test('K73: an address that is refused again and again has twenty lines a minute, and then a count; beyond ten thousand, addresses share them', async (t) => {
  const rest: Array<readonly [string, number]> = []
  const failures = new AuthFailures((address, count) => { rest.push([address, count]) })
  let lines = 0
  for (let i = 0; i < 1_000; i++) if (failures.admits('192.0.2.1')) lines++
  t.ok(failures.admits('192.0.2.2'))
  t.equal(lines, 20)
  failures.flush()
  t.strictSame(rest, [['192.0.2.1', 980]])
  t.ok(failures.admits('192.0.2.1'), 'another minute')
  lines = 0
  for (let i = 0; i < 12_000; i++) if (failures.admits(`2001:db8::${i}`)) lines++
  t.equal(lines, 9_999 + 20)
  failures.close()
  t.strictSame(rest.slice(1), [['others', 2_001 - 20]])
})
