import { once } from 'node:events'
import { Readable } from 'node:stream'
import t from 'tap'
import { mainFileError } from '../../src/core/shared/errors.ts'
import { listenWithPlugins } from '../helper/plugin-app.ts'
import { jsonRequest, openRaw, rawRequest, request } from '../helper/raw-http.ts'

t.test('the log', async (t) => {
  const waiting: Array<() => void> = []
  const started = new EventTarget()
  const wait = async () => {
    started.dispatchEvent(new Event('started'))
    await new Promise<void>((resolve) => waiting.push(resolve))
    return 'late'
  }
  const service = await listenWithPlugins(t, (app) => {
    app.get('/skills/:name', () => ({ ok: true }))
    app.get('/denied', () => { throw mainFileError.skillNotFound('x') })
    app.get('/wait', wait)
    app.post('/wait', wait)
    app.get('/broken', (_request, reply) => reply.type('text/plain').send(Readable.from(async function * () {
      yield 'x'
      throw new Error('disk gone')
    }())))
  })
  const { url, lines, logged } = service
  const entriesOf = (id: string) => lines.map((line) => JSON.parse(line)).filter(({ reqId }) => reqId === id)
  const get = (target: string, id: string) => rawRequest(url, request('GET', target, { headers: [`X-Request-Id: ${id}`] }))
  const completed = (id: string) => logged(({ reqId, msg }) => reqId === id && String(msg).startsWith('request '))

  t.test('one line a request, with what became of it', async (t) => {
    const { body } = await get('/skills/a%20b?x=1', 'one')
    const entry = await completed('one')
    t.match(entry, { level: 30, reqId: 'one', method: 'GET', url: '/skills/a%20b?x=1', status: 200, bytes: body.length, msg: 'request completed' })
    t.type(entry['ms'], 'number')
    t.equal(entriesOf('one').length, 1)
  })

  t.test('refusals, unknown routes and bad URLs leave one line too', async (t) => {
    for (const [target, id, status, code] of [
      ['/nowhere', 'r1', 404, 'route_not_found'], ['/skills/%zz', 'r2', 400, 'bad_url'], [`/skills/${'a'.repeat(2000)}`, 'r3', 414, 'uri_too_long']
    ] as const) {
      await get(target, id)
      t.match(await completed(id), { status, code, route: undefined, client: '127.0.0.1', level: 30 })
      t.ok(Number((await completed(id))['ms']) > 0)
      t.equal(entriesOf(id).length, 1)
    }
    t.equal(String((await completed('r3'))['url']).length, 256, 'cut')
  })

  t.test('K70: a line carries the route pattern, the address of the client, and the code of a problem', async (t) => {
    await get('/skills/one', 'good')
    const good = await completed('good')
    t.match(good, { url: '/skills/one', route: '/skills/:name', client: '127.0.0.1' })
    t.notOk('code' in good)
    const connection = await openRaw(url)
    for (const [method, path, id] of [['GET', '/skills/one', 'kept1'], ['GET', '/denied', 'kept2'], ['DELETE', '/skills/one', 'kept3'], ['GET', '/skills/two', 'kept4']] as const) {
      connection.send(request(method, path, { headers: [`X-Request-Id: ${id}`] }))
    }
    t.match(await completed('kept1'), { route: '/skills/:name', code: undefined })
    t.match(await completed('kept2'), { route: '/denied', status: 404, code: 'skill_not_found', client: '127.0.0.1' })
    t.match(await completed('kept3'), { status: 405, code: 'method_not_allowed', route: undefined })
    t.match(await completed('kept4'), { url: '/skills/two', route: '/skills/:name', code: undefined })
    connection.destroy()
  })

  t.test('K2: HEAD sent no bytes; 304 is logged at debug', async (t) => {
    await rawRequest(url, request('HEAD', '/skills/x', { headers: ['X-Request-Id: head'] }))
    t.match(await completed('head'), { status: 200, bytes: undefined })
    await rawRequest(url, request('GET', '/skills/x', { headers: ['X-Request-Id: fresh', 'If-None-Match: *'] }))
    await get('/skills/x', 'after')
    await completed('after')
    t.same(entriesOf('fresh'), [])
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
    const connection = await openRaw(url)
    connection.send(request('POST', '/wait', { headers: ['X-Request-Id: gone3', 'Content-Type: application/json', 'Content-Length: 10'], body: '{' }))
    await new Promise((resolve) => setImmediate(resolve))
    connection.socket.resetAndDestroy()
    t.match(await completed('gone3'), { msg: 'request aborted' })
    t.not((await completed('gone3'))['status'], 200, 'a body that ends too early may be refused before the reset is seen')
    t.equal(entriesOf('gone3').length, 1)
  })

  t.test('a stream that fails behind the head ends the connection and is an error in the log', async (t) => {
    await t.rejects(get('/broken', 'broken'))
    t.match(await completed('broken'), { msg: 'request aborted', status: 200 })
    t.match(entriesOf('broken').find(({ level }) => level === 50), { msg: 'response stream failed', err: { message: 'disk gone' } })
  })

  t.test('nothing of a request starts a new line or reaches a terminal', async (t) => {
    await rawRequest(url, request('GET', '/skills/%0a%1b[31m{"level":60}', { headers: ['X-Request-Id: quoted', 'User-Agent: "\\', 'X-Forwarded-For: x'] }))
    t.match(await completed('quoted'), { url: '/skills/%0a%1b[31m{"level":60}' })
    for (const line of lines) {
      t.equal(line.indexOf('\n'), line.length - 1)
      if (/[^\x20-\x7e\n]/.test(line)) t.fail(line)
    }
  })
})
