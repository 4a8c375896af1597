import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import t, { type Test } from 'tap'
import { listenWithPlugins, type PluginApp } from '../helper/plugin-app.ts'
import { openRaw, rawRequest, type RawResponse, request } from '../helper/raw-http.ts'
import { checkTime } from '../helper/timing.ts'

const PAGE = 'https://app.example'
const READ_BY_PAGE = { 'access-control-allow-origin': PAGE, 'access-control-expose-headers': /ETag/, vary: 'Origin' }

/** `once` takes an error for the end. */
function closed (socket: Socket): Promise<unknown> {
  return new Promise((resolve) => { socket.closed ? resolve(true) : socket.on('close', resolve) })
}

function checkProblem (t: Test, response: RawResponse, status: number, code: string): void {
  t.equal(response.status, status)
  t.equal(response.headers['content-type'], 'application/problem+json')
  t.equal(response.headers['content-length'], String(response.body.length))
  t.equal(response.headers.connection, 'close')
  t.ok(Date.parse(response.headers.date ?? '') <= Date.now())
  t.equal(response.headers['x-content-type-options'], 'nosniff')
  t.match(response.json(), { type: `urn:skillserve:problem:${code}`, title: /./, status, detail: /./, instance: /./, error: /./, code })
}

t.test('what never becomes a request', async (t) => {
  const stream = new PassThrough()
  stream.write('first ')
  const begun = new PassThrough()
  begun.write('first ')
  const service = await listenWithPlugins(t, (app) => {
    app.get('/ok', () => 'ok')
    app.post('/ok', () => 'ok')
    app.get('/stream', (_request, reply) => reply.send(stream))
    app.get('/never', () => new Promise(() => {}))
    app.get('/begun', (_request, reply) => reply.send(begun))
  })
  const { url } = service
  const refusals = () => service.lines.filter((line) => line.includes('request refused')).length

  t.test('a head over 16 KiB or of 3,000 lines is 431 in the problem shape', async (t) => {
    const lines = Array.from({ length: 3000 }, (_, i) => `X-${i}: a`)
    checkProblem(t, await rawRequest(url, request('GET', '/ok', { headers: [`X: ${'a'.repeat(20_000)}`] })), 431, 'headers_too_large')
    checkProblem(t, await rawRequest(url, request('GET', '/ok', { headers: lines })), 431, 'headers_too_large')
    checkProblem(t, await rawRequest(url, request('GET', `/${'a'.repeat(20_000)}`)), 431, 'headers_too_large')
  })

  t.test('contradictory or broken framing is 400 and closed', async (t) => {
    for (const headers of [
      ['Content-Length: 3', 'Transfer-Encoding: chunked'],
      ['Content-Length: 3', 'Content-Length: 4'],
      ['Content-Length: -1'],
      ['Content-Length: 1e3']
    ]) {
      const connection = await openRaw(url)
      checkProblem(t, await connection.send(request('POST', '/ok', { headers, body: 'abc' })).response(), 400, 'bad_request')
      await connection.closed()
    }
    const chunked = request('POST', '/ok', { headers: ['Content-Type: application/json', 'Transfer-Encoding: chunked'], body: 'zz\r\n{}\r\n0\r\n\r\n' })
    t.equal((await rawRequest(url, chunked)).status, 400)
  })

  t.test('K47: CONNECT is 405 and closed, after the answers to what came before it', async (t) => {
    const tunnel = 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n'
    const response = await rawRequest(url, tunnel)
    checkProblem(t, response, 405, 'method_not_allowed')
    t.match(response.headers, { allow: 'GET, HEAD, POST' })
    t.match(response.json(), { instance: 'example.com:443' })
    const connection = await openRaw(url)
    connection.send(Buffer.concat([request('GET', '/ok'), request('GET', '/ok'), Buffer.from(`${tunnel}for the other host`)]))
    for (const status of [200, 200, 405]) t.equal((await connection.response()).status, status)
    await connection.closed()
    t.match(await service.logged(({ code }) => code === 'CONNECT'), { level: 30, msg: 'request refused', address: '127.0.0.1' })
    const reset = await openRaw(url)
    const [socket] = await Promise.all([once(service.app.server, 'connect').then(([, socket]) => socket as Socket), reset.send(Buffer.concat([request('GET', '/never'), Buffer.from(tunnel)]))])
    reset.socket.resetAndDestroy()
    await closed(socket)
    t.equal((await rawRequest(url, request('GET', '/ok'))).status, 200, 'the service outlives a client that resets the connection meanwhile')
  })

  t.test('malformed requests are 400 and closed', async (t) => {
    for (const [name, bytes] of Object.entries({
      'obs-fold': 'GET /ok HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n',
      'space before the colon': 'GET /ok HTTP/1.1\r\nHost : localhost\r\n\r\n',
      'bare LF': 'GET /ok HTTP/1.1\nHost: localhost\n\n',
      'unknown method': 'FOO /ok HTTP/1.1\r\nHost: localhost\r\n\r\n',
      'raw byte in the path': 'GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n',
      'NUL in a header': 'GET /ok HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n',
      'TLS hello': '\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03',
      'HTTP/2 preface': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      'no version': 'GET /ok\r\n\r\n'
    })) {
      t.comment(name)
      const connection = await openRaw(url)
      checkProblem(t, await connection.send(bytes).response(), 400, 'bad_request')
      await connection.closed()
    }
  })

  t.test('the answer names the path where the request line came with the error', async (t) => {
    t.match((await rawRequest(url, 'FOO /a/%zz<?q HTTP/1.1\r\n\r\n')).json(), { instance: '/a/%25zz%3C' })
    t.match((await rawRequest(url, '\x16\x03\x01')).json(), { instance: '/' })
  })

  t.test('a malformed request behind a good one is answered after it', async (t) => {
    const connection = await openRaw(url)
    connection.send(request('GET', '/ok'))
    t.equal((await connection.response()).text, 'ok')
    connection.send('nonsense\r\n\r\n')
    checkProblem(t, await connection.response(), 400, 'bad_request')
    await connection.closed()
  })

  t.test('a malformed request in one packet with a good one is answered after it', async (t) => {
    const connection = await openRaw(url)
    connection.send(Buffer.concat([request('GET', '/ok'), request('GET', '/ok'), Buffer.from('GET /ok HTTP/1.1x\r\n\r\nmore\r\n\r\n')]))
    t.equal((await connection.response()).text, 'ok')
    t.equal((await connection.response()).text, 'ok')
    checkProblem(t, await connection.response(), 400, 'bad_request')
    await connection.closed()
    t.equal(connection.received.length, 0, 'and nothing behind it')
  })

  t.test('a malformed request in the middle of an answer leaves the answer whole', async (t) => {
    const connection = await openRaw(url)
    const head = once(connection.socket, 'data')
    connection.send(request('GET', '/stream'))
    await head
    const before = refusals()
    for (let packet = 0; packet < 2; packet++) {
      const refused = once(service.app.server, 'clientError')
      connection.send('nonsense\r\n\r\n')
      await refused
    }
    t.equal(refusals(), before + 1, 'it is logged once')
    stream.end('last')
    t.equal((await connection.response()).text, 'first last')
    checkProblem(t, await connection.response(), 400, 'bad_request')
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

  t.test('a connection that is reset in the middle of a request leaves none', async (t) => {
    const before = refusals()
    const connection = await openRaw(url)
    connection.socket.pause()
    const answered = once(service.app.server, 'request').then(async ([{ socket }, response]) => { await once(response as ServerResponse, 'close'); return socket as Socket })
    connection.send(Buffer.concat([request('GET', '/ok'), Buffer.from('GET /ok HTTP/1.1\r\n')]))
    const socket = await answered
    // Data that nobody has read makes a reset of the end.
    connection.destroy()
    await closed(socket)
    t.equal(refusals(), before)
  })

  t.test('it leaves one log entry', async (t) => {
    await rawRequest(url, 'BAR\x1b[31m /x HTTP/1.1\r\n\r\n')
    t.match(await service.logged(({ msg }) => msg === 'request refused'), { level: 30, code: /^HPE_/, address: '127.0.0.1' })
    t.notOk(service.lines.join('').includes('\x1b'))
  })

  t.test('1,000 pipelined requests are all answered', async (t) => {
    const connection = await openRaw(url)
    connection.send(Buffer.concat(Array.from({ length: 1000 }, () => request('GET', '/ok'))))
    for (let i = 0; i < 1000; i++) {
      const response = await connection.response()
      if (response.text !== 'ok') t.equal(response.text, 'ok')
    }
    connection.destroy()
    t.pass('in step')
  })
})

t.test('slow clients', async (t) => {
  const timeouts = { headers: 150, request: 300, check: 20 }
  const service = await listenWithPlugins(t, (app) => {
    app.get('/ok', () => 'ok')
    app.post('/ok', () => 'ok')
  }, { timeouts, allowedOrigins: [PAGE] })

  t.test('K56: a slow head, a slow body and a silent connection get 408 and are closed', async (t) => {
    for (const bytes of ['GET /ok HTTP/1.1\r\nHost: localhost\r\nX', request('POST', '/ok', { headers: [`Origin: ${PAGE}`, 'Content-Type: application/json', 'Content-Length: 10'], body: '{' }), '']) {
      const connection = await openRaw(service.url)
      connection.send(bytes)
      const response = await connection.response()
      checkProblem(t, response, 408, 'request_timeout')
      if (bytes instanceof Buffer) t.match(response.headers, READ_BY_PAGE, 'K69: the page that sent the request reads it')
      await connection.closed()
    }
    t.match(await service.logged(({ msg }) => msg === 'request aborted'), { url: '/ok', status: 408, code: 'request_timeout' })
  })

  t.test('K56: dripping does not extend the time', async (t) => {
    const connection = await openRaw(service.url)
    connection.send('GET /ok HTTP/1.1\r\nHost: localhost\r\n')
    const drip = setInterval(() => connection.send('X: a\r\n'), 30)
    t.teardown(() => clearInterval(drip))
    checkProblem(t, await connection.response(), 408, 'request_timeout')
  })

  t.test('K56: 200 slow clients do not delay a normal one', async (t) => {
    const slow = await Promise.all(Array.from({ length: 200 }, () => openRaw(service.url)))
    for (const connection of slow) connection.send('GET /ok HTTP/1.1\r\nHost: localhost\r\n')
    t.equal((await checkTime(t, 1_000, () => rawRequest(service.url, request('GET', '/ok')))).status, 200)
    for (const connection of slow) connection.destroy()
  })
})

t.test('K48: an answer that is not made while a connection has no traffic is a 503, the last on it; a connection that waits for its next request is closed', async (t) => {
  const service = await listenWithPlugins(t, (app) => {
    app.get('/ok', () => 'ok')
    app.get('/never', () => new Promise(() => {}))
    app.get('/begun', (_request, reply) => {
      const stream = new PassThrough()
      stream.write('first ')
      return reply.send(stream)
    })
    app.get('/large', () => Buffer.alloc(16_777_216))
  }, { timeouts: { connection: 100, keepAlive: 50 }, allowedOrigins: [PAGE] })
  const { url } = service
  const stuck = await openRaw(url)
  const answer = await stuck.send(request('GET', '/never?q=1', { headers: [`Origin: ${PAGE}`] })).response()
  checkProblem(t, answer, 503, 'not_ready')
  t.match(answer.headers, { 'retry-after': '5', 'cache-control': 'no-store', ...READ_BY_PAGE })
  t.match(answer.json(), { instance: '/never', detail: 'The answer was not made within 0.1 s; try again soon' })
  await stuck.closed()
  t.match(await service.logged(({ msg }) => msg === 'request aborted'), { url: '/never?q=1', status: 503, code: 'not_ready' })
  const head = await openRaw(url)
  await head.send(request('HEAD', '/never')).closed()
  t.match(head.received.toString(), /^HTTP\/1\.1 503 [^]*\r\n\r\n$/, 'a HEAD has no body')
  const begun = await openRaw(url)
  await begun.send(request('GET', '/begun')).closed()
  t.match(begun.received.toString(), /^HTTP\/1\.1 200 [^]*first \r\n$/, 'no second head follows a body that has begun')
  const idle = await openRaw(url)
  t.equal((await idle.send(request('GET', '/ok')).response()).status, 200)
  await idle.closed()
  const [socket, unread] = await Promise.all([once(service.app.server, 'connection').then(([socket]) => socket as Socket), openRaw(url)])
  unread.socket.pause()
  unread.send(request('GET', '/large'))
  await closed(socket)
  t.ok(socket.bytesWritten > 0, 'an answer that its client does not read ends too')
  unread.destroy()
})

t.test('request ids', async (t) => {
  const service: PluginApp = await listenWithPlugins(t, (app) => { app.get('/id', (request) => ({ id: request.id })) })
  const get = (headers: string[] = []) => rawRequest(service.url, request('GET', '/id', { headers }))

  t.test('K39: every answer names its request, and no two are alike', async (t) => {
    const [a, b] = [await get(), await get()]
    t.match(a.headers['x-request-id'], /^[\w.-]{1,64}$/)
    t.equal(a.headers['x-request-id'], (a.json() as { id: string }).id)
    t.not(a.headers['x-request-id'], b.headers['x-request-id'])
  })

  t.test('an id of the caller is taken when it is harmless, and only then', async (t) => {
    const given = await get(['X-Request-Id: trace_1.2-x'])
    t.equal(given.headers['x-request-id'], 'trace_1.2-x')
    t.ok(await service.logged(({ reqId }) => reqId === 'trace_1.2-x'))
    for (const id of ['', 'a b', 'a"b', 'a'.repeat(65), 'a'.repeat(10_000), '\xe9', 'a, b']) {
      t.match((await get([`X-Request-Id: ${id}`])).headers['x-request-id'], /^[\da-f]{12}-[\da-z]+$/)
    }
    t.equal((await get(['X-Request-Id: \x1b[31m'])).status, 400)
    t.match((await get(['X-Request-Id: a', 'X-Request-Id: b'])).headers['x-request-id'], /^[\da-f]{12}-/)
  })
})
