import { once } from 'node:events'
import type { Socket } from 'node:net'
import t from 'tap'
import { listenWithPlugins } from '../../helper/plugin-app.ts'
import { openRaw, request } from '../../helper/raw-http.ts'

/** More than the kernel's buffers take for a client that does not read. */
const BODY = Buffer.alloc(32 * 1_048_576, 'x')

t.test('a client that does not take its response is closed', async (t) => {
  const { app, url, logged } = await listenWithPlugins(t, (app) => { app.get('/big', () => BODY) }, {
    stalled: { graceMs: 100, bytesPerSecond: 1e12, intervalMs: 10 }
  })
  const accepted = once(app.server, 'connection') as Promise<[Socket]>
  const connection = await openRaw(url)
  const [socket] = await accepted
  const closed = once(socket, 'close')
  connection.socket.pause()
  connection.send(request('GET', '/big'))
  await closed
  t.match(await logged(({ msg }) => msg === 'request aborted'), { url: '/big' })
  connection.destroy()
})

t.test('a steady drip does not keep a connection open', async (t) => {
  const { app, url } = await listenWithPlugins(t, (app) => { app.get('/big', () => BODY) }, {
    stalled: { graceMs: 200, bytesPerSecond: 1e12, intervalMs: 10 }
  })
  const accepted = once(app.server, 'connection') as Promise<[Socket]>
  const connection = await openRaw(url)
  const [socket] = await accepted
  const closed = once(socket, 'close')
  connection.socket.pause()
  const drip = setInterval(() => connection.socket.read(32), 5)
  t.teardown(() => clearInterval(drip))
  connection.send(request('GET', '/big'))
  await closed
  t.pass('closed')
  connection.destroy()
})

t.test('a slow response that keeps the pace arrives whole', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => { app.get('/big', () => BODY) }, {
    // The size alone allows 32 s.
    stalled: { graceMs: 20, bytesPerSecond: 1_048_576, intervalMs: 5 }
  })
  const connection = await openRaw(url)
  connection.socket.pause()
  const resume = setTimeout(() => connection.socket.resume(), 150)
  t.teardown(() => clearTimeout(resume))
  const response = await connection.send(request('GET', '/big')).response()
  t.equal(response.body.length, BODY.length)
  connection.destroy()
})

t.test('an idle connection owes nothing', async (t) => {
  const { url } = await listenWithPlugins(t, (app) => { app.get('/small', () => 'small') }, {
    stalled: { graceMs: 0, bytesPerSecond: 1e12, intervalMs: 1 }
  })
  const connection = await openRaw(url)
  // Some sweeps fall between the answers, and some on them.
  for (let i = 0; i < 200; i++) {
    const { text } = await connection.send(request('GET', '/small')).response()
    if (text !== 'small') t.equal(text, 'small')
  }
  t.notOk(connection.ended)
  connection.destroy()
})
