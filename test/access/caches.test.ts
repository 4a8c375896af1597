import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyPluginAsync } from 'fastify'
import t, { type Test } from 'tap'
import { bearer, buildGuarded, newSecret } from '../helper/guarded.ts'
import { modernRequest } from '../helper/mcp.ts'
import { freePort, hasProgram } from '../helper/proxies.ts'
import { skill, until } from '../helper/skills.ts'

const ann = newSecret('ann', 'groups: [docs]')
const bob = newSecret('bob', 'groups: [ops]')
const ACCESS = `tokens:\n  - ${ann.entry}\n  - ${bob.entry}
rules:\n  - { groups: [docs], roots: [docs] }\n  - { groups: [ops], roots: [ops] }\n`

type Ask = (path: string, headers?: Readonly<Record<string, string>>) => Promise<Response>

async function startService (t: Test, access = ACCESS, plugins: readonly FastifyPluginAsync[] = []) {
  const roots = { docs: { guide: skill('guide', { 'a.md': 'text of a' }) }, ops: { pager: skill('pager') } }
  return await buildGuarded(t, { roots, access, plugins })
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
  const accessOf = (peers: string) => `proxy: { peers: [${peers}] }\n${ACCESS}`
  const asAnn = 'proxy_set_header X-Auth-Request-User ann; proxy_set_header X-Auth-Request-Groups docs;'
  const forged = { 'x-auth-request-user': 'root', 'x-auth-request-groups': 'ops' }
  const { service, ask } = await startNginx(t, accessOf('127.0.0.1'), asAnn)
  for (const headers of [{}, forged]) t.strictSame(await (await ask('/skills', headers)).json(), { skills: ['guide'] })
  const vary = (await ask('/skills')).headers.get('vary')
  t.match(vary, /Authorization, x-auth-request-user, x-auth-request-groups/)
  const withToken = await ask('/skills', { ...forged, ...bearer(bob.text) })
  t.strictSame(await withToken.json(), { skills: ['pager'] }, 'a token counts alone')
  await service.setAccess(accessOf('192.0.2.1'))
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
