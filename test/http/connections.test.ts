import { once } from 'node:events'
import type { Socket } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply } from 'fastify'
import t, { type Test } from 'tap'
import { Shutdown } from '../../src/http/shutdown.ts'
import { buildWithRoutes } from '../helper/build.ts'
import { META, modernRequest } from '../helper/mcp.ts'
import { jsonRequest, openRaw, rawRequest, type RawResponse, request } from '../helper/raw-http.ts'
import { until } from '../helper/skills.ts'
import { startStopwatch } from '../helper/timing.ts'

const GET = request('GET', '/wait')

function repeated (count: number, bytes: Buffer): Buffer {
  return Buffer.concat(Array<Buffer>(count).fill(bytes))
}

function addOk (app: FastifyInstance): void {
  app.get('/ok', () => 'ok')
  app.post('/ok', () => 'ok')
}

function checkProblem (t: Test, response: RawResponse, status: number, code: string): void {
  t.equal(response.status, status)
  t.match(response.headers, {
    'content-type': 'application/problem+json',
    'content-length': String(response.body.length),
    connection: 'close',
    'x-content-type-options': 'nosniff'
  })
  t.match(response.json(), {
    type: `urn:skillserve:problem:${code}`, title: /./, status, detail: /./, instance: '/', error: /./, code
  })
}

t.test('K48: what never becomes a request', async (t) => {
  const [stream, begun] = [new PassThrough(), new PassThrough()]
  stream.write('first ')
  begun.write('first ')
  const service = await buildWithRoutes(t, (app) => {
    addOk(app)
    app.get('/stream', (_request, reply) => reply.send(stream))
    app.get('/begun', (_request, reply) => reply.send(begun))
  })
  const { url } = service

  t.test('a head over 16 KiB or of 3,000 lines is 431', async (t) => {
    const lines = Array.from({ length: 3000 }, (_, i) => `X-${i}: a`)
    for (const bytes of [
      request('GET', '/ok', { headers: [`X: ${'a'.repeat(20_000)}`] }),
      request('GET', '/ok', { headers: lines }),
      request('GET', `/${'a'.repeat(20_000)}`)
    ]) checkProblem(t, await rawRequest(url, bytes), 431, 'headers_too_large')
  })

  t.test('contradictory or broken framing, and what is no HTTP, is 400 and closed', async (t) => {
    const framed = (...headers: string[]) => request('POST', '/ok', { headers, body: 'abc' })
    for (const [name, bytes] of Object.entries({
      'a length and chunks': framed('Content-Length: 3', 'Transfer-Encoding: chunked'),
      'two lengths': framed('Content-Length: 3', 'Content-Length: 4'),
      'a negative length': framed('Content-Length: -1'),
      'a length that is no integer': framed('Content-Length: 1e3'),
      'obs-fold': 'GET /ok HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n',
      'space before the colon': 'GET /ok HTTP/1.1\r\nHost : localhost\r\n\r\n',
      'bare LF': 'GET /ok HTTP/1.1\nHost: localhost\n\n',
      'unknown method': 'FOO /ok HTTP/1.1\r\nHost: localhost\r\n\r\n',
      'raw byte in the path': 'GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n',
      'NUL in a header': 'GET /ok HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n',
      'TLS hello': '\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03'
    })) {
      t.comment(name)
      const connection = await openRaw(url)
      checkProblem(t, await connection.send(bytes).response(), 400, 'bad_request')
      await connection.closed()
    }
    const chunked = request('POST', '/ok',
      { headers: ['Content-Type: application/json', 'Transfer-Encoding: chunked'], body: 'zz\r\n{}\r\n0\r\n\r\n' })
    t.equal((await rawRequest(url, chunked)).status, 400)
    t.match(await service.logged(({ msg }) => msg === 'malformed HTTP request'),
      { level: 30, code: /^HPE_/, address: '127.0.0.1' })
  })

  t.test('other codings than chunks are 501, the last of their connection', async (t) => {
    const connection = await openRaw(url)
    const coded = request('POST', '/ok', { headers: ['Transfer-Encoding: gzip, chunked'], body: '0\r\n\r\n' })
    t.match((await connection.send(coded).response()).json(), { status: 501, code: 'transfer_encoding_unsupported' })
    await connection.closed()
  })

  t.test('whole requests before a malformed one are answered, and their connection is closed', async (t) => {
    const piped = await openRaw(url)
    piped.send(
      Buffer.concat([repeated(10, request('GET', '/ok')), Buffer.from('GET /ok HTTP/1.1\r\nbad header\r\n\r\n')]))
    for (let index = 0; index < 10; index++) t.equal((await piped.response()).status, 200)
    await piped.closed()
    t.equal(piped.received.length, 0)
    const connection = await openRaw(url)
    const head = once(connection.socket, 'data')
    connection.send(request('GET', '/stream'))
    await head
    const refused = once(service.app.server, 'clientError')
    connection.send('nonsense\r\n\r\n')
    await refused
    stream.end('last')
    t.equal((await connection.response()).text, 'first last')
    await connection.closed()
  })

  t.test('no head stands in the middle of an answer that has begun before its request was whole', async (t) => {
    const connection = await openRaw(url)
    const head = once(connection.socket, 'data')
    connection.send(request('GET', '/begun', { headers: ['Transfer-Encoding: chunked'], body: '1\r\na\r\n' }))
    await head
    await connection.send('zz\r\n').closed()
    t.match(connection.received.toString(), /^HTTP\/1\.1 200 [^]*first \r\n$/)
  })
})

t.test('K56: slow clients', async (t) => {
  const service = await buildWithRoutes(t, (app) => {
    addOk(app)
    t.match(app.server, { headersTimeout: 15_000, requestTimeout: 30_000 })
    Object.assign(app.server, { requestTimeout: 300, headersTimeout: 150, connectionsCheckingInterval: 20 })
  })

  t.test('K56: a slow head, a slow body and a silent connection get 408 and are closed', async (t) => {
    const slowBody = request('POST', '/ok',
      { headers: ['Content-Type: application/json', 'Content-Length: 10'], body: '{' })
    for (const bytes of ['GET /ok HTTP/1.1\r\nHost: localhost\r\nX', slowBody, '']) {
      const connection = await openRaw(service.url)
      checkProblem(t, await connection.send(bytes).response(), 408, 'request_timeout')
      await connection.closed()
    }
  })

  t.test('K56: dripping does not extend the time', async (t) => {
    const connection = await openRaw(service.url)
    connection.send('GET /ok HTTP/1.1\r\nHost: localhost\r\n')
    const drip = setInterval(() => connection.send('X: a\r\n'), 30)
    t.teardown(() => clearInterval(drip))
    checkProblem(t, await connection.response(), 408, 'request_timeout')
  })
})

t.test('K56: an answer that its client does not take is cut', async (t) => {
  const { app, url } = await buildWithRoutes(t, (app) => {
    app.get('/large', () => Buffer.alloc(16_777_216))
    app.get('/stream', (_request, reply) => reply.send(new Readable({ read () { this.push(Buffer.alloc(65_536)) } })))
    app.server.setTimeout(100)
  })
  for (const path of ['/large', '/stream']) {
    const [socket, unread] = await Promise.all(
      [once(app.server, 'connection').then(([socket]) => socket as Socket), openRaw(url)])
    unread.socket.pause()
    unread.send(request('GET', path))
    await new Promise((resolve) => { socket.once('close', resolve) })
    t.ok(socket.bytesWritten > 0, path)
    unread.destroy()
  }
})

t.test('K56: pipelined requests', async (t) => {
  t.test('are handled one after the other, in their order', async (t) => {
    let running = 0
    let most = 0
    const { url } = await buildWithRoutes(t, (app) => {
      app.get('/turn/:name', async ({ params }) => {
        most = Math.max(most, ++running)
        await nextTurn()
        running--
        return (params as { readonly name: string }).name
      })
    })
    const connection = await openRaw(url)
    connection.send(Buffer.concat(Array.from({ length: 17 }, (_, index) => request('GET', `/turn/${index}`))))
    for (let index = 0; index < 17; index++) t.equal((await connection.response()).text, String(index))
    t.equal(most, 1)
    connection.destroy()
  })

  t.test('of which more than 16 wait end their connection: 1,000 of them, and others are served', async (t) => {
    const waiting: FastifyReply[] = []
    const { url } = await buildWithRoutes(t, (app) => {
      app.get('/wait', (_request, reply) => { waiting.push(reply) })
      app.get('/ok', () => 'ok')
    })
    for (const count of [18, 1_000]) {
      const connection = await openRaw(url)
      await connection.send(repeated(count, GET)).closed()
      t.equal(connection.received.length, 0)
    }
    t.ok(waiting.length <= 2)
    const modest = await openRaw(url)
    modest.send(Buffer.concat([GET, repeated(16, request('GET', '/ok'))]))
    await until(() => waiting.length > 2 || waiting.at(-1)?.raw.destroyed === false)
    waiting.at(-1)?.send('done')
    t.equal((await modest.response()).text, 'done')
    for (let index = 0; index < 16; index++) t.equal((await modest.response()).text, 'ok')
    modest.destroy()
  })
})

t.test('K91: the end', async (t) => {
  t.test('while the process stops, requests are served, each as the last of its connection', async (t) => {
    const shutdown = new Shutdown()
    const { url } = await buildWithRoutes(t, addOk, { shutdown })
    const client = await openRaw(url)
    t.equal((await client.send(request('GET', '/ok')).response()).headers.connection, 'keep-alive')
    shutdown.isStopping = true
    t.equal((await client.send(request('GET', '/ok')).response()).headers.connection, 'close')
    await client.closed()
  })

  t.test('app.close() ends silent connections, and others with their last answer', async (t) => {
    const started = new EventTarget()
    const download = new PassThrough()
    let finish = () => {}
    const { app, url } = await buildWithRoutes(t, (app) => {
      app.get('/wait', () => new Promise((resolve) => {
        finish = () => resolve('done')
        started.dispatchEvent(new Event('started'))
      }))
      app.get('/download', (_request, reply) => reply.send(download))
      app.get('/ok', () => 'ok')
    })
    const [waiting, downloading, idle] = await Promise.all([openRaw(url), openRaw(url), openRaw(url)])
    t.equal((await idle.send(request('GET', '/ok')).response()).headers.connection, 'keep-alive')
    const running = once(started, 'started')
    waiting.send(request('GET', '/wait'))
    await running
    download.write('first ')
    const head = once(downloading.socket, 'data')
    downloading.send(request('GET', '/download'))
    await head

    const closed = app.close()
    await idle.closed()
    finish()
    const answer = await waiting.response()
    t.equal(answer.text, 'done')
    download.end('last')
    t.equal((await downloading.response()).text, 'first last')
    const elapsed = startStopwatch()
    await closed
    t.ok(elapsed() < 5000, 'without waiting for the keep-alive time')
  })
})

t.test('K39: request ids', async (t) => {
  const service = await buildWithRoutes(t, (app) => { app.get('/id', (request) => ({ id: request.id })) })
  const get = (headers: string[] = []) => rawRequest(service.url, request('GET', '/id', { headers }))

  t.test('K39: every answer names its request, and no two are alike', async (t) => {
    const [a, b] = [await get(), await get()]
    t.match(a.headers['x-request-id'], /^[\w.-]{1,64}$/)
    t.equal(a.headers['x-request-id'], (a.json() as { id: string }).id)
    t.not(a.headers['x-request-id'], b.headers['x-request-id'])
  })

  t.test('an id of the caller is taken when it is harmless, and only then', async (t) => {
    t.equal((await get(['X-Request-Id: trace_1.2-x'])).headers['x-request-id'], 'trace_1.2-x')
    for (const id of ['', 'a b', 'a"b', 'a'.repeat(65), 'a'.repeat(10_000), '\xe9', 'a, b']) {
      t.match((await get([`X-Request-Id: ${id}`])).headers['x-request-id'], /^[\da-f]{8}-[\da-f-]{27}$/)
    }
    t.equal((await get(['X-Request-Id: \x1b[31m'])).status, 400)
  })
})

t.test('K70: the log', async (t) => {
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
