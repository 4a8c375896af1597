import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import t from 'tap'
import { listenWithPlugins } from '../../helper/plugin-app.ts'
import { openRaw, type RawConnection, request } from '../../helper/raw-http.ts'
import { until } from '../../helper/skills.ts'

const GET = request('GET', '/wait')

function repeated (count: number, bytes: Buffer): Buffer {
  return Buffer.concat(Array<Buffer>(count).fill(bytes))
}

t.test('requests of one connection are handled one after the other, in their order', async (t) => {
  let running = 0
  let most = 0
  const { url } = await listenWithPlugins(t, (app) => {
    app.get('/skills/:name', async (request) => {
      most = Math.max(most, ++running)
      await nextTurn()
      running--
      return (request.params as { readonly name: string }).name
    })
  })
  const connection = await openRaw(url)
  connection.send(Buffer.concat(Array.from({ length: 500 }, (_, index) => request('GET', `/skills/${index}`))))
  for (let index = 0; index < 500; index++) {
    const { text } = await connection.response()
    if (text !== String(index)) t.equal(text, String(index))
  }
  t.equal(most, 1)
  connection.destroy()
})

t.test('behind a request that is being handled, no more than a packet is read', async (t) => {
  const waiting: FastifyReply[] = []
  const { app, url } = await listenWithPlugins(t, (app) => { app.get('/wait', (_request, reply) => { waiting.push(reply) }) })
  let parsed = 0
  app.server.on('request', () => { parsed++ })
  const connection = await openRaw(url)
  connection.send(repeated(20_000, GET))
  const other = await openRaw(url)
  for (let question = 0; question < 20; question++) await other.send(request('GET', '/nowhere')).response()
  t.equal(waiting.length, 1)
  t.ok(parsed - 20 <= 65_536 / GET.length + 1, `${parsed - 20} requests were parsed`)

  // Each answer leads to one more question, and to no more reading.
  for (let count = 1; count <= 5; count++) {
    waiting.at(-1)?.send('done')
    t.equal((await connection.response()).text, 'done')
    await until(() => waiting.length === count + 1)
  }
  t.ok(parsed - 20 <= 65_536 / GET.length + 1, `${parsed - 20} requests were parsed`)
  connection.destroy()
  other.destroy()
})

t.test('all requests are answered, however many they are', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => { app.get('/wait', () => 'x') })
  const connection = await openRaw(url)
  connection.send(repeated(2_000, GET))
  for (let index = 0; index < 2_000; index++) await connection.response()
  t.equal((await connection.send(GET).response()).text, 'x')
  connection.destroy()
})

t.test('a client that sends its requests and closes its side has its answers', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => { app.get('/wait', () => 'x') })
  const connection = await openRaw(url)
  connection.socket.end(repeated(50, GET))
  for (let index = 0; index < 50; index++) t.equal((await connection.response()).text, 'x')
  await connection.closed()
})

t.test('what is open for an answer is closed when the client goes, and nothing is opened for the requests behind it', async (t) => {
  const streams: Readable[] = []
  const { app, url } = await listenWithPlugins(t, (app) => {
    app.get('/wait', (_request, reply) => {
      const stream = new Readable({ read () { this.push(Buffer.alloc(65_536)) } })
      streams.push(stream)
      return reply.send(stream)
    })
  })
  const connections = await Promise.all(Array.from({ length: 5 }, () => openRaw(url)))
  for (const connection of connections) {
    connection.socket.pause()
    connection.send(repeated(1_000, GET))
  }
  await until(() => streams.length === 5)
  for (const connection of connections) connection.destroy()
  await until(() => streams.every(({ destroyed }) => destroyed))
  await until(() => new Promise((resolve) => { app.server.getConnections((_error, count) => { resolve(count === 0) }) }))
  t.equal(streams.length, 5)
})

t.test('a body behind an unfinished answer is read when its request is handled', async (t) => {
  const waiting: FastifyReply[] = []
  const { url } = await listenWithPlugins(t, (app) => {
    app.get('/wait', (_request, reply) => { waiting.push(reply) })
    app.post('/json', (request) => JSON.stringify(request.body).length)
  })
  const body = JSON.stringify('x'.repeat(1_000_000))
  const connection = await openRaw(url)
  connection.send(Buffer.concat([GET, request('POST', '/json', { headers: ['Content-Type: application/json'], body }), GET]))
  await until(() => waiting.length === 1)
  waiting[0]?.send('done')
  t.equal((await connection.response()).text, 'done')
  t.equal((await connection.response()).text, String(body.length))
  await until(() => waiting.length === 2)
  waiting[1]?.send('done')
  t.equal((await connection.response()).text, 'done')
  connection.destroy()
})

t.test('the requests before a malformed one are answered first, then comes the 400', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => {
    app.get('/skills/:name', async () => {
      await nextTurn()
      return 'x'
    })
  })
  for (const malformed of ['GET / HTTP/1.1\r\nbad header\r\n\r\n', 'FOO / HTTP/1.1\r\n\r\n', '\0\0\0\0']) {
    const connection = await openRaw(url)
    connection.send(Buffer.concat([repeated(10, request('GET', '/skills/demo')), Buffer.from(malformed), GET]))
    for (let index = 0; index < 10; index++) t.equal((await connection.response()).status, 200)
    t.equal((await connection.response()).status, 400)
    await connection.closed()
    t.equal(connection.received.length, 0)
  }
})

t.test('behind an answer that ends the connection nothing is handled', async (t) => {
  const handled: string[] = []
  const { url } = await listenWithPlugins(t, (app) => {
    app.get('/skills/:name', (request, reply) => {
      handled.push(request.url)
      reply.send('x')
    })
  })
  const connection = await openRaw(url)
  connection.send(Buffer.concat([request('GET', '/skills/1'), request('GET', '/skills/2', { headers: ['Connection: close'] }), repeated(5, request('GET', '/skills/3'))]))
  t.equal((await connection.response()).text, 'x')
  t.equal((await connection.response()).text, 'x')
  await connection.closed()
  t.equal(connection.received.length, 0)
  t.same(handled, ['/skills/1', '/skills/2'])
})

t.test('of too many requests that wait, those of the greediest connection go with it, and then those of the next', async (t) => {
  const waiting: FastifyReply[] = []
  const { url } = await listenWithPlugins(t, (app) => {
    app.get('/ok', () => 'ok')
    app.get('/wait', (_request, reply) => { waiting.push(reply) })
    app.get('/greedy', () => new Promise(() => {}))
  }, { maxWaiting: 100 })
  const connections = await Promise.all(Array.from({ length: 3 }, () => openRaw(url)))
  // Node accepts one connection an iteration, and reads from all of them in the next.
  for (const connection of connections) await connection.send(request('GET', '/ok')).response()
  const [greediest, greedy, modest] = connections as [RawConnection, RawConnection, RawConnection]
  greediest.send(repeated(62, request('GET', '/greedy')))
  greedy.send(repeated(62, request('GET', '/greedy')))
  modest.send(repeated(41, GET))
  await Promise.all([greediest.closed(), greedy.closed()])
  for (let index = 0; index < 41; index++) {
    await until(() => waiting.length > index)
    waiting[index]?.send('done')
    t.equal((await modest.response()).text, 'done')
  }
  modest.destroy()
})

t.test('many connections that send much at once are all answered, and others meanwhile: what is read in one iteration of the event loop is bounded', async (t) => {
  const { app, url } = await listenWithPlugins(t, (app) => { app.get('/wait', () => 'x') })
  let read = 0
  let most = 0
  app.server.on('request', () => {
    if (read++ > 0) return
    setImmediate(() => {
      most = Math.max(most, read)
      read = 0
    })
  })
  const connections = await Promise.all(Array.from({ length: 12 }, () => openRaw(url)))
  // Node accepts one connection an iteration.
  for (const connection of connections) await connection.send(GET).response()
  for (const connection of connections) connection.send(repeated(500, GET))
  const other = await openRaw(url)
  for (let question = 0; question < 20; question++) t.equal((await other.send(GET).response()).text, 'x')
  for (const connection of connections) {
    for (let index = 0; index < 500; index++) await connection.response()
    t.equal((await connection.send(GET).response()).text, 'x')
    connection.destroy()
  }
  t.ok(most > 500 && most <= 4_000 + 500, `${most} requests were read in one iteration`)
  other.destroy()
})
