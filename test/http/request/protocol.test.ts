import t from 'tap'
import { listenWithPlugins } from '../../helper/plugin-app.ts'
import { jsonRequest, openRaw, rawRequest, request } from '../../helper/raw-http.ts'

const NAME = { type: 'object', properties: { name: { type: 'string' } } }

t.test('K55: the authority of an absolute target counts, and Host does not', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => { app.get('/ok', () => 'ok') })
  const ask = async (target: string, host?: string) => (await rawRequest(url, request('GET', target, host === undefined ? {} : { host }))).status
  t.equal(await ask('/ok'), 200)
  for (const target of ['http://localhost/ok', 'HTTP://LOCALHOST:8080/ok', 'http://[::1]/ok', 'https://127.0.0.1/ok']) {
    t.equal(await ask(target), 200, target)
    t.equal(await ask(target, 'evil.example'), 200, `${target} for another Host`)
  }
  for (const target of ['http://evil.example/ok', 'http://evil.example:80/ok', 'http://localhost@evil.example/ok', 'http://user@localhost/ok', 'http://localhost.evil.example/ok', 'http://evil.example?http://localhost/ok']) {
    t.equal(await ask(target), 403, target)
  }
  t.equal(await ask('/ok', 'evil.example'), 403, 'the target of another request opens no door')
  t.equal((await rawRequest(url, request('GET', 'http://localhost/ok', { host: null }))).status, 400)
  t.equal((await rawRequest(url, request('GET', 'http://localhost/ok', { headers: ['Host: localhost'] }))).status, 400)
})

t.test('without a list of hosts an absolute target needs an authority that is one', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => { app.get('/ok', () => 'ok') }, { security: { loopbackOnly: false } })
  t.equal((await rawRequest(url, request('GET', 'http://evil.example/ok'))).status, 200)
  for (const target of ['http:///ok', 'http://a@b/ok', 'http://[x]/ok']) t.match((await rawRequest(url, request('GET', target))).json(), { status: 400, code: /^bad_(?:request|url)$/ }, target)
})

t.test('a body in another transfer coding than chunks is 501, and the last of its connection', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => { app.post('/json', { schema: { body: NAME } }, () => 'ok') })
  for (const coding of ['gzip, chunked', 'identity, chunked', 'gzip,chunked', 'x-chunked, chunked']) {
    for (const target of ['/json', '/nowhere']) {
      const connection = await openRaw(url)
      connection.send(jsonRequest('POST', target, '2\r\n{}\r\n0\r\n\r\n', { headers: [`Transfer-Encoding: ${coding}`] }))
      const response = await connection.response()
      t.match(response, { status: 501, headers: { connection: 'close', 'content-type': 'application/problem+json' } }, coding)
      t.match(response.json(), { code: 'transfer_encoding_unsupported' })
      await connection.closed()
    }
  }
  for (const coding of ['chunked', 'Chunked']) {
    t.equal((await rawRequest(url, jsonRequest('POST', '/json', '2\r\n{}\r\n0\r\n\r\n', { headers: [`Transfer-Encoding: ${coding}`] }))).status, 200)
  }
})

t.test('another version than 1.0 and 1.1 is 505, and the last of its connection', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => { app.get('/ok', () => 'ok') })
  for (const version of ['2.0', '1.2', '3.0', '2.1']) {
    for (const headers of [[], ['Connection: keep-alive']]) {
      const connection = await openRaw(url)
      const response = await connection.send(request('GET', '/ok', { version, headers })).response()
      t.match(response, { status: 505, headers: { connection: 'close', 'content-type': 'application/problem+json' } }, version)
      t.match(response.json(), { code: 'http_version_not_supported' })
      await connection.closed()
    }
  }
})

t.test('a client that waits for 100 Continue is told before it sends a body that nobody wants', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => {
    app.post('/json', { schema: { body: NAME } }, () => 'ok')
    app.get('/get', () => 'ok')
  })
  const type = 'Content-Type: application/json'
  for (const [status, target, headers] of [
    [413, '/json', [type, 'Content-Length: 2000000']],
    [415, '/json', ['Content-Type: text/plain', 'Content-Length: 2']],
    [415, '/json', ['Content-Length: 2']],
    [415, '/json', [`${type}; charset=utf-16`, 'Content-Length: 2']],
    [415, '/json', [type, 'Content-Encoding: gzip', 'Content-Length: 2']],
    [501, '/json', [type, 'Transfer-Encoding: gzip, chunked']],
    [404, '/nowhere', [type, 'Content-Length: 2']],
    [405, '/get', [type, 'Content-Length: 2']]
  ] as const) {
    const connection = await openRaw(url)
    connection.send(request('POST', target, { headers: [...headers, 'Expect: 100-continue'] }))
    await connection.closed()
    t.match(connection.received.toString(), new RegExp(`^HTTP/1.1 ${status} [^]*\r\nconnection: close\r\n`, 'i'))
  }
})

t.test('a client that waits for 100 Continue gets it once, and then its answer', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => { app.post('/json', { schema: { body: NAME } }, () => 'ok') })
  const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
  const connection = await openRaw(url)
  for (let round = 0; round < 2; round++) {
    connection.send(request('POST', '/json', { headers: ['Content-Type: application/json', 'Content-Length: 2', 'Expect: 100-continue'] }))
    while (connection.received.length < CONTINUE.length) await new Promise((resolve) => { connection.socket.once('data', resolve) })
    t.equal(connection.received.toString(), CONTINUE)
    t.equal((await connection.send('{}').response()).status, 200)
  }
  const body = request('POST', '/json', { headers: ['Content-Type: application/json', 'Transfer-Encoding: chunked', 'Expect: 100-continue'] })
  connection.send(body)
  while (connection.received.length < CONTINUE.length) await new Promise((resolve) => { connection.socket.once('data', resolve) })
  t.equal(connection.received.toString(), CONTINUE, 'a body of unknown length too')
  t.equal((await connection.send('2\r\n{}\r\n0\r\n\r\n').response()).status, 200)
  connection.destroy()

  const old = await openRaw(url)
  old.send(jsonRequest('POST', '/json', '{}', { version: '1.0', headers: ['Expect: 100-continue'] }))
  await old.closed()
  t.match(old.received.toString(), /^HTTP\/1\.1 200 /, 'HTTP/1.0 knows no interim answers')
})
