import t from 'tap'
import { runProcess, startProcess } from '../helper/process.ts'

const FILES = { demo: { 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# Demo\n' } }

t.test('K71: METRICS_PORT has the metrics on a port of its own, and the service has none', async (t) => {
  const service = await startProcess(t, { args: [t.testdir(FILES)], env: { METRICS_PORT: '0' } })
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
  t.match(await service.stop(), { code: 0, stderr: '' })
})

t.test('a port for metrics that is in use stops the start with a line that names the setting', async (t) => {
  const service = await startProcess(t, { args: [t.testdir(FILES)] })
  const { code, stderr } = await runProcess(t, { args: [t.testdir(FILES)], env: { METRICS_PORT: String(service.port) } })
  t.equal(code, 1)
  t.match(stderr, `port ${service.port} of 127.0.0.1 is in use, METRICS_PORT chooses another`)
})

t.test('K70: the log is for people with LOG_FORMAT=pretty, one line a request', async (t) => {
  const service = await startProcess(t, { args: [t.testdir(FILES)], env: { LOG_FORMAT: 'pretty' } })
  await (await fetch(`${service.url}/skills/demo`)).text()
  await (await fetch(`${service.url}/skills/none`)).text()
  const { stdout, code } = await service.stop()
  t.equal(code, 0)
  t.match(stdout, /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: serving a skills folder\n/m)
  t.match(stdout, /INFO: GET \/skills\/demo 200 [\d.]+ ms 127\.0\.0\.1\n/)
  t.match(stdout, /INFO: GET \/skills\/none 404 [\d.]+ ms 127\.0\.0\.1\n {4}code: "skill_not_found"\n/)
  t.notOk(stdout.includes('\u001b'), 'no colours in a pipe')
})

t.test('K70: what is no format is refused by its name', async (t) => {
  const { code, stderr } = await runProcess(t, { env: { LOG_FORMAT: 'xml' } })
  t.equal(code, 1)
  t.match(stderr, 'LOG_FORMAT must be pretty or json, not "xml"')
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
