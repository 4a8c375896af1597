import { once } from 'node:events'
import { Readable } from 'node:stream'
import t from 'tap'
import { buildWithRoutes } from '../helper/build.ts'
import { META, modernRequest } from '../helper/mcp.ts'
import { jsonRequest, openRaw, rawRequest, request } from '../helper/raw-http.ts'

t.test('the log', async (t) => {
  const waiting: Array<() => void> = []
  const started = new EventTarget()
  const wait = async () => {
    started.dispatchEvent(new Event('started'))
    await new Promise<void>((resolve) => waiting.push(resolve))
    return 'late'
  }
  const { url, logText, log, logged } = await buildWithRoutes(t, (app) => {
    app.get('/wait', wait)
    app.post('/wait', wait)
    app.get('/broken', (_request, reply) => reply.type('text/plain').send(Readable.from(async function * () {
      yield 'x'
      throw new Error('disk gone')
    }())))
  })
  const entriesOf = (id: string) => log().filter(({ reqId }) => reqId === id)
  const completed = (id: string) => logged(({ reqId, msg }) => reqId === id && String(msg).startsWith('request '))
  const get = (target: string, id: string, ...headers: readonly string[]) =>
    rawRequest(url, request('GET', target, { headers: [`X-Request-Id: ${id}`, ...headers] }))

  t.test('K70: a request leaves one line, with route pattern, client address, and the code of a problem', async (t) => {
    const connection = await openRaw(url)
    for (const [index, [method, target, entry]] of ([
      ['GET', '/skills?x=1', { level: 30, status: 400, url: '/skills?x=1', route: '/skills', code: 'bad_query' }],
      ['GET', '/catalog',
        { level: 30, status: 200, bytes: 42, route: '/catalog', code: undefined, msg: 'request completed' }],
      ['GET', '/skills/a%20b', { status: 404, url: '/skills/a%20b', route: '/skills/:name', code: 'skill_not_found' }],
      ['DELETE', '/skills/one', { status: 405, route: undefined, code: 'method_not_allowed' }],
      ['GET', '/nowhere', { status: 404, route: undefined, code: 'route_not_found' }],
      ['GET', '/skills/%zz', { status: 400, route: undefined, code: 'bad_url' }],
      ['GET', `/skills/${'a'.repeat(2_000)}`, { status: 414, url: `/skills/${'a'.repeat(248)}`, code: 'uri_too_long' }]
    ] as const).entries()) {
      connection.send(request(method, target, { headers: [`X-Request-Id: ${index}`] }))
      const found = await completed(String(index))
      t.match(found, { method, client: '127.0.0.1', ...entry })
      t.ok(Number(found['ms']) > 0)
      t.equal(entriesOf(String(index)).length, 1)
    }
    connection.destroy()
  })

  t.test('K2: HEAD sent no bytes; 304 is logged at debug', async (t) => {
    await rawRequest(url, request('HEAD', '/skills', { headers: ['X-Request-Id: head'] }))
    t.match(await completed('head'), { status: 200, bytes: undefined })
    t.equal((await get('/skills', 'fresh', 'If-None-Match: *')).status, 304)
    await get('/skills', 'after')
    await completed('after')
    t.same(entriesOf('fresh'), [])
  })

  t.test("K72: the ids of the caller's trace are in the line, from the header or from a message of MCP", async (t) => {
    const [trace, span] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
    const ids = { trace_id: trace, span_id: span }
    for (const [index, [traceparent, expected]] of ([
      [`00-${trace}-${span}-01`, { ...ids, trace_flags: '01' }],
      [`cc-${trace}-${span}-00-what-the-future-will-be-like`, { ...ids, trace_flags: '00' }],
      ...['no trace', `00-${trace}-${span}-01-x`, `cc-${trace}-${span}-01x`, `ff-${trace}-${span}-01`,
        `00-${trace.toUpperCase()}-${span}-01`,
        `00-${'0'.repeat(32)}-${span}-01`, `00-${trace}-${'0'.repeat(16)}-01`].map((text) =>
        [text, { trace_id: undefined }] as const)
    ] as const).entries()) {
      await get('/skills', `trace${index}`, `Traceparent: ${traceparent}`)
      t.match(await completed(`trace${index}`), expected, traceparent)
    }
    const message = modernRequest({
      method: 'tools/list', params: { _meta: { ...META, traceparent: `00-${trace}-${span}-00` } }
    }, {
      'x-request-id': 'message', traceparent: `00-${'a'.repeat(32)}-${span}-01`
    })
    await (await fetch(`${url}/mcp`, message)).text()
    t.match(await completed('message'), { ...ids, trace_flags: '00' })
  })

  t.test('requests that the client breaks off are logged as aborted', async (t) => {
    for (const [id, bytes] of [
      ['gone1', request('GET', '/wait', { headers: ['X-Request-Id: gone1'] })],
      ['gone2', jsonRequest('POST', '/wait', {}, { headers: ['X-Request-Id: gone2'] })]
    ] as const) {
      const connection = await openRaw(url)
      const running = once(started, 'started')
      connection.send(bytes)
      await running
      connection.destroy()
      t.match(await completed(id), { msg: 'request aborted', url: '/wait', status: 499 })
      waiting.shift()?.()
    }
  })

  t.test('a stream that fails behind the head ends the connection and is an error in the log', async (t) => {
    await t.rejects(get('/broken', 'broken'))
    t.match(await completed('broken'), { msg: 'request aborted', status: 200 })
    t.match(await logged(({ level }) => level === 50), { msg: 'response stream failed', err: { message: 'disk gone' } })
  })

  t.test('nothing of a request starts a new line or reaches a terminal', async (t) => {
    await get('/skills/%0a%1b[31m{"level":60}', 'quoted', 'User-Agent: "\\', 'X-Forwarded-For: x')
    t.match(await completed('quoted'), { url: '/skills/%0a%1b[31m{"level":60}' })
    t.notMatch(logText(), /[^\x20-\x7e\n]/)
  })
})
