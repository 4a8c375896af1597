import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type ServiceProcess, startProcess } from '../helper/process.ts'
import { jsonRequest, openRaw, type RawConnection, rawRequest, type RawResponse, request } from '../helper/raw-http.ts'
import { skills, skillText, until } from '../helper/skills.ts'
import { startStopwatch } from '../helper/timing.ts'

const LARGE_BYTES = 20_000_000
const DOWNLOADS = 20
/** The second begins with what the first has left. */
const ROUNDS = 2
const IDLE_CLIENTS = 1_000
const ASKED_MEANWHILE = 200

/** Both limits, and how late a busy machine may be. */
const HEAD_MS = 15_000
const REQUEST_MS = 30_000
const LATENESS_MS = 10_000

/** Far above what a request takes on a busy machine, far below what it would wait behind slow clients. */
const FAST_MS = 5_000

const folder = t.testdir({ skills: skills('one', 'two') })
writeFileSync(join(folder, 'skills/one/large.bin'), Buffer.alloc(LARGE_BYTES, 'x'))
const service = await startProcess(t, { args: [join(folder, 'skills')] })

function countDescriptors (): number {
  return readdirSync(`/proc/${service.pid}/fd`).length
}

/** Sends the bytes one by one, a second apart, until the connection ends. */
async function drip (connection: RawConnection, bytes: Buffer): Promise<void> {
  for (const byte of bytes) {
    if (connection.ended) return
    connection.send(Buffer.from([byte]))
    await sleep(1_000)
  }
}

t.test('clients that hang up in the middle of a download leave no descriptor open', async (t) => {
  await rawRequest(service.url, request('GET', '/skills/one/files/large.bin', { headers: ['Range: bytes=0-9'] }))
  await until(() => service.log().some(({ msg }) => msg === 'watching a skills folder'))
  const before = countDescriptors()
  for (let round = 0; round < ROUNDS; round++) {
    const connections = await Promise.all(Array.from({ length: DOWNLOADS }, () => openRaw(service.url)))
    await Promise.all(connections.map(async (connection) => {
      const begun = once(connection.socket, 'data')
      connection.send(request('GET', '/skills/one/files/large.bin'))
      await begun
      connection.socket.pause()
    }))
    t.ok(countDescriptors() >= before + DOWNLOADS, 'the downloads were under way')
    for (const connection of connections) connection.destroy()
    await until(() => countDescriptors() <= before)
  }
  await until(() => service.log().filter(({ msg }) => msg === 'request aborted').length === ROUNDS * DOWNLOADS)
  t.equal((await rawRequest(service.url, request('GET', '/skills/one'))).status, 200)
})

t.test('16 pipelined requests of all kinds are answered in their order', async (t) => {
  const kinds: ReadonlyArray<readonly [bytes: Buffer, expected: (response: RawResponse) => boolean]> = [
    [request('GET', '/skills/one/files/large.bin', { headers: ['Range: bytes=0-999999'] }), ({ status, body }) => status === 206 && body.length === 1_000_000],
    [request('GET', '/skills'), ({ text }) => text === '{"skills":["one","two"]}'],
    [request('GET', '/nowhere'), ({ status }) => status === 404],
    [jsonRequest('POST', '/agent/tool-call', { function: { name: 'get_skill', arguments: { skill_name: 'two' } } }), ({ text }) => text.includes('Instructions of two')],
    [request('GET', '/skills/one', { headers: ['Accept: text/markdown'] }), ({ text }) => text === skillText('one')],
    [jsonRequest('POST', '/agent/tools/list_skills', '{"broken"'), ({ status }) => status === 400],
    [request('GET', '/skills/two/files'), ({ text }) => text.includes('"path":"SKILL.md"')]
  ]
  const sent = Array.from({ length: 16 }, (_, index) => kinds[index % kinds.length] ?? kinds[0])
  const connection = await openRaw(service.url)
  connection.send(Buffer.concat(sent.map((kind) => kind?.[0] ?? Buffer.alloc(0))))
  for (const [index, kind] of sent.entries()) {
    const response = await connection.response()
    if (kind?.[1](response) !== true) t.fail(`answer ${index}: ${response.status} ${response.text.slice(0, 100)}`)
  }
  t.equal(connection.received.length, 0, 'and nothing behind them')
  connection.destroy()
})

t.test('a huge head is 431, and nobody else notices', async (t) => {
  const other = await openRaw(service.url)
  const heads = ['a'.repeat(17_000), 'a'.repeat(1_000_000)].map((value) => request('GET', '/skills', { headers: [`X-Long: ${value}`] }))
  for (const head of heads) {
    const response = await rawRequest(service.url, head)
    t.match(response, { status: 431, headers: { connection: 'close' } })
    t.match(response.json(), { code: 'headers_too_large' })
    t.equal((await other.send(request('GET', '/skills')).response()).status, 200)
  }
  other.destroy()
})

t.test('K56: a byte a second is 408 in time, and neither that nor 1,000 idle connections delay a request', async (t) => {
  const slow = [
    [HEAD_MS, Buffer.alloc(0), request('GET', '/skills', { headers: [`X-Long: ${'a'.repeat(100)}`] })],
    [REQUEST_MS, jsonRequest('POST', '/agent/tool-call', '', { headers: ['Content-Length: 100'] }), Buffer.alloc(100, ' ')]
  ] as const
  const refusals = slow.map(async ([limit, atOnce, bytes]) => {
    const connection = await openRaw(service.url)
    const start = performance.now()
    connection.send(atOnce)
    const dripping = drip(connection, bytes)
    const response = await connection.response({ timeoutMs: 2 * REQUEST_MS })
    const took = performance.now() - start
    t.equal(response.status, 408)
    t.match(response.json(), { code: 'request_timeout' })
    t.ok(took > limit - 1_000 && took < limit + LATENESS_MS, `${Math.round(took)} ms`)
    await connection.closed()
    await dripping
  })

  const idle: RawConnection[] = []
  while (idle.length < IDLE_CLIENTS) {
    idle.push(...await Promise.all(Array.from({ length: 50 }, async () => {
      const connection = await openRaw(service.url)
      await connection.send(request('GET', '/livez')).response()
      return connection
    })))
  }
  const times: number[] = []
  for (let i = 0; i < ASKED_MEANWHILE; i++) {
    const start = performance.now()
    const response = await rawRequest(service.url, request('GET', '/skills/one'))
    times.push(performance.now() - start)
    if (response.status !== 200) t.equal(response.status, 200)
  }
  const slowest = Math.max(...times)
  t.ok(slowest < FAST_MS, `the slowest of ${ASKED_MEANWHILE} requests took ${slowest.toFixed(1)} ms`)
  t.notOk(idle.some(({ ended }) => ended), 'the idle ones are still welcome')
  await Promise.all(refusals)
  for (const connection of idle) connection.destroy()
  t.match(await service.stop(), { code: 0, stderr: '' })
})

const BUSY_CLIENTS = 16
/** More than a socket's buffers hold. */
const ANSWER_BYTES = 1_000_000
/** Several times as many as there are threads that could wait for one. */
const FIFOS = 40
/** Without the deadline of 9 s, slow clients would keep the process as long as they like: half a minute and more. */
const DEADLINE_MS = 25_000

/** Some answers take turns of the event loop, others none. */
const BATCH = [
  request('GET', '/skills'),
  request('GET', '/skills/one/files/large.bin'),
  request('GET', '/nowhere'),
  jsonRequest('POST', '/agent/tool-call', { function: { name: 'get_skill', arguments: { skill_name: 'two' } } }),
  request('GET', '/skills/two/files'),
  request('GET', '/livez')
]
const STATUSES = [200, 200, 404, 200, 200, 200]

async function start (t: Test, port = 0): Promise<ServiceProcess> {
  const folder = t.testdir({ skills: skills('one', 'two') })
  writeFileSync(join(folder, 'skills/one/large.bin'), Buffer.alloc(ANSWER_BYTES, 'x'))
  return await startProcess(t, { args: [join(folder, 'skills')], env: { PORT: String(port) } })
}

interface Client {
  answered: number
  /** What was wrong with them. */
  readonly losses: string[]
}

t.test('K91: SIGTERM under load: every request that had arrived is answered completely', async (t) => {
  const service = await start(t)
  const stopped = new AbortController()

  async function ask (connection: RawConnection, client: Client, first: number): Promise<void> {
    for (let turn = first; !stopped.signal.aborted && !connection.ended; turn++) {
      const index = turn % BATCH.length
      connection.send(BATCH[index] ?? '')
      const response = await connection.response().catch((error: Error) => error.message)
      if (typeof response === 'string') client.losses.push(response)
      else if (response.status !== STATUSES[index]) client.losses.push(`${response.status} instead of ${STATUSES[index]}`)
      client.answered++
    }
  }

  const connections = await Promise.all(Array.from({ length: BUSY_CLIENTS }, () => openRaw(service.url)))
  const clients = connections.map((): Client => ({ answered: 0, losses: [] }))
  const asking = clients.map((client, index) => ask(connections[index] as RawConnection, client, index))
  // A connection that waits to be accepted has not arrived yet.
  await until(() => clients.every(({ answered }) => answered > BATCH.length))
  // From here on nobody sends any more: what is still open had been sent before the signal.
  stopped.abort()
  service.signal('SIGTERM')
  await Promise.all(asking)
  t.match(await service.ended, { code: 0, stderr: '' })
  // After eight seconds the drain is over: on a machine that is too busy for these answers until then, they may be cut.
  if (service.log().some(({ msg }) => msg === 'cutting the connections that are still open')) t.comment('the machine was too busy')
  else t.strictSame(clients.flatMap(({ losses }) => losses), [])
})

t.test('after SIGKILL under load the next process serves at once, on the same port', async (t) => {
  const service = await start(t)
  const connections = await Promise.all(Array.from({ length: BUSY_CLIENTS }, () => openRaw(service.url)))
  for (const connection of connections) connection.send(Buffer.concat(BATCH))
  t.match(await service.stop('SIGKILL'), { signal: 'SIGKILL' })
  const next = await start(t, service.port)
  t.equal(next.url, service.url)
  const connection = await openRaw(next.url)
  t.strictSame((await connection.send(request('GET', '/skills')).response()).json(), { skills: ['one', 'two'] })
  connection.destroy()
  t.match(await next.stop(), { code: 0, stderr: '' })
})

t.test('SIGTERM ends the process by the deadline, whatever slow clients are at', async (t) => {
  const service = await start(t)
  const connections = await Promise.all(Array.from({ length: 40 }, () => openRaw(service.url)))
  const beginnings = [
    'GET /skills HTTP/1.1\r\nHost: loc', 'POST /agent/tool-call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{', '',
    'GET /skills/one/files/large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n', 'GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n'
  ]
  for (const [index, connection] of connections.entries()) {
    connection.send(beginnings[index % beginnings.length] ?? '')
    connection.socket.pause()
  }
  t.match((await (await openRaw(service.url)).send(request('GET', '/livez')).response()), { status: 200 })
  const elapsed = startStopwatch()
  t.match(await service.stop(), { code: 0, stderr: '' })
  const took = elapsed()
  t.ok(took < DEADLINE_MS, `${took} ms`)
  for (const connection of connections) connection.destroy()
})

t.test('K22: FIFOs, also as a main file, hold up nobody, and not the end of the process', async (t) => {
  const folder = t.testdir({ skills: skills('one') })
  const root = join(folder, 'skills')
  mkdirSync(join(root, 'piped'))
  execFileSync('mkfifo', [join(root, 'piped/SKILL.md'), ...Array.from({ length: FIFOS }, (_, index) => join(root, `piped/${index}`))])
  const service = await startProcess(t, { args: [root] })
  const ask = async (path: string) => {
    const connection = await openRaw(service.url)
    const { status, text } = await connection.send(request('GET', path)).response()
    connection.destroy()
    return { status, text }
  }
  for (let index = 0; index < FIFOS; index++) t.match(await ask(`/skills/piped/files/${index}`), { status: 404, text: /not a regular file/ })
  t.match(await ask('/skills/piped'), { status: 404, text: /SKILL\.MD not found for skill 'piped'/ })
  t.match(await ask('/skills/piped/files'), { status: 200, text: /"files":\[\]/ })
  t.match(await ask('/skills/one'), { status: 200 })
  t.match(await service.stop(), { code: 0, stderr: '' })
})
