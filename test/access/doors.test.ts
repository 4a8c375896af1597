import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import t from 'tap'
import type { SourceStatus } from '../../src/schemas/health.ts'
import { bearer, buildGuarded, newSecret } from '../helper/guarded.ts'
import { responseCheckOf } from '../helper/openapi.ts'
import { openRaw, rawRequest, request } from '../helper/raw-http.ts'
import { followRoutes } from '../helper/routes.ts'
import { skill } from '../helper/skills.ts'

const OPEN = ['/hooks/git', '/livez', '/readyz', '/ui/assets/guide']

const ann = newSecret('ann', 'groups: [docs]')
const late = newSecret('late', 'groups: [docs], expires: 2020-01-01')
const meter = newSecret('meter', 'scopes: [metrics:read]')

const ACCESS = `
tokens:
  - ${ann.entry}
  - ${late.entry}
  - ${meter.entry}
rules:
  - { groups: [docs], roots: [docs] }
`

function roots () {
  return { docs: { guide: skill('guide', { 'a.md': 'text of a' }) }, ops: { pager: skill('pager', { 'b.md': 'text of b' }) } }
}

t.test('K61: without a token every route answers 401, except probes, and webhooks, which are signed', async (t) => {
  const { plugin, all } = followRoutes()
  const { app } = await buildGuarded(t, { roots: roots(), access: ACCESS, plugins: [plugin] })
  const methods = ['GET', 'HEAD', 'POST'] as const
  const routes = all.flatMap(({ method, url }) => {
    const known = methods.find((each) => each === method)
    return known === undefined ? [] : { method: known, url: url.replaceAll(/:(\w+)/g, 'guide').replaceAll('*', 'SKILL.md') }
  })
  t.ok(routes.length > 40, `${routes.length} routes`)
  const answered = new Set<string>()
  for (const route of [...routes, { method: 'GET' as const, url: '/nosuch' }, { method: 'POST' as const, url: '/skills' }, { method: 'GET' as const, url: '/t/x/.well-known/skills/index.json' }]) {
    const { statusCode, headers, body } = await app.inject(route)
    if (statusCode === 401) {
      t.equal(headers['www-authenticate'], 'Bearer realm="skillserve"', route.url)
      t.equal(headers['cache-control'], 'no-store')
      t.notOk(headers.etag)
      if (route.method !== 'HEAD') t.match(JSON.parse(body), { code: 'unauthenticated', status: 401 })
    } else answered.add(route.url)
  }
  t.strictSame([...answered].sort(), OPEN)
})

t.test('K61: a token opens every door to what it may see, and hidden is as absent', async (t) => {
  const service = await buildGuarded(t, { roots: roots(), access: ACCESS })
  const list = await service.get('/skills', ann.text)
  t.equal(list.status, 200)
  t.strictSame(await list.json(), { skills: ['guide'] })
  t.equal(list.headers.get('cache-control'), 'private, no-cache')
  t.match(list.headers.get('vary'), /\bAuthorization\b/)
  for (const path of ['/skills/NAME', '/skills/NAME/files', '/skills/NAME/files/b.md', '/skills/NAME/files/..%2fx', '/skills/NAME/archive.zip', '/catalog/NAME', '/skills/NAME?revision=current']) {
    const [hidden, absent] = await Promise.all(['pager', 'nosuch'].map(async (name) => {
      const response = await service.get(path.replace('NAME', name), ann.text, { headers: { 'if-none-match': '*', 'x-request-id': 'same' } })
      const headers = Object.fromEntries([...response.headers].filter(([key]) => key !== 'date' && key !== 'content-length'))
      return { status: response.status, headers, body: (await response.text()).replaceAll(name, 'NAME') }
    }))
    t.equal(hidden?.status, 404, path)
    t.strictSame(hidden, absent, path)
  }
})

t.test('K61: what is wrong with credentials is said as RFC 6750 says it', async (t) => {
  const { url } = await buildGuarded(t, { roots: roots(), access: ACCESS })
  const ask = (...headers: readonly string[]) => rawRequest(url, request('GET', '/skills', { headers }))
  for (const [headers, status, code, challenge] of [
    [[`Authorization: bearer ${ann.text}`], 200],
    [[`Authorization: BEARER ${ann.text}`], 200],
    [['Authorization: Basic YTpi'], 401, 'unauthenticated', 'Bearer realm="skillserve"'],
    [[`Authorization: Bearer ${newSecret('x').text}`], 401, 'invalid_token', /error="invalid_token"/],
    [[`Authorization: Bearer ${ann.text.slice(0, -1)}!`], 400, 'invalid_credentials'],
    [[`Authorization: Bearer ${ann.text.replace(/.$/, (last) => last === 'a' ? 'b' : 'a')}`], 401, 'invalid_token'],
    [[`Authorization: Bearer ${late.text}`], 401, 'token_expired', /error="invalid_token"/],
    [[`Authorization: Bearer ${meter.text}`], 403, 'insufficient_scope', /error="insufficient_scope", scope="skills:read"/],
    [[`Authorization: Bearer ${ann.text}`, `Authorization: Bearer ${ann.text}`], 400, 'invalid_credentials', /error="invalid_request"/],
    [[`Authorization: Bearer ${'a'.repeat(9_000)}`], 400, 'invalid_credentials'],
    [['Authorization: Bearer a.b.c'], 401, 'invalid_token'],
    [['X-Auth-Request-User: root', 'X-Auth-Request-Groups: docs'], 401, 'unauthenticated']
  ] as const) {
    const response = await ask(...headers)
    t.equal(response.status, status, headers.join().slice(0, 60))
    if (code !== undefined) t.equal((JSON.parse(response.body.toString()) as { code: string }).code, code)
    if (challenge !== undefined) t.match(response.headers['www-authenticate'], challenge)
  }
})

t.test('K61: a token that was admitted, however it was written, is refused from the moment when it expires', async (t) => {
  const end = Math.floor(Date.now() / 1_000) * 1_000 + 86_400_000
  const day = newSecret('day', `groups: [docs], expires: ${new Date(end).toISOString().replace('.000', '')}`)
  const { url } = await buildGuarded(t, { roots: roots(), access: `tokens: [${day.entry}]\nrules: [{ groups: [docs], roots: [docs] }]\n` })
  const ask = async () => await Promise.all(['Bearer', 'bearer', 'BEARER '].map(async (scheme) =>
    (await rawRequest(url, request('GET', '/skills', { headers: [`Authorization: ${scheme} ${day.text}`] }))).status))
  t.strictSame([await ask(), await ask()], [[200, 200, 200], [200, 200, 200]])
  t.intercept(Date, 'now', { value: () => end })
  t.strictSame(await ask(), [401, 401, 401])
})

t.test('K62: headers of a proxy that came twice are refused, and the answer says what to look for', async (t) => {
  const { url } = await buildGuarded(t, { roots: roots(), access: `proxy: { peers: [127.0.0.1] }\n${ACCESS.trimStart()}` })
  const ask = (...headers: readonly string[]) => rawRequest(url, request('GET', '/skills', { headers }))
  t.equal((await ask('X-Auth-Request-User: ann', 'X-Auth-Request-Groups: docs')).status, 200)
  for (const twice of ['X-Auth-Request-User: root', 'X-Auth-Request-Groups: ops']) {
    const response = await ask('X-Auth-Request-User: ann', 'X-Auth-Request-Groups: docs', twice)
    t.equal(response.status, 400, twice)
    t.match(response.json(), { code: 'invalid_credentials', detail: /a proxy sends each of its headers once/ })
  }
})

t.test('K62: a proxy names one user and a list of groups, and what is no name or too long is refused', async (t) => {
  const { get } = await buildGuarded(t, { roots: roots(), access: `proxy: { peers: [127.0.0.1] }\n${ACCESS.trimStart()}  - { groups: [ops], roots: [ops] }\n` })
  const ask = (user: string, groups: string) => get('/skills', undefined, { headers: { 'x-auth-request-user': user, 'x-auth-request-groups': groups } })
  for (const separator of [',', ' | ', '; ']) t.strictSame(await (await ask('ann', ['ops', '', 'docs'].join(separator))).json(), { skills: ['guide', 'pager'] }, separator)
  t.strictSame(await (await ask('a'.repeat(256), Array(500).fill('docs').join())).json(), { skills: ['guide'] })
  for (const [user, groups] of [['', 'docs'], ['a'.repeat(257), 'docs'], ['ann', Array(501).fill('docs').join()]] as const) {
    t.match(await (await ask(user, groups)).json(), { status: 400, code: 'invalid_credentials' }, user.slice(0, 9))
  }
})

t.test('K61: who sends no credentials is asked for some, where those of everybody do not suffice', async (t) => {
  const meterRoute: FastifyPluginAsync = fp(async (app) => {
    app.get('/meter', { config: { scope: 'metrics:read' }, schema: { hide: true } }, async (request, reply) => reply.header('cache-control', request.headers['x-says']).send(''))
  })
  const { get } = await buildGuarded(t, { roots: roots(), access: `anonymous: [docs]\n${ACCESS}`, plugins: [meterRoute] })
  t.equal((await get('/skills')).status, 200)
  const { status, headers } = await get('/meter')
  t.equal(status, 401)
  t.equal(headers.get('www-authenticate'), 'Bearer realm="skillserve"')
  t.equal((await get('/meter', meter.text)).status, 200)
  for (const [said, sent] of [
    ['public, max-age=60', 'private, max-age=60'], ['max-age=60', 'private, max-age=60'], ['no-cache', 'private, no-cache'], ['no-store', 'no-store'],
    ['max-age=5, private', 'max-age=5, private']
  ] as const) t.equal((await get('/meter', meter.text, { headers: { 'x-says': said } })).headers.get('cache-control'), sent, `K65: ${said}`)
})

t.test('K61: a token in the query is refused, and is in no log', async (t) => {
  const service = await buildGuarded(t, { roots: roots(), access: ACCESS })
  const response = await service.get(`/skills?access_token=${ann.text}`)
  t.equal(response.status, 400)
  t.notMatch(await response.text(), ann.text)
  await service.get('/skills', ann.text)
  await service.get('/skills', newSecret('x').text)
  t.notMatch(service.logText(), /sks_/)
  t.notMatch(service.logText(), /\b[\da-f]{64}\b/)
})

t.test('K61: refused before the body is read', async (t) => {
  const { url } = await buildGuarded(t, { roots: roots(), access: ACCESS })
  const response = await rawRequest(url, request('POST', '/agent/tool-call', { headers: ['Content-Type: application/json', 'Content-Length: 1000000'] }))
  t.equal(response.status, 401)
  t.match(response.headers['connection'], 'close')
})

t.test('K62: anonymous callers see the status of /readyz and no more', async (t) => {
  const service = await buildGuarded(t, { roots: roots(), access: ACCESS })
  t.strictSame(await (await service.get('/readyz')).json(), { status: 'ready' })
  const open = await buildGuarded(t, { roots: roots(), access: `anonymous: [public]\n${ACCESS}  - { groups: [public], roots: [docs] }\n` })
  t.equal((await open.get('/skills/guide')).status, 200)
  t.strictSame(await (await open.get('/readyz')).json(), { status: 'ready' }, 'also who may read some skills')
  const page = await open.get('/ui/status')
  t.equal(page.status, 401)
  t.match(page.headers.get('www-authenticate'), /^Bearer /)
  t.strictSame(await (await service.get('/readyz', 'wrong')).json(), { status: 'ready' })
  t.match(await (await service.get('/readyz', ann.text)).json(), { status: 'ready', skills: 1, roots: [{ name: 'docs', skills: 1 }] })
  for (const name of Object.keys(roots())) rmSync(join(service.folder, name), { recursive: true })
  const away = await service.get('/readyz')
  t.strictSame([away.status, away.headers.get('cache-control')], [503, 'no-store'])
  const { requestId, ...problem } = await away.json() as Readonly<Record<string, unknown>>
  t.strictSame(Object.keys(problem).sort(), ['code', 'detail', 'error', 'instance', 'status', 'title', 'type'], 'that it is not ready, and nothing of the folders')
  t.notMatch(JSON.stringify(problem), 'docs')
})

t.test('K50: who sees no folder reads of nothing wrong', async (t) => {
  const cy = newSecret('cy')
  const service = await buildGuarded(t, { roots: roots(), access: ACCESS.replace('tokens:', `tokens:\n  - ${cy.entry}`) })
  const state = await (await service.get('/readyz', cy.text)).json()
  t.match(state, { status: 'ready', skills: 0, roots: [] })
  t.notOk(Object.hasOwn(state as object, 'detail'))
  t.match(await (await service.get('/ui/status', cy.text)).text(), /verdict good">ready</)
})

t.test('K64: who sees some skills of a folder is not told how many entries of it are skipped', async (t) => {
  const cy = newSecret('cy', 'groups: [some]')
  const service = await buildGuarded(t, {
    roots: { docs: { guide: skill('guide'), hidden: t.fixture('symlink', '/') } },
    access: `tokens:\n  - ${ann.entry}\n  - ${cy.entry}\nrules:\n  - { groups: [docs] }\n  - { groups: [some], skills: [guide] }\n`
  })
  t.match(await (await service.get('/readyz', ann.text)).json(), { roots: [{ skills: 1, skipped: 1 }] })
  t.match(await (await service.get('/readyz', cy.text)).json(), { roots: [{ skills: 1, skipped: 0 }] })
})

t.test('K64: who sees some skills of a source is told nothing of its others: no count, name, path, revision or error that quotes them', async (t) => {
  const cy = newSecret('cy', 'groups: [some]')
  const source: SourceStatus = {
    name: 'docs',
    kind: 'git',
    state: 'stale',
    skills: 2,
    revision: 'main@sha1:0123456789abcdef',
    changed_at: '2026-11-22T09:00:00.000Z',
    checked_at: '2026-11-22T10:00:00.000Z',
    failing_since: '2026-11-22T11:00:00.000Z',
    error: { code: 'bad_tree', message: 'hidden/x is no path' },
    layout: 'tree',
    places: [{ path: 'hidden', skills: 1 }],
    left_out: { count: 1, first: [{ path: 'hidden/y', reason: 'link_outside' }] }
  }
  const service = await buildGuarded(t, {
    roots: { docs: { guide: skill('guide'), hidden: skill('hidden') } },
    access: `tokens:\n  - ${ann.entry}\n  - ${cy.entry}\nrules:\n  - { groups: [docs] }\n  - { groups: [some], skills: [guide] }\n`,
    sources: { status: [source], hooks: [], githubOf: () => ({ repository: 'acme/docs', commit: '0123456789'.repeat(4), prefix: '' }) }
  })
  t.match(await (await service.get('/readyz', ann.text)).json(), { sources: [source] })
  const state = await (await service.get('/readyz', cy.text)).json() as { readonly sources: unknown }
  const { name, kind, checked_at: checkedAt, failing_since: since } = source
  t.strictSame(state.sources, [{ name, kind, state: 'stale', skills: 1, checked_at: checkedAt, failing_since: since, error: { code: 'bad_tree', message: 'the log says why' } }])
  t.notMatch(JSON.stringify(state), /hidden|0123456789ab/)
  const page = await (await service.get('/ui/status', cy.text)).text()
  t.match(page, 'not up to date')
  t.notMatch(page, /hidden|0123456789ab|left out</)
  const html = { headers: { accept: 'text/html' } }
  t.match(await (await service.get('/ui/skills/guide', ann.text, html)).text(), 'acme/docs')
  const pageOfSkill = await (await service.get('/ui/skills/guide', cy.text, html)).text()
  t.match(pageOfSkill, 'What guide is for')
  t.notMatch(pageOfSkill, /acme|0123456789ab/)
})

t.test('K64: a search fails for nobody because of a folder that its caller does not see, and says nothing of it', async (t) => {
  const cy = newSecret('cy', 'groups: [docs, ops]')
  const service = await buildGuarded(t, { roots: roots(), access: `${ACCESS.replace('tokens:', `tokens:\n  - ${cy.entry}`)}  - { groups: [ops], roots: [ops] }\n` })
  const search = async (token: string) => {
    const response = await service.get('/catalog?q=guide', token)
    return { status: response.status, body: await response.text() }
  }
  const before = await search(ann.text)
  t.equal(before.status, 200)
  rmSync(join(service.folder, 'ops'), { recursive: true })
  t.strictSame(await (await service.get('/skills', cy.text)).json(), { skills: ['guide'] }, 'the folder is known to be gone')
  t.strictSame(await search(ann.text), before)
  t.equal((await search(cy.text)).status, 200, 'nor for who sees both, as of every other list')
})

t.test('K64: an anonymous view answers 401 for every miss', async (t) => {
  const service = await buildGuarded(t, { roots: roots(), access: `anonymous: [public]\n${ACCESS}  - { groups: [public], skills: [pag*] }\n` })
  t.strictSame(await (await service.get('/skills')).json(), { skills: ['pager'] })
  for (const name of ['guide', 'nosuch']) t.equal((await service.get(`/skills/${name}`)).status, 401)
  t.strictSame(await (await service.get('/skills', ann.text)).json(), { skills: ['guide', 'pager'] }, 'it is a part of every view')
  t.equal((await service.get('/skills/nosuch', ann.text)).status, 404)
  t.equal((await service.get('/skills', 'wrong')).status, 401, 'a bad token is not anonymous')
})

t.test('K62: without issuers there are no OAuth metadata', async (t) => {
  const service = await buildGuarded(t, { roots: roots(), access: ACCESS, publicUrl: 'https://skills.example' })
  for (const path of ['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-authorization-server']) {
    const response = await service.get(path)
    t.equal(response.status, 404, path)
    t.equal(response.headers.get('content-type'), 'application/problem+json')
  }
  const below = await buildGuarded(t, { roots: roots(), access: ACCESS, publicUrl: 'https://skills.example/base', basePath: '/base' })
  for (const name of ['oauth-authorization-server', 'openid-configuration']) {
    for (const path of [`/.well-known/${name}`, `/.well-known/${name}/base/mcp`, `/base/.well-known/${name}`, `/base/mcp/.well-known/${name}`]) t.equal((await below.get(path)).status, 404, path)
  }
  for (const path of ['/base/skills?x=/.well-known/oauth-x', '/base/skills/guide/files/.well-known/oauth-x', '/nosuch']) t.equal((await below.get(path)).status, 401, path)
})

t.test('K61: two callers on one connection, pipelined, get each their own', async (t) => {
  const bob = newSecret('bob', 'groups: [ops]')
  const { url } = await buildGuarded(t, { roots: roots(), access: `${ACCESS.replace('tokens:', `tokens:\n  - ${bob.entry}`)}  - { groups: [ops], roots: [ops] }\n` })
  const one = (token: string) => request('GET', '/skills', { headers: [`Authorization: ${bearer(token).authorization}`] })
  const socket = await openRaw(url)
  t.teardown(() => { socket.destroy() })
  const wrong = { text: `${ann.text.slice(0, -1)}${ann.text.endsWith('a') ? 'b' : 'a'}` }
  const callers = [ann, bob, ann, ann, wrong, ann, bob, bob, wrong, wrong, bob]
  socket.send(Buffer.concat(callers.map(({ text }) => one(text))))
  for (const caller of callers) {
    const { status, body } = await socket.response()
    if (caller === wrong) t.equal(status, 401, 'a token that is right but for its last character, on a connection that was admitted')
    else t.equal(body.toString(), caller === ann ? '{"skills":["guide"]}' : '{"skills":["pager"]}')
  }
})

t.test('K64: compressed answers that are kept are those of the caller, though another skill has equal files', async (t) => {
  const ben = newSecret('ben', 'groups: [ops]')
  const text = 'the same text in two skills\n'.repeat(100)
  const twin = (name: string, file: string) => ({ [name]: { 'SKILL.md': `---\nname: twin\ndescription: of both\n---\n${text}`, [file]: text } })
  const service = await buildGuarded(t, {
    roots: { docs: twin('first', 'open.txt'), ops: twin('secret', 'hidden.txt') },
    access: `tokens: [${ann.entry}, ${ben.entry}]\nrules: [{ groups: [docs], roots: [docs] }, { groups: [ops], roots: [ops] }]\n`
  })
  const paths = ['/skills/NAME', '/skills/NAME/files/FILE', '/skills/NAME/files/FILE?encoding=base64', '/skills/NAME/files', '/skills/NAME/archive.tar', '/catalog/NAME', '/catalog', '/agent/prompt?format=json', '/ui/skills/NAME', '/ui/skills/NAME/files/FILE']
  let compressed = 0
  for (const accept of ['application/json', '*/*', 'text/html']) {
    for (const path of paths) {
      for (const [token, name, file] of [[ben.text, 'secret', 'hidden.txt'], [ann.text, 'first', 'open.txt']] as const) {
        const ask = (encoding: string) => service.get(path.replace('NAME', name).replace('FILE', file), token, { headers: { accept, 'accept-encoding': encoding, 'x-request-id': 'same' } })
        const [form, plain] = [await ask('gzip'), await ask('identity')]
        if (form.headers.get('content-encoding') === 'gzip') compressed++
        const body = await form.text()
        t.equal(body, await plain.text(), `${name}: ${path} as ${accept}`)
        if (name === 'first') t.notMatch(body, /secret|hidden\.txt/, path)
      }
    }
  }
  t.ok(compressed > 20, `${compressed} compressed answers`)
})

t.test('K50: with an access file strangers and callers get of the probes what the OpenAPI document says', async (t) => {
  const token = newSecret('a', 'groups: [all]')
  const service = await buildGuarded(t, { roots: { skills: { demo: skill('demo') } }, access: `tokens:\n  - ${token.entry}\n` })
  const check = responseCheckOf(await (await service.get('/openapi.json', token.text)).text())
  for (const [target, secret] of [['/readyz', undefined], ['/readyz', token.text], ['/livez', undefined], ['/skills', undefined], ['/skills', token.text], ['/', token.text]] as const) {
    const response = await service.get(target, secret)
    const body = Buffer.from(await response.arrayBuffer())
    t.doesNotThrow(() => { check({ method: 'GET', target, status: response.status, headers: Object.fromEntries(response.headers), body }) }, `${target} ${secret === undefined ? 'stranger' : 'caller'}`)
  }
})
