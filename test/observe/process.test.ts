import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/settings.ts'
import { listen } from '../../src/listen.ts'
import { runHere } from '../helper/command-line.ts'
import { newSecret } from '../helper/guarded.ts'
import { installSdk } from '../helper/otel.ts'
import { startProcess } from '../helper/process.ts'
import { openRaw, request } from '../helper/raw-http.ts'
import { until } from '../helper/skills.ts'

const FILES = { demo: { 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# Demo\n' } }

/** Opens what the limit allows at each signal. */
const TAKE_ALL_DESCRIPTORS = `data:text/javascript,${encodeURIComponent(`
  import { openSync, writeSync } from 'node:fs'
  process.on('SIGUSR2', () => { try { for (;;) openSync('/dev/null') } catch { writeSync(1, '{"msg":"all taken"}\\n') } })
`)}`

t.test('K71: METRICS_PORT has the metrics on a port of its own, and the service has none; while no descriptor is free they lack what needs one, and that ends nothing', async (t) => {
  const service = await startProcess(t, { args: [t.testdir(FILES)], env: { METRICS_PORT: '0' }, ulimit: '-n 100', nodeOptions: ['--import', TAKE_ALL_DESCRIPTORS] })
  const { url } = service.log().find(({ msg }) => msg === 'metrics for Prometheus') ?? {}
  t.match(url, /^http:\/\/127\.0\.0\.1:\d+\/metrics$/)
  await (await fetch(`${service.url}/skills/demo`)).text()
  const response = await fetch(String(url))
  t.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  t.match(await response.text(), /^skillserve_skills\{root="[^"]+"\} 1$/m)
  const open = await fetch(String(url), { headers: { accept: 'application/openmetrics-text; version=1.0.0' } })
  t.match(await open.text(), /# EOF\n$/)
  t.equal((await fetch(String(url).replace('/metrics', '/'))).status, 404)
  t.equal((await fetch(String(url), { method: 'POST' })).status, 405)
  t.equal((await fetch(`${service.url}/metrics`)).status, 404)

  const connection = await openRaw(String(url))
  t.match(await connection.send(request('GET', '/metrics')).response(), { status: 200, text: /^process_resident_memory_bytes \d+$/m })
  service.signal('SIGUSR2')
  await service.printed('all taken')
  const { status, text } = await connection.send(request('GET', '/metrics')).response()
  t.equal(status, 200)
  t.match(text, /^nodejs_heap_used_bytes \d+$/m)
  for (const name of ['process_resident_memory_bytes', 'process_open_fds']) t.notMatch(text, `\n${name} `)
  connection.destroy()
  t.match(await service.stop(), { code: 0, stderr: '' })
})

t.test('a port for metrics that is that of the service stops the start with a line that names the settings', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1')
  t.teardown(() => holder.close())
  await once(holder, 'listening')
  const { port } = holder.address() as AddressInfo
  // The metrics listen first.
  const app = Fastify()
  t.teardown(() => app.close())
  await t.rejects(listen(app, configOf({ PORT: String(port), METRICS_PORT: String(port) }), 'PORT or --port'), { message: `METRICS_PORT is ${port}, the service's own port: PORT or --port, or METRICS_PORT, chooses another` })
})

t.test('K70: the log is for people with LOG_FORMAT=pretty, one line a request, and one for each setting without effect', async (t) => {
  const service = await startProcess(t, { args: [t.testdir(FILES)], env: { LOG_FORMAT: 'pretty', AUDIT_SALT: 'x'.repeat(16), METRICS_READS: 'true' } })
  await (await fetch(`${service.url}/skills/demo`)).text()
  await (await fetch(`${service.url}/skills/none`)).text()
  const { stdout, code } = await service.stop()
  t.equal(code, 0)
  t.match(stdout, /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: serving a skills folder\n/m)
  t.strictSame(Array.from(stdout.matchAll(/ WARN: .*\n {4}problem: "(\w+) has no effect without (\w+)"/g), ([, name, other]) => [name, other]), [['AUDIT_SALT', 'AUDIT_LOG'], ['METRICS_READS', 'METRICS_PORT']])
  t.match(stdout, /INFO: GET \/skills\/demo 200 [\d.]+ ms 127\.0\.0\.1\n/)
  t.match(stdout, /INFO: GET \/skills\/none 404 [\d.]+ ms 127\.0\.0\.1\n {4}code: "skill_not_found"\n/)
  t.notOk(stdout.includes('\u001b'), 'no colours in a pipe')
})

t.test('K73: a service that has to write an audit log, and is told no place for it, does not start', async (t) => {
  t.match(await refusal({ AUDIT_REQUIRED: 'true' }), { code: 1, stderr: 'skillserve: AUDIT_REQUIRED needs AUDIT_LOG: a file, or stdout\n' })
})

t.test('K70: what is no format is refused by its name', async (t) => {
  const { code, stderr } = await refusal({ LOG_FORMAT: 'xml' })
  t.equal(code, 1)
  t.match(stderr, 'LOG_FORMAT must be pretty or json, not "xml"')
})

t.test('K67 K73: a setting that is a secret is not in the error about it', async (t) => {
  for (const [variable, text] of [['AUDIT_SALT', 'CANARY'], ['LIMITS_STORE', 'rediss//:CANARY@host'], ['LIMITS_STORE', 'redis://:CANARY%zz@host']] as const) {
    const { code, stderr } = await refusal({ [variable]: text })
    t.equal(code, 1)
    t.match(stderr, new RegExp(`^skillserve: ${variable} must be [^\\n]+\\n$`))
    t.notMatch(stderr, 'CANARY')
  }
})

t.test('K72: the ids of the caller\'s trace are in the line of a request, from the header or from a message of MCP', async (t) => {
  const service = await startProcess(t, { args: [t.testdir(FILES)] })
  const [trace, span] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
  const get = async (traceparent: string, id: string) => (await fetch(`${service.url}/skills/demo`, { headers: { traceparent, 'x-request-id': id } })).text()
  await get(`00-${trace}-${span}-01`, 'good')
  await get(`00-${'0'.repeat(32)}-${span}-01`, 'zero')
  await get('no trace', 'odd')
  await (await fetch(`${service.url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'x-request-id': 'message', traceparent: `00-${'a'.repeat(32)}-${span}-01` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: { traceparent: `00-${trace}-${span}-00` } } })
  })).text()
  await service.stop()
  const line = (id: string) => service.log().find(({ reqId, msg }) => reqId === id && msg === 'request completed')
  t.match(line('good'), { trace_id: trace, span_id: span, trace_flags: '01' })
  t.match(line('message'), { trace_id: trace, span_id: span, trace_flags: '00' })
  for (const id of ['zero', 'odd']) t.notOk('trace_id' in (line(id) ?? {}))
})

t.test('K67 K71: with callers, GET /metrics of the service is for those with the scope, and counts what was refused and read, and that the store of limits is away', async (t) => {
  const { service, metrics, ci, fetchAs } = await startGuarded(t, { LIMITS_STORE: 'redis://127.0.0.1:1' })
  t.equal((await fetchAs('/metrics')).status, 401)
  t.equal((await fetchAs('/metrics', ci)).status, 403)
  t.match((await fetchAs('/metrics', metrics)).headers.get('content-type'), 'text/plain; version=0.0.4')

  for (const [path, token] of [['/skills/demo', ci], ['/skills/demo', 'wrong'], ['/skills/demo/archive.zip', ci], ['/skills/demo/files/SKILL.md', ci], ['/skills/demo/files/a.txt', ci], ['/skills/none', ci]] as const) {
    await fetchAs(path, token)
  }
  const [, etag] = [await fetchAs('/skills/demo', ci), (await fetchAs('/skills/demo', ci)).headers.get('etag') ?? '']
  t.equal((await fetchAs('/skills/demo', ci, { 'if-none-match': etag })).status, 304)
  await (await fetch(`${service.url}/agent/tool-call`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${ci}` },
    body: JSON.stringify([{ id: 'a', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"demo"}' } }])
  })).text()
  // Neither gives anybody the bytes.
  for (const path of ['/skills/demo', '/skills/demo/archive.zip']) await fetch(`${service.url}${path}`, { method: 'HEAD', headers: { authorization: `Bearer ${ci}` } })
  const { text } = await fetchAs('/metrics', metrics)
  const value = (series: string) => Number(text.split('\n').find((line) => line.startsWith(`${series} `))?.slice(series.length + 1))
  t.equal(value('skillserve_reads_total{skill="demo",door="rest"}'), 6)
  t.equal(value('skillserve_reads_total{skill="demo",door="tool-call/openai"}'), 1)
  t.equal(value('skillserve_auth_failures_total{reason="missing"}'), 1)
  t.equal(value('skillserve_auth_failures_total{reason="invalid"}'), 1)
  t.equal(value('skillserve_auth_failures_total{reason="scope"}'), 1)
  t.equal(value('skillserve_rate_limited_total{rule="units"}'), 0)
  t.notMatch(text, 'http_route="/metrics"')
  await until(async () => /^skillserve_limits_store_failures_total [1-9]/m.test((await fetchAs('/metrics', metrics)).text))
  await service.printed('the store of limits does not answer')
  t.equal(service.log().filter(({ msg }) => String(msg).startsWith('the store of limits does not answer')).length, 1)
  t.notMatch(await (await fetch(`${service.url}/openapi.json`, { headers: { authorization: `Bearer ${ci}` } })).text(), '/metrics')
})

t.test('K70 K71 K72 K73: no token, secret link, cookie or file content is in log, metrics, spans or audit log, at any level', async (t) => {
  const { service, metrics, ci, link, sdk, fetchAs } = await startGuarded(t, { LOG_LEVEL: 'trace', AUDIT_LOG: 'stdout' })
  const headers = { cookie: 'session=CANARY-COOKIE', 'proxy-authorization': 'Basic CANARY-PROXY', 'x-forwarded-access-token': 'CANARY-FORWARDED' }
  const paths = [
    '/skills/demo', '/skills/none', '/catalog', '/nowhere', '/skills/demo/archive.zip', '/skills?access_token=CANARY-QUERY', `/t/${link}/.well-known/skills/index.json`,
    `/t/${link}/skills`, `/t/${link}`, '/t/skl_CANARY-GUESS/.well-known/skills/index.json', '/catalog?q=CANARY-SEARCH'
  ]
  for (const path of paths) for (const token of [ci, 'CANARY-TOKEN']) await fetchAs(path, token, headers)
  t.equal((await fetchAs(`/t/${link}/.well-known/skills/index.json`)).status, 200)
  const { text } = await fetchAs('/metrics', metrics)
  const { stdout, stderr } = await service.stop()
  t.match(stdout, '"event":"discovery.index"')
  const spans = sdk.text()
  t.match(spans, '/.well-known/skills/index.json')
  // The words of a search are in the URL of its request, in the log and nowhere else.
  for (const signal of [text, stdout.replaceAll('/catalog?q=CANARY-SEARCH', ''), stderr, spans]) {
    for (const secret of ['CANARY', ci, metrics, link, ci.slice(4), link.slice(4)]) t.notOk(signal.includes(secret), secret)
  }
})

function configOf (env: Readonly<Record<string, string>>): Config {
  return loadConfig({ positionals: [], flags: new Map(), env, cwd: process.cwd() })
}

/** What the command line says of settings that no service starts with; what a process makes of it is in test/server.test.ts. */
async function refusal (env: Readonly<Record<string, string>>) {
  return await runHere([], { env })
}

/** A service with callers, all signals, and one skill. */
async function startGuarded (t: Test, env: Readonly<Record<string, string>> = {}) {
  const [ci, metrics, link] = [newSecret('ci', 'groups: [all]'), newSecret('prometheus', 'scopes: [metrics:read]'), newSecret('public', 'groups: [all]', 'link')]
  const folder = t.testdir({
    skills: { demo: { 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\nCANARY-CONTENT\n', 'a.txt': 'CANARY-FILE' } },
    'access.yaml': `tokens:\n  - ${ci.entry}\n  - ${metrics.entry}\nlinks:\n  - ${link.entry}\nrules:\n  - { groups: [all] }\n`
  })
  const sdk = installSdk(folder)
  const service = await startProcess(t, {
    args: [join(folder, 'skills')],
    env: { ACCESS_FILE: join(folder, 'access.yaml'), METRICS_READS: 'true', ...env },
    nodeOptions: sdk.nodeOptions
  })
  return {
    service,
    ci: ci.text,
    metrics: metrics.text,
    link: link.text,
    sdk,
    fetchAs: async (path: string, token?: string, headers: Readonly<Record<string, string>> = {}) => {
      const response = await fetch(`${service.url}${path}`, { headers: { ...headers, ...token !== undefined && { authorization: `Bearer ${token}` } } })
      return { status: response.status, headers: response.headers, text: await response.text() }
    }
  }
}
