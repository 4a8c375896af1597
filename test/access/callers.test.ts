import { rmSync } from 'node:fs'
import { join } from 'node:path'
import fp from 'fastify-plugin'
import t from 'tap'
import type { SourceStatus } from '../../src/schemas/health.ts'
import { bearer, buildGuarded, newSecret } from '../helper/guarded.ts'
import { openRaw, rawRequest, request } from '../helper/raw-http.ts'
import { followRoutes } from '../helper/build.ts'
import { skill, skillText } from '../helper/skills.ts'

/** Routes that answer everybody: probes, webhooks, which are signed, and what pages are made of. */
const ASSETS = ['catalog.css', 'catalog.js', 'icon.svg'].map((name) => `/ui/assets/${name}`)
const OPEN = ['/hooks/git', '/livez', '/readyz', ...ASSETS, '/ui/sign-in', '/ui/sign-out']

const END = Math.floor(Date.now() / 1_000) * 1_000 + 86_400_000
const [ann, bob] = [newSecret('ann', 'groups: [docs]'), newSecret('bob', 'groups: [ops]')]
const some = newSecret('some', 'groups: [some]')
const none = newSecret('none')
const late = newSecret('late', 'groups: [docs], expires: 2020-01-01')
const day = newSecret('day', `groups: [docs], expires: ${new Date(END).toISOString().replace('.000', '')}`)
const meter = newSecret('meter', 'scopes: [metrics:read]')

const ACCESS = `tokens:\n${[ann, bob, some, none, late, day, meter].map(({ entry }) => `  - ${entry}\n`).join('')}rules:
  - { groups: [docs], roots: [docs] }
  - { groups: [ops], roots: [ops] }
  - { groups: [some], roots: [docs], skills: [guide] }
`

const SOURCE: SourceStatus = {
  name: 'docs',
  kind: 'git',
  state: 'stale',
  skills: 2,
  revision: 'main@sha1:0123456789abcdef',
  changed_at: '2026-11-22T09:00:00.000Z',
  checked_at: '2026-11-22T10:00:00.000Z',
  failing_since: '2026-11-22T11:00:00.000Z',
  error: { code: 'bad_tree', message: 'hidden/x is not a path' },
  layout: 'tree',
  left_out: { count: 1, first: [{ path: 'hidden/y', reason: 'link_outside' }] }
}

function roots () {
  return {
    docs: { guide: skill('guide', { 'a.md': 'text of a' }), hidden: skill('hidden'), out: t.fixture('symlink', '/') },
    ops: { pager: skill('pager', { 'b.md': 'text of b' }) }
  }
}

const { plugin, all: allRoutes } = followRoutes()
const closed = await buildGuarded(t, {
  roots: roots(),
  access: ACCESS,
  plugins: [plugin],
  sources: { status: [SOURCE], hooks: [] }
})

t.test('K61: without a token every route answers 401, except probes, and webhooks, which are signed', async (t) => {
  const methods = ['GET', 'HEAD', 'POST'] as const
  const routes = allRoutes.flatMap(({ method, url }) => {
    const known = methods.find((each) => each === method)
    const filled = url.replaceAll(/:(\w+)/g, 'guide').replaceAll('*', 'SKILL.md')
    return known === undefined ? [] : { method: known, url: filled }
  })
  t.ok(routes.length > 40, `${routes.length} routes`)
  const others = [
    { method: 'GET' as const, url: '/nosuch' }, { method: 'POST' as const, url: '/skills' },
    { method: 'GET' as const, url: '/t/x/.well-known/skills/index.json' }
  ]
  const answered = new Set<string>()
  for (const route of [...routes, ...others]) {
    const { statusCode, headers, body } = await closed.app.inject(route)
    if (statusCode !== 401) {
      answered.add(route.url.replace(/(?<=assets\/)\w+\//, ''))
      continue
    }
    const { 'www-authenticate': challenge, 'cache-control': control, etag } = headers
    t.strictSame([challenge, control, etag], ['Bearer realm="skillserve"', 'no-store', undefined], route.url)
    if (route.method !== 'HEAD') t.match(JSON.parse(body), { code: 'unauthenticated', status: 401 })
  }
  t.strictSame([...answered].sort(), OPEN)
})

t.test('K61: a token opens every API to what it may see, and hidden is as absent', async (t) => {
  const list = await closed.get('/skills', ann.text)
  t.strictSame(await list.json(), { skills: ['guide', 'hidden'] })
  t.equal(list.headers.get('cache-control'), 'private, no-cache')
  t.match(list.headers.get('vary'), /\bAuthorization\b/)
  for (const rest of [
    '/skills/NAME', '/skills/NAME/files', '/skills/NAME/files/b.md', '/skills/NAME/files/..%2fx',
    '/skills/NAME/archive.zip', '/catalog/NAME', '/skills/NAME?revision=current'
  ]) {
    const [hidden, absent] = await Promise.all(['pager', 'nosuch'].map(async (name) => {
      const init = { headers: { 'if-none-match': '*', 'x-request-id': 'same' } }
      const response = await closed.get(rest.replace('NAME', name), ann.text, init)
      const headers = [...response.headers].filter(([key]) => key !== 'date' && key !== 'content-length')
      return { status: response.status, headers, body: (await response.text()).replaceAll(name, 'NAME') }
    }))
    t.equal(hidden?.status, 404, rest)
    t.strictSame(hidden, absent, rest)
  }
})

t.test('K61: what is wrong with credentials is said as RFC 6750 says it', async (t) => {
  for (const [headers, status, code, challenge] of [
    [[`Authorization: bearer ${ann.text}`], 200],
    [[`Authorization: BEARER ${ann.text}`], 200],
    [['Authorization: Basic YTpi'], 401, 'unauthenticated', 'Bearer realm="skillserve"'],
    [[`Authorization: Bearer ${newSecret('x').text}`], 401, 'invalid_token', /error="invalid_token"/],
    [[`Authorization: Bearer ${ann.text.slice(0, -1)}!`], 400, 'invalid_credentials'],
    [[`Authorization: Bearer ${ann.text.replace(/.$/, (last) => last === 'a' ? 'b' : 'a')}`], 401, 'invalid_token'],
    [[`Authorization: Bearer ${late.text}`], 401, 'token_expired', /error="invalid_token"/],
    [[`Authorization: Bearer ${meter.text}`], 403, 'insufficient_scope', /="insufficient_scope", scope="skills:read"/],
    [Array(2).fill(`Authorization: Bearer ${ann.text}`), 400, 'invalid_credentials', /="invalid_request"/],
    [[`Authorization: Bearer ${'a'.repeat(9_000)}`], 400, 'invalid_credentials'],
    [['Authorization: Bearer a.b.c'], 401, 'invalid_token'],
    [['X-Auth-Request-User: root', 'X-Auth-Request-Groups: docs'], 401, 'unauthenticated']
  ] as const) {
    const response = await rawRequest(closed.url, request('GET', '/skills', { headers }))
    t.equal(response.status, status, headers.join().slice(0, 60))
    if (code !== undefined) t.equal((JSON.parse(response.body.toString()) as { code: string }).code, code)
    if (challenge !== undefined) t.match(response.headers['www-authenticate'], challenge)
  }
})

t.test('K61: an admitted token, however it was written, is refused from the moment when it expires', async (t) => {
  const ask = async () => await Promise.all(['Bearer', 'bearer', 'BEARER '].map(async (scheme) => {
    const headers = [`Authorization: ${scheme} ${day.text}`]
    return (await rawRequest(closed.url, request('GET', '/skills', { headers }))).status
  }))
  t.strictSame([await ask(), await ask()], [[200, 200, 200], [200, 200, 200]])
  t.intercept(Date, 'now', { value: () => END })
  t.strictSame(await ask(), [401, 401, 401])
})

t.test('K61: tokens are in no log, one in a query opens nothing, a stranger is refused before its body', async (t) => {
  const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUifQ.c2lnbmF0dXJl'
  for (const token of [ann.text, jwt]) {
    for (const path of ['/skills', '/mcp']) {
      const response = await closed.get(`${path}?access_token=${token}`)
      t.equal(response.status, 400)
      t.match(response.headers.get('www-authenticate'), /error="invalid_request"/)
      t.notMatch(await response.text(), token)
    }
  }
  t.notMatch(closed.logText(), /sks_|eyJ|\b[\da-f]{64}\b/)
  const head = { headers: ['Content-Type: application/json', 'Content-Length: 1000000'] }
  const refused = await rawRequest(closed.url, request('POST', '/agent/tool-call', head))
  t.equal(refused.status, 401)
  t.match(refused.headers['connection'], 'close')
})

t.test('K61: two callers on one connection, pipelined, get each their own', async (t) => {
  const socket = await openRaw(closed.url)
  t.teardown(() => { socket.destroy() })
  const wrong = { text: `${ann.text.slice(0, -1)}${ann.text.endsWith('a') ? 'b' : 'a'}` }
  const callers = [ann, bob, ann, ann, wrong, ann, bob, bob, wrong, wrong, bob]
  socket.send(Buffer.concat(callers.map(({ text }) =>
    request('GET', '/skills', { headers: [`Authorization: ${bearer(text).authorization}`] }))))
  for (const caller of callers) {
    const { status, body } = await socket.response()
    if (caller === wrong) t.equal(status, 401, 'right but for its last character, on a connection that was admitted')
    else t.equal(body.toString(), caller === ann ? '{"skills":["guide","hidden"]}' : '{"skills":["pager"]}')
  }
})

t.test('K64: a caller that sees some skills of a source reads nothing of the others', async (t) => {
  const all = { roots: [{ skills: 2, skipped: 1 }], sources: [SOURCE] }
  t.match(await (await closed.get('/readyz', ann.text)).json(), all)
  const state = await (await closed.get('/readyz', some.text)).json()
  const { name, kind, checked_at: checkedAt, failing_since: since } = SOURCE
  const error = { code: 'bad_tree', message: 'the log says why' }
  const seen = { name, kind, state: 'stale', skills: 1, checked_at: checkedAt, failing_since: since, error }
  t.match(state, { roots: [{ skills: 1, skipped: 0 }], sources: [seen] })
  t.notMatch(JSON.stringify(state), /hidden|0123456789ab/)
  const page = await (await closed.get('/ui/status', some.text)).text()
  t.match(page, 'not up to date')
  t.notMatch(page, /hidden|0123456789ab|skipped</)
})

t.test('K61, K62, K64: a service with an anonymous view and a proxy', async (t) => {
  const meterRoute = fp(async (app) => {
    app.get('/meter', { config: { scope: 'metrics:read' }, schema: { hide: true } }, async (request, reply) =>
      reply.header('cache-control', request.headers['x-says']).send(''))
  })
  const open = await buildGuarded(t, {
    roots: roots(),
    access: `anonymous: [public]\nproxy: { peers: [127.0.0.1] }\n${ACCESS}  - { groups: [public], skills: [pag*] }\n`,
    plugins: [meterRoute]
  })

  await t.test('K62: a proxy names one user and a list of groups, each header once', async (t) => {
    const ask = (...headers: readonly string[]) => rawRequest(open.url, request('GET', '/skills', { headers }))
    t.equal((await ask('X-Auth-Request-User: ann', 'X-Auth-Request-Groups: docs')).status, 200)
    for (const twice of ['X-Auth-Request-User: root', 'X-Auth-Request-Groups: ops']) {
      const response = await ask('X-Auth-Request-User: ann', 'X-Auth-Request-Groups: docs', twice)
      const detail = /a proxy sends each of its headers once/
      t.match(response.json(), { status: 400, code: 'invalid_credentials', detail })
    }
    const say = (user: string, groups: string) =>
      open.get('/skills', undefined, { headers: { 'x-auth-request-user': user, 'x-auth-request-groups': groups } })
    for (const separator of [',', ' | ', '; ']) {
      const groups = ['ops', '', 'docs'].join(separator)
      t.strictSame(await (await say('ann', groups)).json(), { skills: ['guide', 'hidden', 'pager'] }, separator)
    }
    t.equal((await say('a'.repeat(256), Array(500).fill('docs').join())).status, 200)
    const many = Array(501).fill('docs').join()
    for (const [user, groups] of [['', 'docs'], ['a'.repeat(257), 'docs'], ['ann', many]] as const) {
      t.match(await (await say(user, groups)).json(), { status: 400, code: 'invalid_credentials' })
    }
  })

  await t.test('K61 K65: a caller without credentials is asked for some, where nobody may do without', async (t) => {
    const { status, headers } = await open.get('/meter')
    t.strictSame([status, headers.get('www-authenticate')], [401, 'Bearer realm="skillserve"'])
    for (const [said, sent] of [
      ['public, max-age=60', 'private, max-age=60'], ['max-age=60', 'private, max-age=60'],
      ['no-cache', 'private, no-cache'], ['no-store', 'no-store'], ['max-age=5, private', 'max-age=5, private']
    ] as const) {
      const response = await open.get('/meter', meter.text, { headers: { 'x-says': said } })
      t.strictSame([response.status, response.headers.get('cache-control')], [200, sent])
    }
  })

  await t.test('K64: an anonymous view answers 401 for every miss, and is a part of every view', async (t) => {
    t.strictSame(await (await open.get('/skills')).json(), { skills: ['pager'] })
    for (const name of ['guide', 'nosuch']) t.equal((await open.get(`/skills/${name}`)).status, 401)
    t.strictSame(await (await open.get('/skills', ann.text)).json(), { skills: ['guide', 'hidden', 'pager'] })
    t.equal((await open.get('/skills/nosuch', ann.text)).status, 404)
    t.equal((await open.get('/skills', 'wrong')).status, 401, 'a bad token is not anonymous')
  })

  await t.test('K62 K50: anonymous callers see the status of /readyz, and no more', async (t) => {
    for (const [{ get }, token] of [[closed], [closed, 'wrong'], [open]] as const) {
      t.strictSame(await (await get('/readyz', token)).json(), { status: 'ready' })
    }
    const page = await open.get('/ui/status')
    t.equal(page.status, 401)
    t.match(page.headers.get('www-authenticate'), /^Bearer /)
    const nothing = await (await closed.get('/readyz', none.text)).json() as object
    t.match(nothing, { status: 'ready', skills: 0, roots: [] })
    t.notOk(Object.hasOwn(nothing, 'detail'))
    for (const name of Object.keys(roots())) rmSync(join(open.folder, name), { recursive: true })
    const away = await open.get('/readyz')
    t.strictSame([away.status, away.headers.get('cache-control')], [503, 'no-store'])
    const { requestId, ...problem } = await away.json() as Readonly<Record<string, unknown>>
    t.strictSame(Object.keys(problem).sort(), ['code', 'detail', 'error', 'instance', 'status', 'title', 'type'])
    t.notMatch(JSON.stringify(problem), /docs|ops/)
  })
})

const [both, twin] = [newSecret('both', 'groups: [team]'), newSecret('twin', 'groups: [team]')]
const one = newSecret('one', 'groups: [staff]')

t.test('K64: the skill of a team hides one of all for that team only, and those who see both are told', async (t) => {
  const shared = () => ({ deploy: { 'SKILL.md': skillText('deploy', 'of all') }, guide: skill('guide') })
  const rules = '  - { groups: [team], roots: [team, common, third] }\n  - { groups: [staff], roots: [common] }\n'
  const access = `tokens:\n${[both, one, twin].map(({ entry }) => `  - ${entry}\n`).join('')}rules:\n${rules}`
  const roots = {
    team: { deploy: { 'SKILL.md': skillText('deploy', 'of the team') } }, common: shared(), third: shared()
  }
  const { get, setAccess } = await buildGuarded(t, { roots, access })
  t.match(await (await get('/skills/deploy', both.text)).text(), 'of the team')
  t.match(await (await get('/skills/deploy', one.text)).text(), 'of all')
  const message = "skills of the same name are hidden by this one in: 'common', 'third'"
  t.match(await (await get('/catalog/deploy', both.text)).json(), { findings: [{ code: 'shadowed', message }] }, 'K7')
  t.notMatch(await (await get('/catalog/deploy', one.text)).text(), /shadowed|team/)
  for (const [caller, hides] of [[both, true], [one, false], [both, true]] as const) {
    t.equal((await (await get('/catalog/guide', caller.text)).text()).includes('third'), hides,
      'of one skill, each is told of the roots in its view')
  }

  await t.test('K61: while a group is granted and revoked, each answer is that of one policy', async (t) => {
    const revoked = access.replace('[team, common, third]', '[common]')
    const stopped = new AbortController()
    const answers = new Set<string>()
    const readers = Array.from({ length: 2 }, async () => {
      while (!stopped.signal.aborted) {
        const response = await get('/skills/deploy', both.text, { headers: { accept: 'text/markdown' } })
        answers.add(`${response.status} ${await response.text()}`)
      }
    })
    for (let change = 0; change < 4; change++) await setAccess(change % 2 === 0 ? revoked : access)
    stopped.abort()
    await Promise.all(readers)
    const texts = ['of all', 'of the team'].map((text) => `200 ${skillText('deploy', text)}`)
    t.strictSame([...answers].sort(), texts)
  })
})
