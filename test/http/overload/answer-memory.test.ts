import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { AnswerMemory } from '../../../src/http/overload/answer-memory.ts'
import { listenWithPlugins } from '../../helper/plugin-app.ts'
import { jsonRequest, openRaw, type RawConnection, rawRequest, request } from '../../helper/raw-http.ts'
import { until } from '../../helper/skills.ts'

const MEBIBYTE = 1_048_576

/** More than the kernel's buffers take for a client that does not read. */
const BYTES = 16 * MEBIBYTE

async function start (t: Test, graceMs: number) {
  const shared = Buffer.alloc(BYTES, 'x')
  const streams: Readable[] = []
  let cancelled = 0
  const web = () => new ReadableStream({ pull (controller) { controller.enqueue(shared) }, cancel () { cancelled++ } }, { highWaterMark: 0 })
  const service = await listenWithPlugins(t, (app) => {
    // Without one, each answer would be hashed for its tag.
    app.addHook('onRequest', async (_request, reply) => { reply.header('etag', '"a"') })
    app.get('/text', () => 'x'.repeat(BYTES))
    app.get('/own', () => Buffer.alloc(BYTES, 'x'))
    app.get('/shared', () => shared)
    app.get('/small', () => 'x'.repeat(10_000))
    app.get('/stream', (_request, reply) => {
      const stream = Readable.from(['x'.repeat(BYTES)])
      streams.push(stream)
      return reply.send(stream)
    })
    app.get('/response', () => new Response(web()))
    app.get('/web', (_request, reply) => reply.send(web()))
  }, { overload: { maxBytes: 4 * BYTES, graceMs } })

  /** Asks for an answer, and takes only its first bytes. */
  async function hang (target: string): Promise<RawConnection> {
    const connection = await openRaw(service.url)
    const begun = once(connection.socket, 'data')
    connection.send(request('GET', target))
    await begun
    connection.socket.pause()
    return connection
  }
  return { ...service, hang, streams, cancelled: () => cancelled }
}

for (const target of ['/text', '/own']) {
  t.test(`as long as too many answers wait, a large one is 503, of which nothing stays open, and a small one is sent: ${target}`, async (t) => {
    const { url, hang, streams, cancelled } = await start(t, 60_000)
    const connections = []
    for (let index = 0; index < 4; index++) connections.push(await hang(target))
    for (const refused of [target, '/stream', '/response', '/web']) {
      const response = await rawRequest(url, request('GET', refused))
      t.match(response, { status: 503, headers: { 'retry-after': /^\d+$/, 'content-type': 'application/problem+json' } }, refused)
      t.match(response.json(), { code: 'overloaded' })
    }
    t.strictSame([streams.map(({ destroyed }) => destroyed), cancelled()], [[true], 2])
    t.equal((await rawRequest(url, request('GET', '/small'))).status, 200)

    connections[0]?.socket.resume()
    await connections[0]?.response()
    t.equal((await rawRequest(url, request('GET', target))).body.length, BYTES, 'one has been taken')
    for (const connection of connections) connection.destroy()
    await until(async () => (await rawRequest(url, request('GET', target))).status === 200)
  })
}

t.test('a body that answers share counts once', async (t) => {
  const { url, hang } = await start(t, 60_000)
  const connections = []
  for (let index = 0; index < 8; index++) connections.push(await hang('/shared'))
  t.equal((await rawRequest(url, request('GET', '/text'))).status, 200)
  for (const connection of connections) connection.destroy()
})

t.test('an answer that has waited for long gives way to a new one, the oldest first', async (t) => {
  const { url, hang } = await start(t, 0)
  const connections = []
  for (let index = 0; index < 4; index++) connections.push(await hang('/text'))
  t.equal((await rawRequest(url, request('GET', '/text'))).status, 200)
  const [oldest, ...others] = connections
  oldest?.socket.resume()
  await oldest?.closed()
  t.ok((oldest?.received.length ?? 0) < BYTES)
  for (const other of others) {
    other.socket.resume()
    t.equal((await other.response()).body.length, BYTES)
    other.destroy()
  }
})

t.test('what is streamed counts with what waits of it', async (t) => {
  const { url, hang } = await start(t, 60_000)
  const connections = []
  for (let index = 0; index < 4; index++) connections.push(await hang('/stream'))
  await until(async () => (await rawRequest(url, request('GET', '/text'))).status === 503)
  for (const connection of connections) connection.destroy()
  await until(async () => (await rawRequest(url, request('GET', '/text'))).status === 200)
})

t.test('K68: requests for large answers wait for room in the order in which they came, for a moment, and one that leaves has no place', async (t) => {
  const memory = new AnswerMemory({ maxBytes: 100, waitMs: 60_000, graceMs: 60_000 })
  const ready: string[] = []
  const reserve = (name: string, bytes: number): ServerResponse => {
    const response = new ServerResponse(new IncomingMessage(new Socket()))
    memory.reserve(response, bytes, (hasRoom) => { ready.push(`${name} ${hasRoom}`) })
    return response
  }
  const [first, , left, last] = [reserve('first', 60), reserve('second', 60), reserve('left', 10), reserve('last', 10)]
  t.strictSame(ready, ['first true'], 'a small one does not overtake a large one')
  left?.emit('close')
  t.equal(memory.hold(first, { bytes: 30 }), true)
  t.strictSame(ready, ['first true', 'second true', 'last true'], 'an answer is smaller than what was reserved for it')
  t.equal(memory.total, 100)
  first?.emit('close')
  t.equal(memory.total, 70)
  const waiting = [reserve('third', 60), reserve('small', 10)]
  t.equal(last !== undefined && memory.hold(last, { bytes: 5 }), true)
  t.equal(ready.length, 3, 'nor when there is room for the small one alone')
  for (const response of waiting) response.emit('close')
})

t.test('K68: an answer that is made for a client that has left takes its room until it is made', async (t) => {
  const memory = new AnswerMemory({ maxBytes: 100 })
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  memory.reserve(response, 60, () => {})
  response.emit('close')
  t.equal(memory.total, 60)
  memory.release(response)
  t.equal(memory.total, 0)
})

t.test('an answer is followed to its end by one listener, whatever was counted for it before', (t) => {
  const memory = new AnswerMemory({ maxBytes: 100 })
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  for (let piece = 0; piece < 3; piece++) memory.grow(response, 10, () => {})
  memory.reserve(response, 60, () => {})
  t.equal(memory.hold(response, { bytes: 40 }), true)
  t.equal(response.listenerCount('close'), 1)
  response.emit('close')
  t.equal(memory.total, 0)
  t.end()
})

t.test('K68: without room in time a request is refused before anything is made for it', async (t) => {
  let made = 0
  const { url } = await listenWithPlugins(t, (app) => {
    app.get('/page', { config: { answerBytes: () => 60 } }, async () => {
      made++
      await release
      return 'page'
    })
    app.post('/body', async () => 'body')
  }, { overload: { maxBytes: 100_000, waitMs: 1 } })
  let open = () => {}
  const release = new Promise<void>((resolve) => { open = resolve })
  const body = jsonRequest('POST', '/body', { text: 'x'.repeat(99_950) })
  const first = await openRaw(url)
  first.send(request('GET', '/page'))
  await until(() => made === 1)
  for (const refused of [body, jsonRequest('POST', '/body', { text: 'x'.repeat(200_000) })]) {
    t.match(await rawRequest(url, refused), { status: 503, headers: { 'retry-after': /^\d+$/ } })
  }
  open()
  t.equal((await first.response()).status, 200)
  t.equal((await rawRequest(url, body)).status, 200, 'there is room again')
  first.destroy()
})

t.test('K68: a large file is read for an answer when there is room, and otherwise refused after a wait that counts from its question', async (t) => {
  const memory = new AnswerMemory({ maxBytes: 100, waitMs: 60_000, graceMs: 60_000 })
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  t.equal(memory.hold(response, { bytes: 90 }), true)
  t.equal(await memory.hasRoomFor(10, performance.now()), true)
  t.equal(await memory.hasRoomFor(11, performance.now() - 60_001), false)
  const waiting = memory.hasRoomFor(100, performance.now())
  response.emit('close')
  t.equal(await waiting, true)
})

t.test('K68: clients that ask for large answers and leave at once do not keep others waiting for ever', async (t) => {
  let resolve = (): void => {}
  const promise = new Promise<void>((_resolve) => { resolve = _resolve })
  const { url } = await listenWithPlugins(t, (app) => {
    app.get('/slow', { config: { answerBytes: () => BYTES } }, async () => {
      await promise
      return 'x'
    })
  }, { overload: { maxBytes: BYTES, waitMs: 1 } })
  const connection = await openRaw(url)
  connection.send(request('GET', '/slow'))
  await until(async () => (await rawRequest(url, request('GET', '/slow'))).status === 503)
  connection.destroy()
  await connection.closed()
  t.equal((await rawRequest(url, request('GET', '/slow'))).status, 503, 'its answer is still being made')
  resolve()
  await until(async () => (await rawRequest(url, request('GET', '/slow'))).status === 200)
})

t.test('K44: what answers share is given back as it was taken, whichever comes and goes first', (t) => {
  const memory = new AnswerMemory({ maxBytes: 4 * MEBIBYTE })
  const file = new ArrayBuffer(MEBIBYTE)
  const start = (bytes: number) => {
    const response = new ServerResponse(new IncomingMessage(new Socket()))
    t.ok(memory.hold(response, { bytes, memory: file }))
    return response
  }
  for (const [first, second] of [[MEBIBYTE, 20_000], [20_000, MEBIBYTE]] as const) {
    const answers = [start(first), start(second)]
    t.equal(memory.total, MEBIBYTE, 'all of it is in memory, once')
    for (const answer of answers) memory.release(answer)
    t.equal(memory.total, 0)
  }
  t.end()
})

t.test('K68: a body takes room as it comes', { timeout: 60_000 }, async (t) => {
  const start = async () => await listenWithPlugins(t, (app) => {
    app.post('/body', async () => 'body')
    app.get('/page', { config: { answerBytes: () => 60 } }, async () => 'page')
  }, { overload: { maxBytes: 100_000, waitMs: 1, graceMs: 60_000 } })
  const headers = ['Content-Type: application/json']
  const whole = jsonRequest('POST', '/body', { text: 'x'.repeat(90_000) })

  t.test('K68: what is only announced takes none', async (t) => {
    const { url } = await start()
    for (const framing of ['Content-Length: 90000', 'Transfer-Encoding: chunked']) {
      for (let index = 0; index < 3; index++) {
        const connection = await openRaw(url)
        t.teardown(() => { connection.destroy() })
        connection.send(request('POST', '/body', { headers: [...headers, framing] }))
      }
    }
    t.equal((await rawRequest(url, whole)).status, 200)
  })

  t.test('K68: what has come takes it until the client leaves', async (t) => {
    const { url } = await start()
    const connection = await openRaw(url)
    const part = Buffer.from(`"${'x'.repeat(59_999)}`)
    connection.send(request('POST', '/body', { headers: [...headers, 'Content-Length: 60001'] })).send(part)
    await until(async () => (await rawRequest(url, whole)).status === 503)
    t.equal((await connection.send('"').response()).status, 200)
    connection.destroy()
    await until(async () => (await rawRequest(url, whole)).status === 200)

    const left = await openRaw(url)
    left.send(request('POST', '/body', { headers: [...headers, 'Transfer-Encoding: chunked'] })).send(`${part.length.toString(16)}\r\n`).send(part)
    await until(async () => (await rawRequest(url, whole)).status === 503)
    left.destroy()
    await until(async () => (await rawRequest(url, whole)).status === 200)
  })

  t.test('K68: one that is larger than all room is taken while nothing else is held', async (t) => {
    const { url } = await start()
    t.equal((await rawRequest(url, jsonRequest('POST', '/body', { text: 'x'.repeat(500_000) }))).status, 200)
    t.equal((await rawRequest(url, jsonRequest('POST', '/body', { text: 'x'.repeat(1_100_000) }))).status, 413)
    t.equal((await rawRequest(url, whole)).status, 200)
  })

  t.test('K68: one that is announced to a route without bodies takes nothing away for good', async (t) => {
    const { url } = await start()
    for (let index = 0; index < 3; index++) t.equal((await rawRequest(url, request('HEAD', '/page', { headers: ['Content-Length: 90000'] }))).status, 200)
    t.equal((await rawRequest(url, whole)).status, 200)
  })
})
