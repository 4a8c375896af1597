import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startProcess } from '../helper/process.ts'
import { jsonRequest, openRaw, rawRequest, request, type RawConnection, type RawResponse } from '../helper/raw-http.ts'
import { skills, skillText, until } from '../helper/skills.ts'

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

t.test('100 pipelined requests of all kinds are answered in their order', async (t) => {
  const kinds: ReadonlyArray<readonly [bytes: Buffer, expected: (response: RawResponse) => boolean]> = [
    [request('GET', '/skills/one/files/large.bin', { headers: ['Range: bytes=0-999999'] }), ({ status, body }) => status === 206 && body.length === 1_000_000],
    [request('GET', '/skills'), ({ text }) => text === '{"skills":["one","two"]}'],
    [request('GET', '/nowhere'), ({ status }) => status === 404],
    [jsonRequest('POST', '/agent/tool-call', { function: { name: 'get_skill', arguments: { skill_name: 'two' } } }), ({ text }) => text.includes('Instructions of two')],
    [request('GET', '/skills/one', { headers: ['Accept: text/markdown'] }), ({ text }) => text === skillText('one')],
    [jsonRequest('POST', '/agent/tools/list_skills', '{"broken"'), ({ status }) => status === 400],
    [request('GET', '/skills/two/files'), ({ text }) => text.includes('"path":"SKILL.md"')]
  ]
  const sent = Array.from({ length: 100 }, (_, index) => kinds[index % kinds.length] ?? kinds[0])
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
