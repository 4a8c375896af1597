import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { createSecret } from '../../src/access/secret.ts'
import { listenRequest, modernRequest } from '../helper/mcp.ts'
import { installSdk } from '../helper/otel.ts'
import { startProcess } from '../helper/process.ts'
import { skillText, until } from '../helper/skills.ts'

const SKILL = { demo: { 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# Demo CANARY-CONTENT\n' } }

t.test('K72: with an SDK that --import loads, requests, tool calls and MCP requests are spans of the caller\'s ' +
  'trace, and an event stream is one until its head is out', async (t) => {
  const folder = t.testdir({ skills: { ...SKILL, pdf: { 'SKILL.md': skillText('other') } } })
  const sdk = installSdk(folder)
  const service = await startProcess(t, { args: [join(folder, 'skills')], nodeOptions: sdk.nodeOptions })
  const [trace, span, other] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7', 'a'.repeat(32)]
  const headers = {
    traceparent: `00-${trace}-${span}-01`, authorization: 'Bearer CANARY-TOKEN', cookie: 'x=CANARY-COOKIE'
  }
  await (await fetch(`${service.url}/skills/demo?revision=current`, { headers })).text()
  await (await fetch(`${service.url}/catalog?q=CANARY-QUERY`, { headers })).text()
  await (await fetch(`${service.url}/livez`, { headers })).text()
  await (await fetch(`${service.url}/skills`)).text()
  const secret = createSecret('link')
  await (await fetch(`${service.url}//t/${secret}/x`)).text()
  await (await fetch(`${service.url}/agent/tool-call`, {
    method: 'POST',
    headers: {
      ...headers, 'content-type': 'application/json'
    },
    body: JSON.stringify(
      [{ id: 'a', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"none"}' } }])
  })).text()
  await (await fetch(`${service.url}/mcp`, modernRequest({
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
  }, { traceparent: headers.traceparent }))).text()
  await (await fetch(`${service.url}/agent/tools/skill`,
    { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"skill":"other"}' })).text()

  const message = { jsonrpc: '2.0', id: 1, method: 'STRANGE/method' }
  const strange = [
    modernRequest(message), modernRequest({ method: 'tools/call', params: { name: 'STRANGE-tool', arguments: {} } }),
    {
      method: 'POST',
      headers: {
        'content-type': 'application/json', accept: 'application/json, text/event-stream'
      },
      body: JSON.stringify(message)
    }
  ]
  for (const init of strange) {
    await (await fetch(`${service.url}/mcp`,
      { ...init, headers: { ...init.headers as Record<string, string>, traceparent: headers.traceparent } })).text()
  }

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
  t.match(await service.stop(), { code: 0 })
  t.strictSame(ofStreams().map(({ name }) => name).sort(), ['GET /events', 'GET /mcp', 'POST /mcp'], 'each ends once')
  for (const { name, attributes } of ofStreams()) t.equal(attributes['http.response.status_code'], 200, name)
  const text = sdk.text()
  const spans = sdk.spans()
  const named = (name: string) => spans.filter((line) => line.name === name)

  t.match(named('GET /skills/:name'),
    [{
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
  const [own] = named('GET /skills')
  t.match(inLog('/skills'), { trace_id: own?.trace, span_id: own?.id }, 'a trace that begins here')
  t.notOk(own?.trace === trace)
})

t.test('K72: the status of a span is unset for 4xx, and an error for 5xx; methods are the known ones', async (t) => {
  const folder = t.testdir({ skills: SKILL })
  const sdk = installSdk(folder)
  const service = await startProcess(t, { args: [join(folder, 'skills')], nodeOptions: sdk.nodeOptions })
  const ask = async (path: string, init?: RequestInit) => (await fetch(service.url + path, init)).status
  const body = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{' }
  t.equal(await ask('/skills/none'), 404)
  t.equal(await ask('/catalog?limit=none'), 400)
  t.equal(await ask('/agent/tool-call', body), 400)
  t.equal(await ask('/nowhere', { method: 'PROPFIND' }), 404)
  t.equal(await ask('/skills/demo'), 200)
  rmSync(join(folder, 'skills'), { recursive: true })
  t.equal(await ask('/skills'), 503)
  await service.stop()
  const statuses = sdk.spans().map(({ name, status, events, attributes }) =>
    `${name} ${String(attributes['http.response.status_code'])}: ${status}, ${events}`)
  t.strictSame(statuses.sort(), [
    'GET /catalog 400: 0, 0', 'GET /skills 503: 2, 0', 'GET /skills/:name 200: 0, 0', 'GET /skills/:name 404: 0, 0',
    'POST /agent/tool-call 400: 0, 0', '_OTHER 404: 0, 0'
  ])
})

t.test('K72: without an SDK no module of OpenTelemetry is loaded', async (t) => {
  const folder = t.testdir({ skills: SKILL })
  writeFileSync(join(folder, 'hooks.mjs'),
    "export async function load (url, context, next) { if (/opentelemetry|traces/.test(url)) process._rawDebug('LOADED ' + url); return next(url, context) }")
  writeFileSync(join(folder, 'register.mjs'),
    `import { register } from 'node:module'\nregister(${JSON.stringify(pathToFileURL(join(folder, 'hooks.mjs')).href)})`)
  const service = await startProcess(t,
    { args: [join(folder, 'skills')], nodeOptions: ['--import', pathToFileURL(join(folder, 'register.mjs')).href] })
  await (await fetch(`${service.url}/skills/demo`)).text()
  const { stderr } = await service.stop()
  t.notMatch(stderr, 'LOADED')
})
