import { once } from 'node:events'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { listenWithPlugins } from '../../helper/plugin-app.ts'
import { openRaw, type RawConnection, rawRequest, request } from '../../helper/raw-http.ts'
import { until } from '../../helper/skills.ts'

const MEBIBYTE = 1_048_576

/** More than the kernel's buffers take for a client that does not read. */
const BYTES = 16 * MEBIBYTE

async function start (t: Test, graceMs: number) {
  const shared = Buffer.alloc(BYTES, 'x')
  const service = await listenWithPlugins(t, (app) => {
    app.get('/text', () => 'x'.repeat(BYTES))
    app.get('/own', () => Buffer.alloc(BYTES, 'x'))
    app.get('/shared', () => shared)
    app.get('/small', () => 'x'.repeat(10_000))
    app.get('/stream', (_request, reply) => reply.send(Readable.from(['x'.repeat(BYTES)])))
    app.get('/web', () => new Response('x'.repeat(BYTES)))
  }, { unsent: { maxBytes: 4 * BYTES, graceMs } })

  /** Asks for an answer, and takes only its first bytes. */
  async function hang (target: string): Promise<RawConnection> {
    const connection = await openRaw(service.url)
    const begun = once(connection.socket, 'data')
    connection.send(request('GET', target))
    await begun
    connection.socket.pause()
    return connection
  }
  return { ...service, hang }
}

for (const target of ['/text', '/own']) {
  t.test(`as long as too many answers wait, a large one is 503, and a small one is sent: ${target}`, async (t) => {
    const { url, hang } = await start(t, 60_000)
    const connections = []
    for (let index = 0; index < 4; index++) connections.push(await hang(target))
    for (const refused of [target, '/stream', '/web']) {
      const response = await rawRequest(url, request('GET', refused))
      t.match(response, { status: 503, headers: { 'retry-after': /^\d+$/, 'content-type': 'application/problem+json' } }, refused)
      t.match(response.json(), { code: 'overloaded' })
    }
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
