import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import parsePrometheus from 'parse-prometheus-text-format'
import { Registry } from 'prom-client'
import t, { type Test } from 'tap'
import type { Root } from '../../src/core/roots/root.ts'
import { Shutdown } from '../../src/http/shutdown.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { listenForMetrics } from '../../src/observe/metrics-server.ts'
import { buildService, type Files, type ServiceOptions } from '../helper/build.ts'
import { listenRequest, modernRequest } from '../helper/mcp.ts'
import { jsonRequest, openRaw, rawRequest, request } from '../helper/raw-http.ts'
import { skill, skillText, startManager, until } from '../helper/skills.ts'

const FILES = {
  demo: { 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# Demo\n', 'a.txt': 'text' },
  broken: { 'SKILL.md': '---\nname: other\n---\n' }
}

type Labels = Readonly<Record<string, string>>

async function buildMeasured (t: Test, options: ServiceOptions = {}, files: Files = FILES) {
  let metrics: ReturnType<typeof createMetrics> | undefined
  const service = await buildService(t, {
    files,
    options: {
      ...options,
      observe: (skills) => {
        metrics = createMetrics({ skills, version: '1.2.3', metricsReads: true })
        return [metrics.observer]
      }
    }
  })
  const text = async () => await metrics?.registry.metrics() ?? ''
  let earlier = 0
  return {
    ...service,
    text,
    value: async (name: string, labels: Labels = {}) => valueIn(await text(), name, labels),
    /** Without those of comparisons with the disk, which come when they are due. */
    series: async () => (await text()).split('\n').filter((line) =>
      !/^#|^(?:skillserve_refresh|nodejs|process)_/.test(line))
      .map((line) => line.replace(/ \S+$/, '')),
    /** Begins to count requests. */
    mark: async () => { earlier = count(await text()) },
    /** Resolves when so many requests have ended: their sockets may close later than their clients have read. */
    counted: async (wanted: number) => { await until(async () => count(await text()) >= earlier + wanted) }
  }
}

/** The value of a series. */
function valueIn (text: string, name: string, labels: Labels = {}): number {
  const parts = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
  const line = text.split('\n').find((line) =>
    line.startsWith(name) && /[ {]/.test(line.charAt(name.length)) && parts.every((part) => line.includes(part)))
  return Number(line?.split(' ').at(-1))
}

/** Finished requests. */
function count (text: string): number {
  return [...text.matchAll(/^http_server_request_duration_seconds_count\{.*\} (\d+)$/gm)].reduce((sum, [, n]) =>
    sum + Number(n), 0)
}

const shared = await buildMeasured(t)

t.test('K71: calls of tools are counted by tool, dialect and outcome, and MCP requests by method', async (t) => {
  const { post, fetch, value, url } = shared
  await post('/agent/tool-call', [
    { id: 'a', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"demo"}' } },
    { id: 'b', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"none"}' } },
    { id: 'c', type: 'function', function: { name: 'rm_rf', arguments: '{}' } }
  ])
  await post('/agent/tools/list_skills', {})
  for (const [method, params] of [
    ['tools/call', { name: 'get_skill', arguments: { skill_name: 'none' } }], ['tools/list', {}],
    ['resources/read', { uri: 'skill://none/x' }], ['strange/method', {}]
  ] as const) await (await globalThis.fetch(`${url}/mcp`, modernRequest({ method, params }))).text()
  for (const [tool, dialect, outcome] of [
    ['get_skill', 'openai', 'ok'], ['get_skill', 'openai', 'error'], ['_unknown', 'openai', 'refused'],
    ['list_skills', 'rest', 'ok'], ['get_skill', 'mcp', 'error']
  ] as const) {
    const found = await value('skillserve_tool_calls_total', { tool, dialect, outcome })
    t.equal(found, 1, `${tool} ${dialect} ${outcome}`)
  }
  for (const [method, error] of [
    ['tools/call', 'tool_error'], ['tools/list', ''], ['resources/read', '-32602']
  ] as const) {
    const labels = { mcp_method_name: method, error_type: error }
    t.equal(await value('mcp_server_operation_duration_seconds_count', labels), 1, method)
  }
  t.notMatch((await fetch('/')).text, 'metrics')
})

t.test('K71: requests are counted by method, pattern of the route and status, with their ' +
  'durations and bytes', async (t) => {
  const { fetch, value, text, counted, mark } = shared
  await mark()
  const { bytes } = await fetch('/skills/demo')
  const { headers } = await fetch('/skills/demo')
  await fetch('/skills/demo', { headers: { 'if-none-match': headers.get('etag') ?? '' } })
  await fetch('/skills/nothing')
  await counted(4)
  const series = async (name: string, status: string, more: Labels = {}) => await value(
    `http_server_request_duration_seconds_${name}`,
    { http_request_method: 'GET', http_route: '/skills/:name', http_response_status_code: status, ...more })
  t.strictSame([await series('count', '200'), await series('count', '304'), await series('count', '404')], [2, 1, 1])
  t.equal(await series('bucket', '200', { le: '+Inf' }), 2)
  t.ok(await series('sum', '200') > 0)
  t.ok(await value('http_server_response_body_size_bytes_total', { http_route: '/skills/:name' }) > 2 * bytes.length)
  t.equal(await value('http_server_active_requests', { http_request_method: 'GET' }), 0)
  t.match(await text(), /^skillserve_build_info\{version="1\.2\.3",node="v\d+/m)
})

t.test('K71: the revision of the catalog is a number, equal for equal skills; refreshes are ' +
  'counted by root', async (t) => {
  const { value, text, fetch } = shared
  await until(async () => (await text()).includes('\nskillserve_catalog_revision '))
  const { revision } = JSON.parse((await fetch('/readyz')).text) as { readonly revision: string }
  t.equal(await value('skillserve_catalog_revision'), Number.parseInt(revision.slice(0, 12), 16))

  const root = t.testdir({ ops: { demo: skill('demo'), a: {}, b: {} }, docs: { a: {} }, other: {} })
  const skills = await startManager(t, ['other/docs', 'ops', 'docs'].map((path) => join(root, path)))
  const [missing, ops, docs] = skills.parts.catalog.roots
  t.intercept(skills.parts.refresher, 'isWatching', { value: (asked: Root) => asked === ops })
  const metrics = createMetrics({ skills, version: '' })
  t.intercept(Date, 'now', { value: () => 5_000_000_000_000 })
  for (const [root, isFailed] of [[missing, false], [ops, false], [ops, true], [docs, true]] as const) {
    if (root !== undefined) skills.parts.catalog.emit('refreshed', { milliseconds: 3, isFailed, root })
  }
  const written = await metrics.registry.metrics()
  for (const line of [
    'skillserve_refresh_duration_seconds_count{root="docs"} 1',
    'skillserve_refresh_duration_seconds_count{root="ops"} 2',
    'skillserve_refresh_failures_total{root="ops"} 1', 'skillserve_watcher_healthy{root="docs"} 0',
    'skillserve_watcher_healthy{root="ops"} 1', 'skillserve_root_available{root="docs"} 0',
    'skillserve_root_available{root="docs-2"} 1', 'skillserve_last_refresh_timestamp_seconds{root="ops"} 5000000000',
    'skillserve_skills_invalid{root="ops"} 2', 'skillserve_skills_invalid{root="docs-2"} 1'
  ]) t.match(written, `${line}\n`)
  const series = written.split('\n').filter((line) => /^\w/.test(line)).map((line) => line.replace(/ \S+$/, ''))
  t.equal(new Set(series).size, series.length, 'no series twice, which Prometheus refuses')
  t.notMatch(written, /^skillserve_catalog_revision /m, 'not known')
  t.notMatch(written, 'skillserve_last_refresh_timestamp_seconds{root="docs-2"} 5000000000', 'a comparison that failed')
})

t.test('K71: random URLs, methods, skills and tools add no series', async (t) => {
  const { url, series, text, counted, post, fetch, mark } = shared
  await mark()
  await fetch('/skills/none-0')
  await globalThis.fetch(`${url}/none-0`)
  await globalThis.fetch(`${url}/skills`, { method: 'DELETE' })
  await post('/agent/tool-call', { name: 'none_0', arguments: {} })
  await rawRequest(url, request('PURGE', '/skills/none'))
  await counted(5)
  await until(async () => (await text()).includes('\nskillserve_catalog_revision '))
  const before = await series()
  const connection = await openRaw(url)
  t.teardown(() => { connection.destroy() })
  for (let i = 0; i < 50; i++) {
    for (const asked of [
      request('GET', `/skills/none-${i}`), request('GET', `/none-${i}/x?y=${i}`),
      request(i % 2 === 0 ? 'DELETE' : 'PURGE', `/skills/${i}`),
      jsonRequest('POST', '/agent/tool-call', { name: `none_${i}`, arguments: {} })
    ]) await connection.send(asked).response()
  }
  await counted(205)
  t.strictSame(await series(), before)
})

t.test('K71: skills, invalid ones, freshness, streams, the process', async (t) => {
  const { value, url, fetch: ask, text } = shared
  const now = Date.now() / 1_000
  for (const [name, labels, isRight] of [
    ['skillserve_skills', { root: 'skills' }, (value) => value === 2],
    ['skillserve_root_available', { root: 'skills' }, (value) => value === 1],
    ['skillserve_skills_invalid', { root: 'skills' }, (value) => value === 1],
    ['skillserve_catalog_generation', {}, (value) => value >= 1],
    ['skillserve_last_refresh_timestamp_seconds', { root: 'skills' }, (value) => Math.abs(value - now) < 60],
    ['skillserve_watcher_healthy', { root: 'skills' }, (value) => value === 0],
    ['skillserve_unreachable_issuers', {}, (value) => value === 0],
    ['process_resident_memory_bytes', {}, (value) => value > 1e7],
    ['process_cpu_seconds_total', {}, (value) => value > 0],
    ['process_start_time_seconds', {}, (value) => Math.abs(value - now + process.uptime()) < 5],
    ['process_open_fds', {}, (value) => value > 3],
    ['nodejs_eventloop_lag_p99_seconds', {}, (value) => value >= 0],
    ['nodejs_heap_size_used_bytes', {}, (value) => value > 1e6]
  ] satisfies ReadonlyArray<readonly [string, Labels, (value: number) => boolean]>) {
    const found = await value(name, labels)
    t.ok(isRight(found), `${name} is ${found}`)
  }
  // A file that was written a moment ago is read again.
  await until(async () => {
    await ask('/skills/demo/files/a.txt')
    return await value('skillserve_cache_hits_total', { cache: 'contents' }) > 0
  })
  for (const name of ['misses_total', 'bytes']) {
    t.ok(await value(`skillserve_cache_${name}`, { cache: 'contents' }) > 0, name)
  }

  const streams = async () =>
    await Promise.all(['event', 'mcp'].map(async (kind) => await value(`skillserve_${kind}_streams`)))
  const abort = new AbortController()
  const open = async (path: string, init: RequestInit = { headers: { accept: 'text/event-stream' } }) =>
    await (await fetch(url + path, { ...init, signal: abort.signal })).body?.getReader().read()
  await open('/events')
  await ask('/events', { method: 'HEAD', headers: { accept: 'text/event-stream' } })
  t.strictSame(await streams(), [1, 0])
  await open('/mcp')
  for (let i = 0; i < 2; i++) await open('/mcp', listenRequest())
  await open('/mcp', modernRequest({ method: 'tools/list' }))
  t.strictSame(await streams(), [1, 3], 'one to GET, and two that POST has opened')
  abort.abort()
  await until(async () => (await streams()).every((count) => count === 0))
  t.match(await text(), /# TYPE skillserve_event_streams gauge/)
})

t.test('K68 K71: what overload refuses is counted, and no other 503', async (t) => {
  const shutdown = new Shutdown()
  const { value, fetch, counted, app } =
    await buildMeasured(t, { overload: { maxEventLoopDelay: Number.MIN_VALUE, sampleInterval: 10 }, shutdown })
  await until(() => app.isUnderPressure())
  shutdown.isStopping = true
  const answers = await Promise.all(['/skills', '/skills/demo', '/readyz'].map(async (path) => await fetch(path)))
  t.strictSame(answers.map(({ status }) => status), [503, 503, 503])
  await counted(3)
  t.equal(await value('skillserve_overload_refusals_total'), 2)
})

t.test('K71: reads are counted by skill, for names of the catalog alone', async (t) => {
  const { post, fetch, url, value, text } = await buildMeasured(t, {}, {
    bare: {},
    pdf: { 'SKILL.md': skillText('other') },
    'pdf-tools': { 'SKILL.md': skillText('pdf') },
    gone: skill('gone')
  })
  for (const name of ['pdf', ' pdf ', 'other', 'none']) await post('/agent/tools/skill', { skill: name })
  for (const name of ['bare', 'gone', 'invented']) await fetch(`/skills/${name}`)
  await fetch('/skills/gone', { method: 'HEAD' })
  const read = modernRequest({ method: 'resources/read', params: { uri: 'skill://pdf/SKILL.md' } })
  await (await globalThis.fetch(`${url}/mcp`, read)).text()
  const reads = async (name: string, api: string) => await value('skillserve_reads_total', { skill: name, door: api })
  await until(async () => await reads('pdf', 'mcp/modern') === 1)
  t.strictSame([await reads('pdf-tools', 'rest'), await reads('pdf', 'rest'), await reads('gone', 'rest')], [2, 1, 1])
  t.notMatch(await text(), /skill="(?:bare|invented|none|other)"/)
})

t.test('K71: the text is the format of Prometheus, and promtool accepts it', async (t) => {
  const written = await shared.text()
  const families = parsePrometheus(written)
  t.ok(families.length > 20)
  for (const { name, help } of families) t.ok(help !== '', name)
  const { error, status, stderr, stdout } =
    spawnSync('promtool', ['check', 'metrics'], { input: written, encoding: 'utf8' })
  if (error !== undefined) t.pass('promtool is not installed')
  else t.strictSame([status, stderr + stdout], [0, ''])
})

t.test('K55, K71: on a loopback address the port of the metrics answers only to loopback names', async (t) => {
  for (const [host, foreign] of [['127.0.0.1', 403], ['0.0.0.0', 200]] as const) {
    const registry = { metrics: async () => 'up 1\n', contentType: Registry.PROMETHEUS_CONTENT_TYPE }
    const server = await listenForMetrics(registry, { host, port: 0 })
    t.teardown(async () => { await server.close() })
    const url = `http://127.0.0.1:${new URL(server.url).port}`
    const statusOf = async (name: string) => (await rawRequest(url, request('GET', '/metrics', { host: name }))).status
    for (const name of ['localhost', '127.0.0.1:9464', '[::1]']) t.equal(await statusOf(name), 200, `${host}: ${name}`)
    for (const name of ['evil.example', '127.0.0.1.evil.example', '']) {
      t.equal(await statusOf(name), foreign, `${host}: ${name}`)
    }
    for (const method of ['GET', 'HEAD']) {
      t.match(await rawRequest(url, request(method, '/metrics?x=1')),
        { status: 200, headers: { 'cache-control': 'no-store' }, text: method === 'GET' ? 'up 1\n' : '' })
    }
  }
})
