import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { digestOf } from '../../src/access/secret.ts'
import { runHere } from '../helper/command-line.ts'
import { bearer, buildGuarded, newSecret } from '../helper/guarded.ts'
import { modernRequest } from '../helper/mcp.ts'
import { freePort, hasProgram } from '../helper/proxies.ts'
import { rawRequest, request } from '../helper/raw-http.ts'
import { installSkills } from '../helper/skills-client.ts'
import { skill, until } from '../helper/skills.ts'

const CLI = fileURLToPath(new URL('../../node_modules/skills/bin/cli.mjs', import.meta.url))
const INDEX = '/.well-known/agent-skills/index.json'
const DAY_MS = 86_400_000

const ann = newSecret('ann', 'groups: [docs]')
const bob = newSecret('bob', 'groups: [ops]')
const link = newSecret('laptops', 'groups: [docs]', 'link')
const old = newSecret('old', 'groups: [docs], expires: 2020-01-01', 'link')
const tomorrow = new Date(Date.now() + DAY_MS).toISOString()
const day = newSecret('day', `groups: [docs], expires: ${tomorrow.slice(0, 10)}`, 'link')
const WEAK = 'laptops-of-2026'
const weak = { entry: `{ name: weak, sha256: ${digestOf(WEAK)}, groups: [docs] }` }

const RULES = 'rules:\n  - { groups: [docs], roots: [docs] }\n  - { groups: [ops], roots: [ops] }\n'

type Entries = ReadonlyArray<{ readonly entry: string }>

function accessOf (tokens: Entries, links: Entries): string {
  const list = (entries: Entries) => entries.map(({ entry }) => `  - ${entry}\n`).join('')
  return `tokens:\n${list(tokens)}links:\n${list(links)}${RULES}`
}

const ACCESS = accessOf([ann, bob], [link])

function roots () {
  return { docs: { guide: skill('guide'), plain: skill('plain') }, ops: { pager: skill('pager') } }
}

async function run (...argv: readonly string[]) {
  const { code, stdout: out, stderr: err } = await runHere(argv, { cwd: process.cwd() })
  return { code, out, err }
}

const service = await buildGuarded(t, { roots: roots(), access: accessOf([ann, bob], [link, old, day, weak]) })
const { get } = service

t.test('K66: a link opens discovery for its groups, and nothing else', async (t) => {
  const base = `/t/${link.text}`
  const index = await get(`${base}${INDEX}`)
  const headers = ['referrer-policy', 'cache-control'].map((name) => index.headers.get(name))
  t.strictSame([index.status, ...headers], [200, 'no-referrer', 'private, no-cache'])
  const { skills } = await index.json() as { skills: ReadonlyArray<{ name: string, url: string }> }
  t.strictSame(skills.map(({ name }) => name), ['guide', 'plain'])
  for (const { url } of skills) {
    const artifact = await fetch(new URL(url, index.url))
    t.equal(artifact.status, 200)
    t.match(artifact.headers.get('cache-control'), /^private, max-age=31536000/)
  }
  for (const path of [
    '/skills', '/.well-known/oauth-protected-resource', '/mcp', '/skills/guide',
    '/.well-known/agent-skills/../../skills'
  ]) t.not((await get(`${base}${path}`)).status, 200, path)
  t.equal((await get(`${base}${INDEX}`, ann.text)).status, 400, 'two credentials')
  t.equal((await get('/skills', link.text)).status, 401, 'a link is not a token')
  t.equal((await get(`/t/${ann.text}${INDEX}`)).status, 401, 'a token is not a link')
  t.equal((await get(`${base}${INDEX}`, undefined, { method: 'POST' })).status, 401)
  const absolute = request('GET', `${service.url}${base}${INDEX}`)
  t.equal((await rawRequest(service.url, absolute)).status, 200)
})

t.test('K66: only a secret that logs can tell from other texts opens, and none that has expired', async (t) => {
  const ask = async (secret: string) => await get(`/t/${secret}${INDEX}`)
  t.equal((await ask(WEAK)).status, 401)
  const expired = await ask(old.text)
  t.strictSame([expired.status, expired.headers.get('referrer-policy')], [401, 'no-referrer'])
  t.equal((await ask(day.text)).status, 200)
  const now = Date.now() + 2 * DAY_MS
  t.intercept(Date, 'now', { value: () => now })
  t.equal((await ask(day.text)).status, 401)
})

t.test('K66: no spelling of an address brings a secret into log or problem', async (t) => {
  const { host } = new URL(service.url)
  const rest = INDEX.slice(1)
  const starts = ['//t/', '/%74/', '/t//', '/T/', '/skills/', '/skills/guide/files/', '/nosuch/']
  const targets = [
    ...starts.map((start) => `${start}${link.text}/${rest}`),
    `/t/${link.text.replace('s', '%73')}/${rest}`, `http://${host}//t/${link.text}/${rest}`,
    `http://${host}/t/${ann.text}/${rest}`, `/t/${link.text}%zz`,
    ...['access_token=', '%61ccess_token=', 'x=', 'q=1&TOKEN=', ''].map((start) => `/skills?${start}${ann.text}`),
    `/skills/${ann.text}`, `/catalog?${ann.text}=1`, `/skills/${'a'.repeat(230)}${ann.text}`
  ]
  const before = service.logText().split('request completed').length
  let answers = ''
  for (const target of targets) {
    for (const head of [{}, { headers: [`Authorization: Bearer ${ann.text}`] }]) {
      const { status, text } = await rawRequest(service.url, request('GET', target, head))
      t.ok(status >= 400, target)
      answers += text
    }
  }
  await until(() => service.logText().split('request completed').length >= before + targets.length * 2)
  for (const secret of [link, ann]) t.notMatch(answers + service.logText(), secret.text.slice(12, 30))
})

t.test('K66: the official client installs what the link shows, and no more', async (t) => {
  const cwd = join(service.folder, 'project')
  mkdirSync(cwd)
  const result = await installSkills(`${service.url}/t/${link.text}`, { cli: CLI, cwd })
  t.ok(result.succeeded, result.output)
  t.strictSame(readdirSync(result.folder).sort(), ['guide', 'plain'])
  t.notMatch(result.output, 'pager')
})

t.test('K66: a wrong or revoked secret is as an unknown route, and no secret is in log or problem', async (t) => {
  await service.setAccess(accessOf([ann, bob], [old]))
  const bodies = []
  for (const secret of [link.text, newSecret('x', '', 'link').text, 'x']) {
    const response = await get(`/t/${secret}${INDEX}`, undefined, { headers: { 'x-request-id': 'same' } })
    t.equal(response.status, 401)
    bodies.push(await response.text())
    t.equal((await get(`/t/${secret}${INDEX}`, ann.text)).status, 404)
  }
  t.equal(new Set(bodies).size, 1)
  t.notMatch(bodies.join() + service.logText(), /skl_/)
})

t.test('K63: a token that the command prints works with the line that it prints', async (t) => {
  const { out, code } = await run('token', 'ci', '--group', 'docs', '--expires', '30d')
  t.equal(code, 0)
  const expires = Date.parse(/expires: (\S+)/.exec(out)?.[1] ?? '')
  t.ok(Math.abs(expires - Date.now() - 30 * DAY_MS) < 120_000, `thirty days, and not the night before: ${out}`)
  const [, secret = '', entry = ''] = /^(sks_\w{38})\n[^]*\n {2}- (\{.*\})\n$/.exec(out) ?? []
  await service.setAccess(accessOf([{ entry }], [link]))
  t.strictSame(await (await get('/skills', secret)).json(), { skills: ['guide', 'plain'] })
  t.match((await run('token', 'ci', '--group', 'Platform Team (Köln)')).out, 'groups: ["Platform Team (Köln)"]')
  t.match((await run('token', 'ci', '--link')).out, /^\/t\/skl_\w{38}\n/)
  for (const when of ['2996-02-29', '2999-12-31T23:30-02:00', '2999-01-31T12:00:00.250Z']) {
    t.match((await run('token', 'ci', '--expires', when)).out, `expires: ${when}`)
  }
  const dates = ['soon', '2999-02-30', '2999-13-01', '2999-02-30T00:00Z', '2020-01-01', '2999-01-01T25:00']
  const wrong: ReadonlyArray<{ readonly argv: readonly string[], readonly code?: number }> = [
    { argv: [], code: 2 },
    { argv: ['a', '--link', '--scope', 'x'], code: 2 },
    { argv: ['a', '--scope', 'skills:raed'], code: 2 },
    ...['a b', 'anonymous', 'group:docs'].map((name) => ({ argv: [name] })),
    { argv: ['a', '--link', '--scope', 'skills:read'] },
    ...[' ', 'a\n'].map((group) => ({ argv: ['a', '--group', group] })),
    ...dates.map((when) => ({ argv: ['a', '--expires', when] }))
  ]
  for (const { argv, code = 1 } of wrong) {
    t.match(await run('token', ...argv), { code, err: /^skillserve: [^\n]+\n$/ }, argv.join(' '))
  }
})

t.test('K63: access says what a caller sees and why, and who sees a skill', async (t) => {
  const tokens = [
    ann, bob, newSecret('prom', 'scopes: [metrics:read], groups: [docs]'),
    newSecret('both', 'scopes: [], expires: 2020-03-01T01:30+01:30, groups: [docs]'),
    newSecret('young', 'expires: 2999-03-01, groups: [docs]')
  ]
  const folder = t.testdir({ ...roots(), 'access.yaml': accessOf(tokens, [link, old]) })
  const at = (name: string) => join(folder, name)
  const ask = (...rest: readonly string[]) => run('access', at('access.yaml'), at('docs'), at('ops'), ...rest)
  const seen = /ann is in the groups .* sees 2 skills\nguide {2}docs {2}.*access\.yaml:11: rules\[0\] for docs\nplain/
  t.match((await ask('--as', 'ann')).out, seen)
  t.match((await ask('--as', 'young')).out, / and sees 2 skills\n/)
  t.equal((await ask('--as', 'anonymous')).out, 'anonymous is in no group and sees 0 skills\n')
  t.match((await ask('--as', 'group:ops')).out, /pager/)
  t.equal((await ask('--as', 'old')).out, 'old expired at 2020-01-01T00:00:00Z: it sees no skills\n')
  t.equal((await ask('--as', 'both')).out, 'both expired at 2020-03-01T00:00:00Z: it sees no skills\n')
  t.match((await ask('--as', 'prom')).out, /^prom has the scopes metrics:read and lacks skills:read: /)
  const who = 'guide in docs: seen by the groups docs\n  ann\n  young\n  laptops\n'
  t.equal((await ask('--skill', 'guide')).out, who, 'no caller whom the service refuses')
  const table = (await ask()).out.split('\n').map((line) => line.split(/ +/))
  t.strictSame(table.slice(0, 3), [
    ['7', 'tokens', 'and', 'links,', '2', 'rules'],
    ['SKILL', 'FOLDER', 'ann', 'bob', 'prom', 'both', 'young', 'laptops', 'old'],
    ['guide', 'docs', 'yes', '-', '-', '-', 'yes', 'yes', '-']
  ])
  t.match(table.find(([name]) => name === 'pager'), ['pager', 'ops', '-', 'yes', '-', '-', '-', '-', '-'])
  const refused = (sentence: string) => ({ code: 1, out: '', err: `skillserve: ${sentence}\n` })
  const unknown = '"laptop" is not a token or link of the access file, did you mean "laptops"?'
  const options = ['--access', at('access.yaml'), '--as', 'laptop']
  t.strictSame(await run('export', at('out'), at('docs'), at('ops'), ...options), refused(unknown))
  t.strictSame(await ask('--as', 'laptop'), refused(unknown))
  t.strictSame(await ask('--as', 'nosuch'), refused('"nosuch" is not a token or link of the access file'))
  t.strictSame(await ask('--skill', 'pagr'), refused('no folder has a skill "pagr", did you mean "pager"?'))
  writeFileSync(at('access.yaml'), ACCESS.replace('roots: [ops]', 'roots: [opss]'))
  const err = /access\.yaml:8: rules\[1\]\.roots\[0\] is not the name of a folder .* did you mean "ops"\?\n$/
  t.match(await ask(), { code: 1, err })
})

type Ask = (path: string, headers?: Readonly<Record<string, string>>) => Promise<Response>

async function startService (t: Test, access = ACCESS) {
  const roots = { docs: { guide: skill('guide', { 'a.md': 'text of a' }) }, ops: { pager: skill('pager') } }
  return await buildGuarded(t, { roots, access })
}

/** A service with callers behind a real nginx. */
async function startNginx (t: Test, access: string, location: string) {
  const service = await startService(t, access)
  const port = await freePort()
  const folder = join(service.folder, 'nginx')
  mkdirSync(folder)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')
  writeFileSync(join(folder, 'nginx.conf'), `daemon off; master_process off;
pid ${folder}/pid; error_log ${folder}/error.log;
events {}
http {
  access_log off; ${temporary}
  proxy_cache_path ${folder}/cache keys_zone=all:1m;
  server { listen 127.0.0.1:${port}; location / { proxy_pass ${service.url}; ${location} } }
}
`)
  const server = spawn('nginx', ['-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')],
    { stdio: 'ignore' })
  t.teardown(() => { server.kill() })
  const ask: Ask = (path, headers = {}) => fetch(`http://127.0.0.1:${port}${path}`, { headers })
  await until(async () => await ask('/livez').then(({ ok }) => ok, () => false))
  return { service, ask }
}

const CACHING = 'proxy_cache all; proxy_cache_valid 200 1h; add_header X-Cache $upstream_cache_status;'

/** Answers that a caller got who should not have. */
async function wrongAnswers (ask: Ask): Promise<readonly string[]> {
  const index = '/.well-known/agent-skills/index.json'
  const answer = await (await ask(index, bearer(ann.text))).json()
  const { skills } = answer as { readonly skills: ReadonlyArray<{ readonly url: string }> }
  const paths = [
    '/skills', '/skills/guide', '/skills/guide/files/a.md', '/skills/guide/archive.zip', '/catalog', '/agent/prompt',
    index,
    ...skills.map(({ url }) => new URL(url, `http://host${index}`).pathname)
  ]
  const wrong: string[] = []
  for (const path of paths) {
    if ((await ask(path, bearer(ann.text))).status !== 200) wrong.push(`${path} for ann`)
    if ((await ask(path)).status !== 401) wrong.push(`${path} for nobody`)
    const ofBob = await ask(path, bearer(bob.text))
    // A problem repeats the name that was asked for.
    const isOther = ofBob.headers.get('x-cache') === 'HIT' || (ofBob.ok && (await ofBob.text()).includes('guide'))
    if (isOther) wrong.push(`${path} for bob`)
  }
  return wrong
}

const WITH_NGINX = { skip: !hasProgram('nginx', '-v') && 'nginx is not installed: apt-get install nginx-light' }

t.test('K65: nginx with proxy_cache hands no answer to another caller', WITH_NGINX, async (t) => {
  const { ask } = await startNginx(t, ACCESS, CACHING)
  t.strictSame(await wrongAnswers(ask), [])
})

t.test('K62: headers of identity count when nginx sends them, never when a caller does', WITH_NGINX, async (t) => {
  const behind = (peers: string) => `proxy: { peers: [${peers}] }\n${ACCESS}`
  const asAnn = 'proxy_set_header X-Auth-Request-User ann; proxy_set_header X-Auth-Request-Groups docs;'
  const forged = { 'x-auth-request-user': 'root', 'x-auth-request-groups': 'ops' }
  const { service, ask } = await startNginx(t, behind('127.0.0.1'), asAnn)
  for (const headers of [{}, forged]) t.strictSame(await (await ask('/skills', headers)).json(), { skills: ['guide'] })
  const vary = (await ask('/skills')).headers.get('vary')
  t.match(vary, /Authorization, x-auth-request-user, x-auth-request-groups/)
  const withToken = await ask('/skills', { ...forged, ...bearer(bob.text) })
  t.strictSame(await withToken.json(), { skills: ['pager'] }, 'a token counts alone')
  await service.setAccess(behind('192.0.2.1'))
  t.equal((await ask('/skills')).status, 401, 'nginx is no listed peer')
  t.equal((await service.get('/skills', undefined, { headers: forged })).status, 401)
})

t.test('K65: event streams of MCP are private too', async (t) => {
  const service = await startService(t)
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_skills', arguments: {} } }
  const type = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const legacy = { ...bearer(ann.text), ...type, 'mcp-protocol-version': '2025-11-25' }
  const listen = { method: 'subscriptions/listen', params: { notifications: { toolsListChanged: true } } }
  for (const [init, content] of [
    [{ method: 'POST', headers: legacy, body: JSON.stringify(call) }, /event-stream/],
    [modernRequest(listen, bearer(ann.text)), /event-stream/],
    [modernRequest({ method: 'tools/list' }, bearer(ann.text)), /json/]
  ] as const) {
    const { status, headers, body } = await service.get('/mcp', undefined, init)
    const [control, vary, media] = ['cache-control', 'vary', 'content-type'].map((name) => headers.get(name))
    t.match([status, control, vary, media], [200, /private|no-store/, 'Authorization', content])
    await body?.cancel()
  }
})
