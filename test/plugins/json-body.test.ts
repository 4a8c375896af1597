import { gzipSync } from 'node:zlib'
import t from 'tap'
import { listenWithPlugins } from '../helper/plugin-app.ts'
import { jsonRequest, openRaw, rawRequest, request } from '../helper/raw-http.ts'

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

  t.test('K57: a body that is not JSON is 400', async (t) => {
    for (const body of ['{', '{"a":}', 'nonsense', '[1,]', '{"a":1}x', ']]]']) {
      const response = await post(body)
      t.equal(response.status, 400, body)
      t.match(response.json(), { code: 'invalid_json', detail: /^The body is not valid JSON/ })
    }
    t.match((await post('')).json(), { status: 400, code: 'invalid_json', detail: /empty/ })
  })

  t.test('K57: other types and encodings are 415', async (t) => {
    for (const contentType of [
      'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/jsonx', 'application/json garbage',
      'application/json\ta', 'application/vnd.api+json', 'nonsense'
    ]) {
      const response = await post('{}', contentType)
      t.equal(response.status, 415, contentType)
      t.match(response.json(), { code: 'unsupported_media_type' })
    }
    const response = await rawRequest(url, request('POST', '/echo', { body: '{}' }))
    t.equal(response.status, 415, 'no type')
    t.equal((await post(gzipSync('{}'), 'application/json', ['Content-Encoding: gzip'])).status, 415)
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
