import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import t from 'tap'
import { Shutdown } from '../../../src/http/connections/shutdown.ts'
import { listenWithPlugins } from '../../helper/plugin-app.ts'
import { openRaw, request } from '../../helper/raw-http.ts'
import { startStopwatch } from '../../helper/timing.ts'

t.test('app.close() ends each connection with its last answer', async (t) => {
  const started = new EventTarget()
  const download = new PassThrough()
  let finish = () => {}
  const { app, url } = await listenWithPlugins(t, (app) => {
    app.get('/wait', () => new Promise((resolve) => {
      finish = () => resolve('done')
      started.dispatchEvent(new Event('started'))
    }))
    app.get('/download', (_request, reply) => reply.send(download))
    app.get('/ok', () => 'ok')
  })
  const [waiting, downloading, idle] = await Promise.all([openRaw(url), openRaw(url), openRaw(url)])
  const before = await idle.send(request('GET', '/ok')).response()
  t.equal(before.headers.connection, 'keep-alive')

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
  // Sent on a connection that was open before: answered, as its last.
  waiting.send(request('GET', '/ok'))
  const answer = await waiting.response()
  t.equal(answer.text, 'done')
  t.equal(answer.headers.connection, 'close')
  await waiting.closed()

  download.end('last')
  t.equal((await downloading.response()).text, 'first last')
  const elapsed = startStopwatch()
  await closed
  t.ok(elapsed() < 5000, 'without waiting for the keep-alive time')
})

t.test('app.close() ends connections that have sent nothing, half a head, or wait between two requests', async (t) => {
  const { app, url } = await listenWithPlugins(t, (app) => { app.get('/ok', () => 'ok') })
  const accepted = new Promise<void>((resolve) => {
    let count = 0
    app.server.on('connection', () => { if (++count === 3) resolve() })
  })
  const [silent, half, idle] = await Promise.all([openRaw(url), openRaw(url), openRaw(url)])
  await accepted
  half.send('GET / HT')
  await idle.send(request('GET', '/ok')).response()
  await Promise.all([app.close(), silent.closed(), half.closed(), idle.closed()])
})

t.test('app.close() does not cut an answer that is written and not yet read', async (t) => {
  const body = Buffer.alloc(20_000_000, 'x')
  const { app, url } = await listenWithPlugins(t, (app) => { app.get('/big', () => body) })
  const slow = await openRaw(url)
  slow.socket.pause()
  const received = once(app.server, 'request')
  slow.send(request('GET', '/big'))
  await received
  const closed = app.close()
  slow.socket.resume()
  t.equal((await slow.response()).body.length, body.length)
  await closed
})

t.test('while draining requests are served, each as the last of its connection', async (t) => {
  const shutdown = new Shutdown()
  const { url } = await listenWithPlugins(t, (app) => { app.get('/ok', () => 'ok') }, { draining: { shutdown } })
  const client = await openRaw(url)
  t.equal((await client.send(request('GET', '/ok')).response()).headers.connection, 'keep-alive')
  void shutdown.begin()
  t.equal((await client.send(request('GET', '/ok')).response()).headers.connection, 'close')
  await client.closed()
})

t.test('while draining every pipelined request is answered, and the last of them says that it is the last', async (t) => {
  const shutdown = new Shutdown()
  const started = new EventTarget()
  let finish = () => {}
  const { url } = await listenWithPlugins(t, (app) => {
    app.get('/wait', () => new Promise((resolve) => {
      finish = () => resolve('done')
      started.dispatchEvent(new Event('started'))
    }))
    app.get('/ok', () => 'ok')
  }, { draining: { shutdown } })
  const client = await openRaw(url)
  const waiting = once(started, 'started')
  // What is refused early is answered before the requests behind it are parsed.
  client.send(Buffer.concat([request('GET', '/nowhere'), request('GET', '/wait'), request('GET', '/ok'), request('GET', '/nowhere')]))
  void shutdown.begin()
  await waiting
  finish()
  const answers = []
  for (let i = 0; i < 4; i++) answers.push(await client.response())
  t.strictSame(answers.map(({ status }) => status), [404, 200, 200, 404])
  t.strictSame(answers.map(({ headers }) => headers.connection === 'close'), [false, false, false, true])
  await client.closed()
})

t.test('requests behind one that app.close() finds in work are answered too, and only the last ends the connection', async (t) => {
  const started = new EventTarget()
  let finish = () => {}
  const { app, url } = await listenWithPlugins(t, (app) => {
    app.get('/wait', () => new Promise((resolve) => {
      finish = () => resolve('done')
      started.dispatchEvent(new Event('started'))
    }))
    app.get('/ok', () => 'ok')
  })
  const client = await openRaw(url)
  const waiting = once(started, 'started')
  client.send(Buffer.concat([request('GET', '/wait'), request('GET', '/ok'), request('GET', '/ok'), request('GET', '/nowhere')]))
  await waiting
  const closed = app.close()
  finish()
  const answers = []
  for (let i = 0; i < 4; i++) answers.push(await client.response())
  t.strictSame(answers.map(({ status, headers }) => [status, headers.connection === 'close']), [[200, false], [200, false], [200, false], [404, true]])
  await client.closed()
  await closed
})

t.test('answers go out after every request of the turn has been handled', async (t) => {
  const order: string[] = []
  const { app } = await listenWithPlugins(t, (app) => {
    app.addHook('onResponse', (request, _reply, done) => {
      order.push(`sent ${request.url}`)
      done()
    })
    for (const path of ['/one', '/two']) {
      app.get(path, () => {
        order.push(`handled ${path}`)
        return 'ok'
      })
    }
  })
  await Promise.all([app.inject('/one'), app.inject('/two')])
  t.strictSame(order, ['handled /one', 'handled /two', 'sent /one', 'sent /two'])
})

t.test('an answer with a head that cannot be sent is a 500, and nothing else ends', async (t) => {
  const { url, logged } = await listenWithPlugins(t, (app) => {
    app.get('/split', (_request, reply) => reply.header('x-name', 'a\r\nb').send('ok'))
    app.get('/ok', () => 'ok')
  })
  const [bad, good] = await Promise.all([openRaw(url), openRaw(url)])
  const [refused, answered] = await Promise.all([
    bad.send(request('GET', '/split')).response(),
    good.send(request('GET', '/ok')).response()
  ])
  t.equal(refused.status, 500)
  t.equal(answered.text, 'ok')
  await logged(({ msg, err }) => msg !== undefined && (err as { readonly code?: string } | undefined)?.code === 'ERR_INVALID_CHAR')
})
