import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import t, { type Test } from 'tap'
import { bearer, buildGuarded, type GuardedService, newSecret } from '../helper/guarded.ts'
import { modernRequest } from '../helper/mcp.ts'
import { freePort } from '../helper/proxies.ts'
import { skill, until } from '../helper/skills.ts'

const VARNISH = ['/usr/sbin/varnishd', '/usr/local/sbin/varnishd'].find((path) => existsSync(path))
const NGINX = ['/usr/sbin/nginx', '/usr/local/bin/nginx'].find((path) => existsSync(path))

const ann = newSecret('ann', 'groups: [docs]')
const bob = newSecret('bob', 'groups: [ops]')
const RULES = 'rules:\n  - { groups: [docs], roots: [docs] }\n  - { groups: [ops], roots: [ops] }\n'
const ACCESS = `tokens:\n  - ${ann.entry}\n  - ${bob.entry}\n${RULES}`

type Ask = (path: string, headers?: Readonly<Record<string, string>>) => Promise<Response>

/** Answers that do not say whose they are. */
const careless = fp(async (app) => {
  app.addHook('onSend', (_request, reply, payload, next) => {
    reply.header('cache-control', 'max-age=60').header('vary', 'Accept-Encoding')
    next(null, payload)
  })
})

async function startService (t: Test, access: string, plugins: readonly FastifyPluginAsync[] = []): Promise<GuardedService> {
  return await buildGuarded(t, { roots: { docs: { guide: skill('guide', { 'a.md': 'text of a' }) }, ops: { pager: skill('pager') } }, access, plugins })
}

/** A proxy, until the end of the test. */
async function startProxy (t: Test, port: number, program: string, args: readonly string[]): Promise<Ask> {
  const server = spawn(program, args, { stdio: 'ignore' })
  t.teardown(() => { server.kill() })
  const ask: Ask = (path, headers = {}) => fetch(`http://127.0.0.1:${port}${path}`, { headers })
  await until(async () => await ask('/livez').then(({ ok }) => ok, () => false))
  return ask
}

/** A service with callers behind a real nginx. */
async function start (t: Test, access: string, location: string, plugins: readonly FastifyPluginAsync[] = []): Promise<{ readonly service: GuardedService, readonly ask: Ask }> {
  const service = await startService(t, access, plugins)
  const port = await freePort()
  const folder = join(service.folder, 'nginx')
  mkdirSync(folder)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')
  writeFileSync(join(folder, 'nginx.conf'), `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
events {}
http {
  access_log off; ${temporary}
  proxy_cache_path ${folder}/cache keys_zone=all:1m;
  server { listen 127.0.0.1:${port}; location / { proxy_pass ${service.url}; ${location} } }
}
`)
  return { service, ask: await startProxy(t, port, NGINX ?? '', ['-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')]) }
}

const CACHING = 'proxy_cache all; proxy_cache_valid 200 1h; add_header X-Cache $upstream_cache_status;'

/** Answers that somebody got who should not have. */
async function wrongAnswers (ask: Ask): Promise<readonly string[]> {
  const { skills } = await (await ask('/.well-known/agent-skills/index.json', bearer(ann.text))).json() as { readonly skills: ReadonlyArray<{ readonly url: string }> }
  const paths = ['/skills', '/skills/guide', '/skills/guide/files/a.md', '/skills/guide/archive.zip', '/catalog', '/agent/prompt', '/.well-known/agent-skills/index.json',
    ...skills.map(({ url }) => new URL(url, 'http://host/.well-known/agent-skills/index.json').pathname)]
  const wrong: string[] = []
  for (const path of paths) {
    if ((await ask(path, bearer(ann.text))).status !== 200) wrong.push(`${path} for ann`)
    if ((await ask(path)).status !== 401) wrong.push(`${path} for nobody`)
    const ofBob = await ask(path, bearer(bob.text))
    // A problem repeats the name that was asked for.
    if (ofBob.headers.get('x-cache') === 'HIT' || (ofBob.ok && (await ofBob.text()).includes('guide'))) wrong.push(`${path} for bob`)
  }
  return wrong
}

if (NGINX === undefined) {
  t.comment('nginx is not installed: apt-get install nginx-light')
} else {
  t.test('K65: nginx with proxy_cache hands no answer to another caller', async (t) => {
    const { ask } = await start(t, ACCESS, CACHING)
    t.strictSame(await wrongAnswers(ask), [])
  })

  t.test('K65: the same nginx would, if answers did not say whose they are', async (t) => {
    const { ask } = await start(t, ACCESS, CACHING, [careless])
    const wrong = await wrongAnswers(ask)
    t.ok(wrong.includes('/skills for nobody') && wrong.includes('/skills/guide for bob'), wrong.join())
  })

  t.test('K62: headers of identity count when nginx sends them, never when a caller does', async (t) => {
    const proxy = (peers: string) => `proxy: { peers: [${peers}] }\n${ACCESS}`
    const asAnn = 'proxy_set_header X-Auth-Request-User ann; proxy_set_header X-Auth-Request-Groups docs;'
    const forged = { 'x-auth-request-user': 'root', 'x-auth-request-groups': 'ops' }
    const { service, ask } = await start(t, proxy('127.0.0.1'), asAnn)
    t.strictSame(await (await ask('/skills')).json(), { skills: ['guide'] })
    t.strictSame(await (await ask('/skills', forged)).json(), { skills: ['guide'] }, 'nginx replaces them')
    t.match((await ask('/skills')).headers.get('vary'), /Authorization, x-auth-request-user, x-auth-request-groups/)
    t.strictSame(await (await ask('/skills', { ...forged, ...bearer(bob.text) })).json(), { skills: ['pager'] }, 'a token is judged alone')
    await service.setAccess(proxy('192.0.2.1'))
    t.equal((await ask('/skills')).status, 401, 'nginx is no listed peer')
    t.equal((await service.get('/skills', undefined, { headers: forged })).status, 401)
  })
}

t.test('K65: Varnish that looks into its cache for every request hands no answer to another caller', { skip: VARNISH === undefined && 'Varnish is not installed: apt-get install varnish' }, async (t) => {
  const startVarnish = async (plugins: readonly FastifyPluginAsync[]): Promise<Ask> => {
    const service = await startService(t, ACCESS, plugins)
    const port = await freePort()
    const file = join(service.folder, 'cache.vcl')
    writeFileSync(file, `vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "${new URL(service.url).port}"; }
sub vcl_recv { return (hash); }
sub vcl_deliver { set resp.http.X-Cache = "HIT"; if (obj.hits == 0) { set resp.http.X-Cache = "MISS"; } }
`)
    return await startProxy(t, port, VARNISH ?? '', ['-F', '-j', 'none', '-n', join(service.folder, `varnish-${port}`), '-a', `127.0.0.1:${port}`, '-f', file, '-s', 'malloc,16m'])
  }
  t.strictSame(await wrongAnswers(await startVarnish([])), [])
  t.ok((await wrongAnswers(await startVarnish([careless]))).includes('/skills for nobody'), 'it would, if answers did not say whose they are')
})

t.test('K65: event streams of MCP are private too', async (t) => {
  const service = await startService(t, ACCESS)
  const legacy = { method: 'POST', headers: { ...bearer(ann.text), 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' } }
  const ask = (init: RequestInit) => service.get('/mcp', undefined, init)
  const answers = [
    await ask({ ...legacy, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_skills', arguments: {} } }) }),
    await ask(modernRequest({ method: 'subscriptions/listen', params: { notifications: { toolsListChanged: true } } }, bearer(ann.text))),
    await ask(modernRequest({ method: 'tools/list' }, bearer(ann.text)))
  ]
  for (const { status, headers } of answers) {
    t.equal(status, 200)
    t.match(headers.get('cache-control'), /private|no-store/)
    t.match(headers.get('vary'), 'Authorization')
  }
  t.match(answers.slice(0, 2).map(({ headers }) => headers.get('content-type')), [/event-stream/, /event-stream/])
  for (const { body } of answers) await body?.cancel()
})
