import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { createSecret } from '../../src/access/secret.ts'
import { runHere } from '../helper/command-line.ts'
import { newSecret } from '../helper/guarded.ts'
import { listenRequest, modernRequest } from '../helper/mcp.ts'
import { installSdk } from '../helper/otel.ts'
import { startProcess } from '../helper/process.ts'
import { freePort } from '../helper/proxies.ts'
import { openRaw, request } from '../helper/raw-http.ts'
import { saveAtomically, skillText, until } from '../helper/skills.ts'

const FILES = { demo: { 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# Demo\n' } }

t.test('K67 K70 K71 K72 K73: a service with callers counts and reports reads and refusals, and no secret is in any ' +
  'signal at any level', async (t) => {
  const [ci, metrics, link] = [
    newSecret('ci', 'groups: [all]'), newSecret('prometheus', 'scopes: [metrics:read]'),
    newSecret('public', 'groups: [all]', 'link')
  ]
  const policy = `tokens:\n  - ${ci.entry}\n  - ${metrics.entry}\nlinks:\n  - ${link.entry}
rules:\n  - { groups: [all] }\n`
  const document = '---\nname: demo\ndescription: A demo\n---\nCANARY-CONTENT\n'
  const folder = t.testdir({
    skills: { demo: { 'SKILL.md': document, 'a.txt': 'CANARY-FILE' } }, 'access.yaml': policy
  })
  const access = join(folder, 'access.yaml')
  const sdk = installSdk(folder)
  const service = await startProcess(t, {
    args: [join(folder, 'skills')],
    env: {
      ACCESS_FILE: access,
      AUDIT_LOG: 'stdout',
      LIMITS_STORE: 'redis://127.0.0.1:1',
      LOG_LEVEL: 'trace',
      METRICS_READS: 'true'
    },
    nodeOptions: sdk.nodeOptions
  })
  async function fetchAs (path: string, token?: string, headers: Record<string, string> = {}, method = 'GET') {
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const response = await fetch(`${service.url}${path}`, { method, headers: { ...headers, ...authorization } })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  t.equal((await fetchAs('/metrics')).status, 401)
  t.equal((await fetchAs('/metrics', ci.text)).status, 403)
  t.match((await fetchAs('/metrics', metrics.text)).headers.get('content-type'), 'text/plain; version=0.0.4')

  for (const [path, token, status] of [
    ['/skills/demo', ci.text, 200], ['/skills/demo', 'wrong', 401], ['/skills/demo/archive.zip', ci.text, 200],
    ['/skills/demo/files/SKILL.md', ci.text, 200], ['/skills/demo/files/a.txt', ci.text, 200],
    ['/skills/none', ci.text, 404]
    // A busy machine may refuse the archive at first.
  ] as const) await until(async () => (await fetchAs(path, token)).status === status)
  const etag = (await fetchAs('/skills/demo', ci.text)).headers.get('etag') ?? ''
  t.equal((await fetchAs('/skills/demo', ci.text, { 'if-none-match': etag })).status, 304)
  await (await fetch(`${service.url}/agent/tool-call`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${ci.text}` },
    body: JSON.stringify({ type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"demo"}' } })
  })).text()
  // Neither gives anybody the bytes.
  for (const path of ['/skills/demo', '/skills/demo/archive.zip']) await fetchAs(path, ci.text, {}, 'HEAD')
  let text = ''
  const value = (series: string) =>
    Number(text.split('\n').find((line) => line.startsWith(`${series} `))?.slice(series.length + 1))
  // A read counts when its response has closed, and a store when its connection has failed.
  await until(async () => {
    text = (await fetchAs('/metrics', metrics.text)).text
    return value('skillserve_reads_total{skill="demo",door="rest"}') === 5 &&
      value('skillserve_limits_store_failures_total') > 0
  })
  t.equal(value('skillserve_reads_total{skill="demo",door="tool-call/openai"}'), 1)
  for (const reason of ['missing', 'invalid', 'scope']) {
    t.equal(value(`skillserve_auth_failures_total{reason="${reason}"}`), 1, reason)
  }
  t.equal(value('skillserve_rate_limited_total{rule="units"}'), 0)
  await service.printed('rate-limit store unreachable')
  t.equal(service.log().filter(({ msg }) => String(msg).startsWith('rate-limit store unreachable')).length, 1)
  t.notMatch((await fetchAs('/openapi.json', ci.text)).text, '/metrics')

  const events = (event: string) => service.log().filter((line) => line['event'] === event)
  saveAtomically(access, 'tokens: nonsense\n')
  await until(() => events('policy.rejected').length === 1)
  saveAtomically(access, `${policy}# Again\n`)
  saveAtomically(join(folder, 'skills/demo/SKILL.md'), `${document}CANARY-EDIT\n`, join(folder, 'next'))
  await until(() => events('policy.loaded').length === 2 && events('skill.changed').length > 0)
  t.match(events('skill.read')[0], {
    outcome: 'success',
    principal: { kind: 'token', id: 'token:ci', name: 'ci', groups: ['anonymous', 'authenticated', 'all'] },
    target: { skill: 'demo', root: 'skills' }
  })
  t.match(events('auth.failed'), [
    { outcome: 'denied', target: { code: 'unauthenticated' } },
    {
      outcome: 'denied',
      principal: { kind: 'anonymous' },
      door: 'rest',
      target: { skill: 'demo', code: 'invalid_token' }
    }
  ])
  t.match(events('policy.rejected'), [{ outcome: 'failure', target: { file: access, problem: /access\.yaml:1/ } }])
  t.match(events('policy.loaded')[0], { target: { file: access, digest: /^sha256:[\da-f]{64}$/ } })
  t.match(events('skill.changed'), [{ outcome: 'success', target: { skill: 'demo' } }])

  const headers = {
    cookie: 'session=CANARY-COOKIE',
    'proxy-authorization': 'Basic CANARY-PROXY',
    'x-forwarded-access-token': 'CANARY-FORWARDED'
  }
  const index = `/t/${link.text}/.well-known/skills/index.json`
  const paths = [
    '/skills/demo', '/skills/none', '/catalog', '/nowhere', '/skills/demo/archive.zip',
    '/skills?access_token=CANARY-QUERY', index, `/t/${link.text}/skills`, `/t/${link.text}`,
    '/t/skl_CANARY-GUESS/.well-known/skills/index.json', '/catalog?q=CANARY-SEARCH'
  ]
  for (const path of paths) for (const token of [ci.text, 'CANARY-TOKEN']) await fetchAs(path, token, headers)
  t.equal((await fetchAs(index)).status, 200)
  const scraped = (await fetchAs('/metrics', metrics.text)).text
  const { stdout, stderr } = await service.stop()
  t.match(stdout, '"event":"discovery.index"')
  const spans = sdk.text()
  t.match(spans, '/.well-known/skills/index.json')
  // The words of a search are in the URL of its request, in the log, and in its audit line.
  const log = stdout.replaceAll('/catalog?q=CANARY-SEARCH', '').replaceAll('"query":"CANARY-SEARCH"', '')
  const secrets = ['CANARY', metrics.text, ...[ci, link].flatMap((each) => [each.text, each.text.slice(4)])]
  for (const signal of [scraped, log, stderr, spans]) {
    for (const secret of secrets) t.notOk(signal.includes(secret), secret)
  }
})

t.test('K70 K71 K72 K73 K96: metrics have a port of their own, a pretty log is for people, the audit log survives ' +
  'rotation and SIGTERM without a lost line, usage counts it, and no OpenTelemetry is loaded', async (t) => {
  const folder = t.testdir({ skills: { ...FILES, unread: { 'SKILL.md': skillText('unread') } } })
  const [path, rotated] = [join(folder, 'audit.log'), join(folder, 'audit.log.1')]
  const at = (name: string) => pathToFileURL(join(folder, name)).href
  writeFileSync(join(folder, 'hooks.mjs'), `export async function load (url, context, next) {
    if (/opentelemetry|traces/.test(url)) process._rawDebug('LOADED ' + url)
    return next(url, context)
  }`)
  writeFileSync(join(folder, 'register.mjs'),
    `import { register } from 'node:module'\nregister(${JSON.stringify(at('hooks.mjs'))})`)
  const port = await freePort()
  const service = await startProcess(t, {
    args: [join(folder, 'skills')],
    env: { AUDIT_LOG: path, METRICS_PORT: String(port), LOG_FORMAT: 'pretty' },
    nodeOptions: ['--import', at('register.mjs')]
  })
  t.equal((await fetch(`${service.url}/metrics`)).status, 404)
  const metrics = await fetch(`http://127.0.0.1:${port}/metrics`)
  t.equal(metrics.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  t.match(await metrics.text(), /^skillserve_skills\{root="skills"\} 2$/m)
  t.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 404)
  let reads = 0
  const read = async () => {
    reads++
    await (await fetch(`${service.url}/skills/demo`)).text()
  }
  await read()
  await until(() => readFileSync(path, 'utf8').includes('"skill.read",'))
  renameSync(path, rotated)
  service.signal('SIGHUP')
  // Reads go to the old file until the reload has been committed.
  await until(async () => {
    await read()
    return existsSync(path) && readFileSync(path, 'utf8').includes('skill.read')
  })
  await (await fetch(`${service.url}/skills/none`)).text()
  await (await fetch(`${service.url}/catalog?q=nothing-fits`)).text()
  const { code, stdout, stderr } = await service.stop()
  t.equal(code, 0)
  t.notMatch(stderr, 'LOADED')
  t.match(stdout, /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: serving a skills folder\n/m)
  t.match(stdout, /INFO: GET \/skills\/demo 200 [\d.]+ ms 127\.0\.0\.1\n/)
  t.match(stdout, /INFO: GET \/skills\/none 404 [\d.]+ ms 127\.0\.0\.1\n {4}code: "skill_not_found"\n/)
  t.notOk(stdout.includes('\u001b'), 'no colours in a pipe')
  const texts = [rotated, path].flatMap((file) => readFileSync(file, 'utf8').trim().split('\n'))
  const lines = texts.map((line) => JSON.parse(line) as { readonly event: string, readonly prev: string | null })
  for (const [i, { prev }] of lines.entries()) {
    t.equal(prev, i === 0 ? null : createHash('sha256').update(texts[i - 1] ?? '').digest('hex'),
      'one chain over the rotation')
  }
  t.equal(lines.at(0)?.event, 'service.started')
  t.equal(lines.at(-1)?.event, 'service.stopped')
  t.equal(lines.length, reads + 4)
  const usage = await runHere(['usage', rotated, path, '--format', 'json', '--roots', join(folder, 'skills')])
  t.match(JSON.parse(usage.stdout), {
    skills: [{ name: 'demo', count: reads, callers: 1 }],
    never_read: ['unread'],
    empty_searches: [{ name: 'nothing-fits', count: 1 }]
  })
})

t.test('K73: a disk that hangs delays no request and no end, and the log says that it hangs', async (t) => {
  const folder = t.testdir({ skills: FILES })
  const fifo = join(folder, 'audit.fifo')
  t.equal(spawnSync('mkfifo', [fifo]).status, 0)
  // Holds the other end open and reads nothing: a write waits for ever once the pipe is full.
  const holder = await open(fifo, 'r+')
  t.teardown(() => holder.close())
  const service = await startProcess(t, { args: [join(folder, 'skills')], env: { AUDIT_LOG: fifo } })
  const connection = await openRaw(service.url)
  t.teardown(() => { connection.destroy() })
  // A pipe has room for 64 KiB, and a line of a read has more than 400 bytes.
  for (let i = 0; i < 200; i++) t.equal((await connection.send(request('GET', '/skills/demo')).response()).status, 200)
  await service.printed(/"problem":"slow","msg":"audit log cannot be written/)
  const { code, signal } = await service.stop()
  t.ok(code === 0 || signal === 'SIGKILL')
})

t.test('K72: with an SDK that --import loads, requests, tool calls and MCP requests are spans of the caller\'s ' +
  'trace; an event stream is one until its head is out, and 4xx are no errors', async (t) => {
  const folder = t.testdir({ skills: { ...FILES, pdf: { 'SKILL.md': skillText('other') } } })
  const sdk = installSdk(folder)
  const service = await startProcess(t, { args: [join(folder, 'skills')], nodeOptions: sdk.nodeOptions })
  const [trace, span, other] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7', 'a'.repeat(32)]
  const headers = {
    traceparent: `00-${trace}-${span}-01`, authorization: 'Bearer CANARY-TOKEN', cookie: 'x=CANARY-COOKIE'
  }
  const send = async (path: string, init?: RequestInit) => {
    const response = await fetch(service.url + path, init)
    await response.text()
    return response.status
  }
  const post = async (path: string, body: object, more = {}) => await send(path,
    { method: 'POST', headers: { ...more, 'content-type': 'application/json' }, body: JSON.stringify(body) })
  for (const path of ['/skills/demo?revision=current', '/catalog?q=CANARY-QUERY', '/livez']) {
    await send(path, { headers })
  }
  await send('/skills')
  const secret = createSecret('link')
  await send(`//t/${secret}/x`)
  await post('/agent/tool-call',
    [{ id: 'a', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"none"}' } }], headers)
  await send('/mcp', modernRequest({
    method: 'tools/call',
    params: {
      name: 'get_skill',
      arguments: { skill_name: 'demo' },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
        traceparent: `00-${other}-${span}-01`,
        baggage: 'team=docs'
      }
    }
  }, { traceparent: headers.traceparent }))
  await post('/agent/tools/skill', { skill: 'other' })

  const { traceparent } = headers
  const message = { jsonrpc: '2.0', id: 1, method: 'STRANGE/method' }
  await send('/mcp', modernRequest(message, { traceparent }))
  const params = { name: 'STRANGE-tool', arguments: {} }
  await send('/mcp', modernRequest({ method: 'tools/call', params }, { traceparent }))
  await post('/mcp', message, { accept: 'application/json, text/event-stream', traceparent })

  const open = new AbortController()
  const { signal } = open
  const accept = 'text/event-stream'
  const streams = await Promise.all([
    fetch(`${service.url}/events`, { signal }),
    fetch(`${service.url}/mcp`, { signal, headers: { accept } }),
    fetch(`${service.url}/mcp`, { signal, ...listenRequest() })
  ])
  for (const { status, headers } of streams) {
    t.match({ status, type: headers.get('content-type') }, { status: 200, type: accept })
  }
  // The caller's trace is that of another request.
  const ofStreams = () =>
    sdk.spans().filter((line) => ['GET /events', 'GET /mcp', 'POST /mcp'].includes(line.name) && line.trace !== trace)
  await until(() => ofStreams().length >= streams.length)
  open.abort()

  const third = 'c'.repeat(32)
  const own = { traceparent: `00-${third}-${span}-01`, 'content-type': 'application/json' }
  const ask = async (path: string, init: RequestInit = {}) => await send(path, { ...init, headers: own })
  t.equal(await ask('/skills/none'), 404)
  t.equal(await ask('/catalog?limit=none'), 400)
  t.equal(await ask('/agent/tool-call', { method: 'POST', body: '{' }), 400)
  t.equal(await ask('/nowhere', { method: 'PROPFIND' }), 404)
  t.equal(await ask('/skills/demo'), 200)
  rmSync(join(folder, 'skills'), { recursive: true })
  t.equal(await ask('/skills'), 503)
  t.match(await service.stop(), { code: 0 })
  const statuses = sdk.spans().filter((line) => line.trace === third).map(({ name, status, events, attributes }) =>
    `${name} ${String(attributes['http.response.status_code'])}: ${status}, ${events}`)
  t.strictSame(statuses.sort(), [
    'GET /catalog 400: 0, 0', 'GET /skills 503: 2, 0', 'GET /skills/:name 200: 0, 0', 'GET /skills/:name 404: 0, 0',
    'POST /agent/tool-call 400: 0, 0', '_OTHER 404: 0, 0'
  ])
  t.strictSame(ofStreams().map(({ name }) => name).sort(), ['GET /events', 'GET /mcp', 'POST /mcp'], 'each ends once')
  for (const { name, attributes } of ofStreams()) t.equal(attributes['http.response.status_code'], 200, name)
  const text = sdk.text()
  const spans = sdk.spans().filter((line) => line.trace !== third)
  const named = (name: string) => spans.filter((line) => line.name === name)

  t.match(named('GET /skills/:name'), [{
    kind: 1,
    trace,
    parent: span,
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/skills/:name',
      'url.path': '/skills/demo',
      'url.scheme': 'http',
      'server.address': '127.0.0.1',
      'client.address': '127.0.0.1',
      'skillserve.skill': 'demo'
    }
  }])
  t.strictSame(named('GET /livez'), [])
  const [request] = named('POST /agent/tool-call')
  const [failed, called] = named('execute_tool get_skill')
  t.match(failed, {
    kind: 0,
    trace,
    parent: request?.id,
    attributes: {
      'gen_ai.tool.name': 'get_skill',
      'gen_ai.tool.call.id': 'a',
      'skillserve.skill': 'none',
      'skillserve.outcome': 'error',
      'error.type': 'tool_error'
    }
  })
  t.match(request?.attributes, { 'http.response.status_code': 200 })
  const [operation] = named('tools/call get_skill')
  t.match(operation, {
    kind: 1,
    trace: other,
    parent: span,
    links: 1,
    attributes: {
      'mcp.method.name': 'tools/call',
      'mcp.protocol.version': '2026-07-28',
      'gen_ai.tool.name': 'get_skill',
      team: 'docs'
    }
  })
  t.match(called, { trace: other, parent: operation?.id, attributes: { 'skillserve.skill': 'demo' } })
  t.match(named('execute_tool skill'), [{ attributes: { 'skillserve.skill': 'pdf', 'skillserve.outcome': 'ok' } }],
    'the folder of a display name')
  t.match(named('POST /mcp').filter((line) => line.trace === trace), [{ trace }])
  t.notMatch(text, 'CANARY')
  t.notMatch(spans.map(({ name }) => name).join(), 'STRANGE', 'a name is no text of a caller')
  t.strictSame(named('_OTHER').map(({ attributes }) => attributes['error.type']).sort(), ['-32601', '404'])
  t.notMatch(text + JSON.stringify(service.log()), secret.slice(12, 30), 'no secret link, whatever its spelling')

  const inLog = (path: string) =>
    service.log().find(({ msg, url }) => msg === 'request completed' && String(url).split('?', 1)[0] === path)
  t.match(inLog('/skills/demo'), { trace_id: trace, span_id: named('GET /skills/:name')[0]?.id, trace_flags: '01' })
  t.match(inLog('/mcp'), { trace_id: other, span_id: operation?.id }, 'the span of the message')
  const [first] = named('GET /skills')
  t.match(inLog('/skills'), { trace_id: first?.trace, span_id: first?.id }, 'a trace that begins here')
  t.not(first?.trace, trace)
})

t.test('K67 K73: settings that no service starts with are an error without their secrets', async (t) => {
  const folder = t.testdir({ skills: FILES, link: t.fixture('symlink', 'skills/demo') })
  const [root, fifo, served] = [join(folder, 'skills'), join(folder, 'audit.fifo'), join(folder, 'link/audit.log')]
  t.equal(spawnSync('mkfifo', [fifo]).status, 0)
  for (const [env, problem] of [
    [{ AUDIT_REQUIRED: 'true' }, /AUDIT_REQUIRED needs AUDIT_LOG: a file, or stdout/],
    [{ AUDIT_SALT: 'CANARY' }, /AUDIT_SALT must be .+/],
    [{ LIMITS_STORE: 'rediss//:CANARY@host' }, /LIMITS_STORE must be .+/],
    [{ LIMITS_STORE: 'redis://:CANARY%zz@host' }, /LIMITS_STORE must be .+/],
    [{ AUDIT_LOG: fifo },
      /AUDIT_LOG must be a writable file: \S+ cannot be opened \(ENXIO: no such device or address\)/],
    // Also through a link, since it would be served.
    [{ AUDIT_LOG: served }, /AUDIT_LOG: "\S+audit\.log" is inside "\S+skills", whose files are served: .+/]
  ] as const) {
    const { code, stderr } = await runHere([root], { env: { PORT: '0', ...env } })
    t.equal(code, 1)
    t.match(stderr, new RegExp(`^skillserve: ${problem.source}\n$`))
    t.notMatch(stderr, 'CANARY')
  }
  t.notOk(existsSync(served))
})
