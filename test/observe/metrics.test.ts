import { spawnSync } from 'node:child_process'
import parsePrometheus from 'parse-prometheus-text-format'
import t, { type Test } from 'tap'
import { Signal } from '../../src/core/shared/signal.ts'
import type { RootRefresh } from '../../src/core/skill-manager.ts'
import { Shutdown } from '../../src/http/shutdown.ts'
import { createMetrics, type Metrics } from '../../src/observe/metrics/metrics.ts'
import { listenForMetrics } from '../../src/observe/metrics/metrics-server.ts'
import { OPENMETRICS, PROMETHEUS, writeMetrics } from '../../src/observe/metrics/exposition.ts'
import { Histogram } from '../../src/observe/metrics/instruments.ts'
import { observeReads, SkillReads } from '../../src/observe/metrics/skill-reads.ts'
import { buildService, type ServiceOptions } from '../helper/build.ts'
import { listenRequest, modernRequest } from '../helper/mcp.ts'
import { heapOfEach } from '../helper/memory.ts'
import { jsonRequest, openRaw, rawRequest, request } from '../helper/raw-http.ts'
import { skillText, until } from '../helper/skills.ts'

const FILES = {
  demo: { 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# Demo\n', 'a.txt': 'text' },
  broken: { 'SKILL.md': '---\nname: other\n---\n' }
}

async function buildMeasured (t: Test, options: ServiceOptions = {}) {
  let metrics: Metrics | undefined
  const service = await buildService(t, {
    files: FILES,
    options: {
      ...options,
      observe: (skills) => {
        metrics = createMetrics({ skills, version: '1.2.3' })
        return [metrics.observer]
      }
    }
  })
  t.teardown(() => metrics?.close())
  const text = () => metrics?.write(PROMETHEUS) ?? ''
  return {
    ...service,
    text,
    openMetrics: () => metrics?.write(OPENMETRICS) ?? '',
    /** The value of a series: its line without the value. */
    value: (series: string) => Number(text().split('\n').find((line) => line.startsWith(`${series} `))?.slice(series.length + 1)),
    /** Without those of comparisons with the disk, which come when they are due. */
    series: () => text().split('\n').filter((line) => !/^#|^skillserve_refresh_/.test(line)).map((line) => line.replace(/ \S+$/, '')),
    /** Resolves when the observer knows of all requests so far: their sockets may close later than their clients have read. */
    counted: async (wanted: number) => {
      while (count(text()) < wanted) await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
}

/** Finished requests. */
function count (text: string): number {
  return [...text.matchAll(/^http_server_request_duration_seconds_count\{.*\} (\d+)$/gm)].reduce((sum, [, n]) => sum + Number(n), 0)
}

t.test('K71: requests are counted by method, pattern of the route and status, with their durations and bytes', async (t) => {
  const { fetch, value, text, counted } = await buildMeasured(t)
  await counted(1)
  const { bytes } = await fetch('/skills/demo')
  const { headers } = await fetch('/skills/demo')
  await fetch('/skills/demo', { headers: { 'if-none-match': headers.get('etag') ?? '' } })
  await fetch('/skills/nothing')
  await counted(5)
  const series = (name: string, labels: string) => value(`http_server_request_duration_seconds_${name}{http_request_method="GET",http_route="/skills/:name",${labels}}`)
  t.equal(series('count', 'http_response_status_code="200"'), 2)
  t.equal(series('count', 'http_response_status_code="304"'), 1)
  t.equal(series('count', 'http_response_status_code="404"'), 1)
  t.equal(series('bucket', 'http_response_status_code="200",le="+Inf"'), 2)
  t.ok(series('sum', 'http_response_status_code="200"') > 0)
  t.ok(value('http_server_response_body_size_bytes_total{http_route="/skills/:name"}') > 2 * bytes.length)
  t.equal(value('http_server_active_requests{http_request_method="GET"}'), 0)
  t.match(text(), /^skillserve_build_info\{version="1\.2\.3",node="v\d+/m)
})

t.test('K71: the revision of the catalog is a number, equal for equal skills; refreshes are counted by root', async (t) => {
  const { value, text, fetch } = await buildMeasured(t)
  await until(() => text().includes('\nskillserve_catalog_revision '))
  const { revision } = JSON.parse((await fetch('/readyz')).text) as { readonly revision: string }
  t.equal(value('skillserve_catalog_revision'), Number.parseInt(revision.slice(0, 12), 16))

  const refreshed = new Signal<RootRefresh>()
  const roots = (['docs', 'ops', 'docs'] as const).map((name, i) => ({ name, type: 'project' as const, state: i === 2 ? 'missing' as const : 'ok' as const, skills: 1, skipped: 0 }))
  const status = { ready: true, indexed: true, generation: 0, skills: 2, roots, watcher: { status: 'watching', mode: 'events', errors: 0 }, failures: [], hanging: [] } as const
  const metrics = createMetrics({
    skills: { status, contents: { usage: { bytes: 0, hits: 0, misses: 0 } }, refreshed, invalidNow: () => [0, 2, 1], isWatching: (root) => root === 1 }, version: ''
  })
  t.teardown(() => { metrics.close() })
  t.intercept(Date, 'now', { value: () => 5_000_000_000_000 })
  for (const [root, isFailed] of [[0, false], [1, false], [1, true], [2, true]] as const) refreshed.emit({ milliseconds: 3, isFailed, root, differences: 0 })
  const written = metrics.write(PROMETHEUS)
  for (const line of [
    'skillserve_refresh_duration_seconds_count{root="docs"} 1', 'skillserve_refresh_duration_seconds_count{root="ops"} 2', 'skillserve_refresh_failures_total{root="ops"} 1',
    'skillserve_watcher_healthy{root="docs"} 0', 'skillserve_watcher_healthy{root="ops"} 1',
    'skillserve_root_available{root="docs"} 1', 'skillserve_root_available{root="docs-2"} 0', 'skillserve_last_refresh_timestamp_seconds{root="ops"} 5000000000',
    'skillserve_skills_invalid{root="ops"} 2', 'skillserve_skills_invalid{root="docs-2"} 1', 'skillserve_watcher_healthy{root="docs-2"} 0'
  ]) t.match(written, `${line}\n`)
  const series = written.split('\n').map((line) => line.replace(/ \S+$/, ''))
  t.equal(new Set(series).size, series.length, 'no series twice, which Prometheus refuses')
  t.notMatch(written, /^skillserve_catalog_revision /m, 'not known')
  t.notMatch(written, 'skillserve_last_refresh_timestamp_seconds{root="docs-2"} 5000000000', 'a comparison that failed')
})

t.test('K71: a thousand random URLs, methods, skills and tools add no series', async (t) => {
  const { url, series, text, counted, post, fetch } = await buildMeasured(t)
  await fetch('/skills/none-0')
  await globalThis.fetch(`${url}/none-0`)
  await globalThis.fetch(`${url}/skills`, { method: 'DELETE' })
  await post('/agent/tool-call', { name: 'none_0', arguments: {} })
  await rawRequest(url, request('LOCK', '/skills/none'))
  await counted(6)
  await until(() => text().includes('\nskillserve_catalog_revision '))
  const before = series()
  const connection = await openRaw(url)
  t.teardown(() => { connection.destroy() })
  connection.send(Buffer.concat(Array.from({ length: 250 }, (_, i) => [
    request('GET', `/skills/none-${i}`), request('GET', `/none-${i}/x?y=${i}`), request(i % 2 === 0 ? 'DELETE' : 'PURGE', `/skills/${i}`), jsonRequest('POST', '/agent/tool-call', { name: `none_${i}`, arguments: {} })
  ]).flat()))
  await counted(1_006)
  t.strictSame(series(), before)
  t.match(text(), 'http_request_method="_OTHER"')
})

t.test('K71: calls of tools are counted by tool, dialect and outcome, and MCP requests by method', async (t) => {
  const { post, fetch, value, url } = await buildMeasured(t)
  await post('/agent/tool-call', [
    { id: 'a', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"demo"}' } },
    { id: 'b', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"none"}' } },
    { id: 'c', type: 'function', function: { name: 'rm_rf', arguments: '{}' } }
  ])
  await post('/agent/tools/list_skills', {})
  const calls = (labels: string) => value(`skillserve_tool_calls_total{${labels}}`)
  t.equal(calls('tool="get_skill",dialect="openai",outcome="ok"'), 1)
  t.equal(calls('tool="get_skill",dialect="openai",outcome="error"'), 1)
  t.equal(calls('tool="_unknown",dialect="openai",outcome="refused"'), 1)
  t.equal(calls('tool="list_skills",dialect="rest",outcome="ok"'), 1)

  await (await globalThis.fetch(`${url}/mcp`, modernRequest({ method: 'tools/call', params: { name: 'get_skill', arguments: { skill_name: 'none' } } }))).text()
  await (await globalThis.fetch(`${url}/mcp`, modernRequest({ method: 'tools/list', params: {} }))).text()
  await (await globalThis.fetch(`${url}/mcp`, modernRequest({ method: 'resources/read', params: { uri: 'skill://none/x' } }))).text()
  await (await globalThis.fetch(`${url}/mcp`, modernRequest({ method: 'strange/method', params: {} }))).text()
  const operations = (labels: string) => value(`mcp_server_operation_duration_seconds_count{${labels}}`)
  t.equal(calls('tool="get_skill",dialect="mcp",outcome="error"'), 1)
  t.equal(operations('mcp_method_name="tools/call",error_type="tool_error"'), 1)
  t.equal(operations('mcp_method_name="tools/list",error_type=""'), 1)
  t.equal(operations('mcp_method_name="resources/read",error_type="-32602"'), 1)
  t.notMatch((await fetch('/')).text, 'metrics')
})

t.test('K71: skills, invalid ones, freshness, streams, the process', async (t) => {
  const { value, url, fetch: ask } = await buildMeasured(t)
  t.equal(value('skillserve_skills{root="skills"}'), 2)
  t.equal(value('skillserve_root_available{root="skills"}'), 1)
  t.equal(value('skillserve_skills_invalid{root="skills"}'), 1)
  t.ok(value('skillserve_catalog_generation') >= 1)
  t.ok(Math.abs(value('skillserve_last_refresh_timestamp_seconds{root="skills"}') - Date.now() / 1000) < 60)
  t.equal(value('skillserve_watcher_healthy{root="skills"}'), 0, 'this service has no watcher')
  t.equal(value('skillserve_issuers_away'), 0)
  t.ok(value('process_resident_memory_bytes') > 1e7)
  const { user, system } = process.cpuUsage()
  t.ok(Math.abs(value('process_cpu_seconds_total') - (user + system) / 1e6) < 5)
  t.ok(Math.abs(value('process_start_time_seconds') - (Date.now() / 1000 - process.uptime())) < 5)
  const delays = ['p50', 'p99', 'max'].map((stat) => value(`nodejs_eventloop_delay_seconds{stat="${stat}"}`))
  t.ok(delays.every((delay, i) => 1.01 * delay + 0.001 >= (delays[i - 1] ?? 0)) && delays.every((delay) => delay < 60), delays.join())
  const busy = value('nodejs_eventloop_utilization_ratio')
  t.ok(busy >= 0 && busy <= 1, String(busy))
  // A file that was written a moment ago is read again.
  await until(async () => {
    await ask('/skills/demo/files/a.txt')
    return value('skillserve_cache_hits_total{cache="contents"}') > 0
  })
  for (const name of ['misses_total', 'hits_total', 'bytes']) t.ok(value(`skillserve_cache_${name}{cache="contents"}`) > 0, name)

  const streams = () => ['event', 'mcp'].map((kind) => value(`skillserve_${kind}_streams`))
  const abort = new AbortController()
  const open = async (path: string, init: RequestInit = { headers: { accept: 'text/event-stream' } }) => await (await fetch(url + path, { ...init, signal: abort.signal })).body?.getReader().read()
  await open('/events')
  await ask('/events', { method: 'HEAD', headers: { accept: 'text/event-stream' } })
  t.strictSame(streams(), [1, 0])
  await open('/mcp')
  for (let i = 0; i < 2; i++) await open('/mcp', listenRequest())
  await open('/mcp', modernRequest({ method: 'tools/list' }))
  t.strictSame(streams(), [1, 3], 'one to GET, and two that POST has opened')
  abort.abort()
  await until(() => streams().every((count) => count === 0))
})

t.test('K68 K71: what overload refuses is counted, and no other 503', async (t) => {
  const shutdown = new Shutdown()
  const { value, fetch, counted, app } = await buildMeasured(t, { overload: { maxEventLoopDelay: Number.MIN_VALUE, sampleInterval: 10 }, shutdown })
  await until(() => app.isUnderPressure())
  await shutdown.begin()
  t.strictSame(await Promise.all(['/skills', '/skills/demo', '/readyz'].map(async (path) => (await fetch(path)).status)), [503, 503, 503])
  await counted(4)
  t.equal(value('skillserve_overload_refusals_total'), 2)
})

t.test('K71: beyond a thousand series of one metric new ones share the last, and the text is written well within a second', async (t) => {
  const histogram = new Histogram({ help: 'Text.', labels: ['http_route', 'http_response_status_code'] })
  for (let i = 0; i < 1_500; i++) histogram.of(`/${i}`, '200').observe(0.001)
  const text = writeMetrics({ durations: histogram }, PROMETHEUS)
  t.equal(text.split('\n').filter((line) => line.startsWith('durations_count')).length, 1_001)
  const last = 'http_route="_other",http_response_status_code="_other"'
  for (const [le, count] of [['0.0005', 0], ['0.001', 500], ['10', 500], ['+Inf', 500]]) t.match(text, `durations_bucket{${last},le="${le}"} ${count}\n`)
  t.match(text, `durations_count{${last}} 500\n`)
})

t.test('K71: reads are counted for names of the catalog alone, a thousand of them, and a skill that is gone is forgotten after an hour', async (t) => {
  let names: readonly string[] = Array.from({ length: 1_500 }, (_, i) => `skill-${i}`)
  let time = 0
  const reads = new SkillReads({ namesNow: () => names, now: () => time })
  const rows = () => reads.rows()
  for (let i = 0; i < 1_500; i++) {
    for (const skill of [`skill-${i}`, `invented-${i}`]) reads.count({ event: 'skill.read', door: 'rest', skill })
  }
  t.equal(rows().length, 1_001)
  t.strictSame(rows().at(-1), ['_other', 'rest', 500])
  names = ['skill-0']
  t.equal(rows().length, 1_001, 'the last reads are still scraped')
  time += 3_000_000
  names = ['skill-0', 'skill-1']
  t.equal(rows().length, 1_001)
  names = ['skill-0']
  time += 600_001
  t.equal(rows().length, 3, 'one of them had come back')
  time += 3_600_001
  t.strictSame(rows(), [['skill-0', 'rest', 1], ['_other', 'rest', 500]])
})

t.test('K71: the count of a skill keeps nothing of the URL that its name stood in', async (t) => {
  const names = Array.from({ length: 1_000 }, (_, i) => `skill-with-a-long-name-${i}`)
  const reads = new SkillReads({ namesNow: () => names })
  const ofEach = heapOfEach(names.length, (i) => {
    const url = Buffer.from(`/skills/${names[i]}?${'&'.repeat(15_000)}`).toString()
    reads.count({ event: 'skill.read', door: 'rest', skill: url.slice('/skills/'.length, url.indexOf('?')) })
  })
  t.ok(ofEach < 2_000, `${ofEach} bytes`)
  t.equal(reads.rows().length, names.length)
})

t.test('K71: a call by display name counts as a read of the skill that was found, a read through MCP as any other, and one that fails as none', async (t) => {
  const reads = new SkillReads({ namesNow: () => ['bare', 'pdf', 'pdf-tools'] })
  const { post, url } = await buildService(t, {
    files: { bare: {}, pdf: { 'SKILL.md': skillText('other') }, 'pdf-tools': { 'SKILL.md': skillText('pdf') } },
    options: { observe: () => [observeReads(reads)] }
  })
  for (const skill of ['pdf', ' pdf ', 'other', 'none']) await post('/agent/tools/skill', { skill })
  await post('/agent/tools/get_skill', { skill_name: 'bare' })
  for (const name of ['pdf', 'bare']) await (await fetch(`${url}/mcp`, modernRequest({ method: 'resources/read', params: { uri: `skill://${name}/SKILL.md` } }))).text()
  t.strictSame(reads.rows(), [['pdf-tools', 'rest', 2], ['pdf', 'rest', 1], ['pdf', 'mcp/modern', 1]])
})

t.test('K71: the text is the format of Prometheus, and of OpenMetrics where that is asked for', async (t) => {
  const { text, openMetrics, fetch } = await buildMeasured(t)
  await fetch('/skills/demo')
  const families = parsePrometheus(text())
  t.ok(families.length > 30)
  for (const { name, help, type, metrics } of families) {
    t.ok(help.endsWith('.'), `${name} has a sentence`)
    t.ok(['COUNTER', 'GAUGE', 'HISTOGRAM'].includes(type))
    t.ok(Array.isArray(metrics))
  }
  t.match(openMetrics(), /# TYPE skillserve_tool_calls counter\n/)
  t.match(openMetrics(), /\n# EOF\n$/)
})

const hasPromtool = spawnSync('promtool', ['--version']).error === undefined

t.test('K71: promtool accepts the text', { skip: hasPromtool ? false : 'promtool is not installed' }, async (t) => {
  const { text, fetch, post } = await buildMeasured(t)
  await fetch('/skills/demo')
  await post('/agent/tools/list_skills', {})
  const { status, stderr, stdout } = spawnSync('promtool', ['check', 'metrics'], { input: text(), encoding: 'utf8' })
  t.equal(status, 0)
  t.equal(`${stderr}${stdout}`, '')
})

t.test('K55, K71: on a loopback address the port of the metrics answers to loopback names alone', async (t) => {
  for (const [host, foreign] of [['127.0.0.1', 403], ['0.0.0.0', 200]] as const) {
    const server = await listenForMetrics({ write: () => 'up 1\n' }, { host, port: 0 })
    t.teardown(() => { server.close() })
    const { port } = new URL(server.url)
    const statusOf = async (name: string) => (await rawRequest(`http://127.0.0.1:${port}`, request('GET', '/metrics', { host: name }))).status
    for (const name of ['localhost', '127.0.0.1:9464', '[::1]']) t.equal(await statusOf(name), 200, `${host}: ${name}`)
    for (const name of ['evil.example', '127.0.0.1.evil.example', '']) t.equal(await statusOf(name), foreign, `${host}: ${name}`)
    for (const method of ['GET', 'HEAD']) t.match(await rawRequest(`http://127.0.0.1:${port}`, request(method, '/metrics?x=1')), { status: 200, headers: { 'cache-control': 'no-store' }, text: method === 'GET' ? 'up 1\n' : '' }, method)
  }
})
