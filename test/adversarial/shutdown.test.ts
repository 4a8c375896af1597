import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startProcess, type ServiceProcess } from '../helper/process.ts'
import { jsonRequest, openRaw, request, type RawConnection } from '../helper/raw-http.ts'
import { skills, until } from '../helper/skills.ts'
import { startStopwatch } from '../helper/timing.ts'

const CLIENTS = 16
/** More than a socket's buffers hold. */
const LARGE_BYTES = 1_000_000
/** Several times as many as there are threads that could wait for one. */
const FIFOS = 40
/** Without the deadline of 9 s, slow clients would keep the process as long as they like: half a minute and more. */
const DEADLINE_MS = 25_000

/** What a client sends in one piece: some answers take turns of the event loop, others none. */
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
  writeFileSync(join(folder, 'skills/one/large.bin'), Buffer.alloc(LARGE_BYTES, 'x'))
  return await startProcess(t, { args: [join(folder, 'skills')], env: { PORT: String(port) } })
}

interface Client {
  /** Answers to batches that were sent in time. */
  answered: number
  /** What was wrong with them. */
  readonly losses: string[]
}

for (const [kind, size] of [['keep-alive', 1], ['pipelining', BATCH.length]] as const) {
  t.test(`SIGTERM under load: every request of ${kind} clients that had arrived is answered completely`, async (t) => {
    const service = await start(t)
    const stopped = new AbortController()

    async function ask (connection: RawConnection, client: Client, first: number): Promise<void> {
      for (let turn = first; !stopped.signal.aborted; turn++) {
        const batch = Array.from({ length: size }, (_, index) => (turn + index) % BATCH.length)
        connection.send(Buffer.concat(batch.map((index) => BATCH[index] ?? Buffer.alloc(0))))
        for (const index of batch) {
          const response = await connection.response().catch((error: Error) => error.message)
          if (typeof response === 'string') client.losses.push(response)
          else if (response.status !== STATUSES[index]) client.losses.push(`${response.status} instead of ${STATUSES[index]}`)
          client.answered++
        }
        if (connection.ended) return
      }
    }

    const connections = await Promise.all(Array.from({ length: CLIENTS }, () => openRaw(service.url)))
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
    t.comment(`${clients.reduce((sum, { answered }) => sum + answered, 0)} answers`)
  })
}

t.test('after SIGKILL under load the next process serves at once, on the same port', async (t) => {
  const service = await start(t)
  const connections = await Promise.all(Array.from({ length: CLIENTS }, () => openRaw(service.url)))
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
