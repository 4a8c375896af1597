import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { collectGarbage } from '../helper/memory.ts'
import { listenWithPlugins } from '../helper/plugin-app.ts'
import { jsonRequest, openRaw, rawRequest, request } from '../helper/raw-http.ts'
import { until } from '../helper/skills.ts'

/** Until the service has closed every connection: of those that linger, clients see the end before. */
async function untilClosed ({ server }: FastifyInstance): Promise<void> {
  await until(async () => await promisify(server.getConnections.bind(server))() === 0)
}

t.test('request bodies', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => {
    app.post('/echo', (request) => ({ keys: Object.keys(request.body as object), body: request.body }))
    app.post('/size', (request) => ({ length: (request.body as string).length }))
    app.post('/none', (request) => ({ hasBody: request.body !== undefined }))
  })
  const post = (body: string | Buffer, contentType = 'application/json', headers: string[] = []) =>
    rawRequest(url, request('POST', '/echo', { headers: [`Content-Type: ${contentType}`, ...headers], body }))

  t.test('K38: __proto__ and constructor are data at any depth', async (t) => {
    const text = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"a":[{"__proto__":null}]}'
    const response = await post(text)
    t.equal(response.status, 200)
    t.same((response.json() as { keys: string[] }).keys, ['__proto__', 'constructor', 'a'])
    t.equal((Object.prototype as { polluted?: number }).polluted, undefined)
  })

  t.test('K57: JSON nested 65 or 200,000 levels deep is 400, 64 levels are accepted', async (t) => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    t.equal((await post(nested(64))).status, 200)
    for (const depth of [65, 200_000]) {
      const response = await post(nested(depth))
      t.equal(response.status, 400)
      t.match(response.json(), { code: 'json_too_deep', detail: /64 levels/ })
    }
  })

  t.test('of duplicate keys the last wins', async (t) => {
    t.match((await post('{"name":"x","name":"list_skills"}')).json(), { body: { name: 'list_skills' } })
  })

  t.test('K57: invalid UTF-8 and UTF-16 are 400', async (t) => {
    for (const body of [Buffer.from([0x22, 0xff, 0x22]), Buffer.from('"\ud800"', 'utf16le'), Buffer.from([0x22, 0xc0, 0xaf, 0x22])]) {
      const response = await post(body)
      t.equal(response.status, 400)
      t.match(response.json(), { code: 'invalid_json' })
    }
  })

  t.test('a BOM before the JSON is ignored', async (t) => {
    t.match((await post('\ufeff{"a":1}')).json(), { body: { a: 1 } })
  })

  t.test('K57: a body that is not JSON is 400 and says why', async (t) => {
    for (const body of ['{', '{"a":}', 'nonsense', '[1,]', '{"a":1}x', ']]]']) {
      const response = await post(body)
      t.equal(response.status, 400, body)
      t.match(response.json(), { code: 'invalid_json', detail: /^The body is not valid JSON: / })
    }
    t.match((await post('')).json(), { status: 400, code: 'invalid_json', detail: /empty/ })
  })

  t.test('a body that was read and refused leaves its connection open, and the requests behind it are answered', async (t) => {
    for (const [body, header] of [['{', ''], ['['.repeat(65), ''], ['{}', 'Content-Encoding: gzip']] as const) {
      const connection = await openRaw(url)
      connection.send(Buffer.concat([jsonRequest('POST', '/echo', body, { headers: header === '' ? [] : [header] }), jsonRequest('POST', '/echo', {})]))
      const { status, headers } = await connection.response()
      t.equal(status, header === '' ? 400 : 415)
      t.not(headers.connection, 'close')
      t.equal((await connection.response()).status, 200)
      connection.destroy()
    }
  })

  t.test('K57: other types, charsets and encodings are 415', async (t) => {
    for (const contentType of [
      'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/jsonx', 'application/json garbage',
      'application/json\ta', 'application/vnd.api+json', 'nonsense', 'application/json; charset=utf-16', 'application/json;charset="latin1"',
      'application/json; charset=utf-8; charset=utf-16'
    ]) {
      const response = await post('{}', contentType)
      t.equal(response.status, 415, contentType)
      t.match(response.json(), { code: 'unsupported_media_type' })
    }
    const response = await rawRequest(url, request('POST', '/echo', { body: '{}' }))
    t.equal(response.status, 415, 'no type')
    t.equal((await post(gzipSync('{}'), 'application/json', ['Content-Encoding: gzip'])).status, 415)
  })

  t.test('upper case, utf-8 in any spelling and identity are fine', async (t) => {
    for (const contentType of ['APPLICATION/JSON', 'application/json; charset=utf-8', 'application/json;Charset="UTF-8"', ' application/json ; x=y']) {
      t.equal((await post('{}', contentType, ['Content-Encoding: Identity'])).status, 200, contentType)
    }
  })

  t.test('no body and no type is no body', async (t) => {
    t.same((await rawRequest(url, request('POST', '/none'))).json(), { hasBody: false })
  })

  t.test('K57: exactly 1 MiB is accepted', async (t) => {
    const response = await rawRequest(url, jsonRequest('POST', '/size', `"${'a'.repeat(1_048_574)}"`))
    t.same(response.json(), { length: 1_048_574 })
  })

  t.test('K57: one byte more, or 10 MiB in chunks, is 413 and closed', async (t) => {
    const chunks = `${`10000\r\n${'a'.repeat(65_536)}\r\n`.repeat(160)}0\r\n\r\n`
    for (const bytes of [
      jsonRequest('POST', '/size', `"${'a'.repeat(1_048_575)}"`),
      request('POST', '/size', { headers: ['Content-Type: application/json', 'Transfer-Encoding: chunked'], body: chunks })
    ]) {
      const connection = await openRaw(url)
      const response = await connection.send(bytes).response()
      t.equal(response.status, 413)
      t.equal(response.headers.connection, 'close')
      t.equal(response.headers['content-type'], 'application/problem+json')
      t.match(response.json(), { code: 'body_too_large', instance: '/size' })
      await connection.closed()
    }
  })
})

t.test('a body that is refused while it is being sent', async (t) => {
  const asked: string[] = []
  const addRoutes = (app: FastifyInstance) => {
    app.post('/size', () => 'size')
    app.get('/behind', () => { asked.push('behind') })
  }
  /** More than the buffers of both ends take. */
  const body = Buffer.alloc(16 * 1_048_576, 'a')
  const chunk = `${body.length.toString(16)}\r\n`

  t.test('K57: a client that reads after it has sent all of its body gets the answer, and none to what is behind it', { timeout: 60_000 }, async (t) => {
    const { app, url } = await listenWithPlugins(t, addRoutes, { lingerMs: 600_000 })
    const sockets: Array<WeakRef<object>> = []
    app.server.on('connection', (socket) => { sockets.push(new WeakRef(socket)) })
    for (const [status, type, framing, begin, end] of [
      [413, 'application/json', `Content-Length: ${body.length}`, '', ''],
      [413, 'application/json', 'Transfer-Encoding: chunked', chunk, '\r\n0\r\n\r\n'],
      [415, 'text/plain', `Content-Length: ${body.length}`, '', '']
    ] as const) {
      const connection = await openRaw(url)
      // The end of its body alone closes it.
      connection.socket.allowHalfOpen = true
      connection.socket.pause()
      connection.send(request('POST', '/size', { headers: [`Content-Type: ${type}`, framing] })).send(begin).send(body).send(end)
      await new Promise<void>((resolve) => { connection.socket.write(request('GET', '/behind'), () => { resolve() }) })
      connection.socket.resume()
      t.match(await connection.response(), { status, headers: { connection: 'close' } }, `${type} ${framing}`)
      await connection.closed()
      t.equal(connection.received.length, 0)
      await untilClosed(app)
      connection.destroy()
    }
    t.strictSame(asked, [])
    await until(() => {
      collectGarbage()
      return sockets.every((socket) => socket.deref() === undefined)
    })
    t.equal(sockets.length, 3, 'none is kept for the time in which its body might have ended')
  })

  t.test('K56: the rest of a body that came too slowly is not waited for', { timeout: 60_000 }, async (t) => {
    const { app, url } = await listenWithPlugins(t, addRoutes, { lingerMs: 600_000, timeouts: { headers: 20, request: 50, check: 10 } })
    const connection = await openRaw(url)
    connection.socket.allowHalfOpen = true
    connection.send(request('POST', '/size', { headers: ['Content-Type: application/json', 'Content-Length: 10'], body: '{' }))
    t.equal((await connection.response()).status, 408)
    await untilClosed(app)
    connection.destroy()
  })

  t.test('K57: the rest of a body is not read for ever', { timeout: 60_000 }, async (t) => {
    const { url } = await listenWithPlugins(t, addRoutes, { lingerMs: 1, timeouts: { request: 0 } })
    const connection = await openRaw(url)
    // Open from its own side still, when the service has ended its side.
    connection.socket.allowHalfOpen = true
    const cut = new Promise<void>((resolve) => { connection.socket.once('close', () => { resolve() }) })
    connection.send(request('POST', '/size', { headers: ['Content-Type: application/json', 'Content-Length: 2000000'], body: 'a' }))
    t.equal((await connection.response()).status, 413)
    const drip = setInterval(() => { connection.send('a') }, 1)
    t.teardown(() => { clearInterval(drip) })
    await cut
  })
})
