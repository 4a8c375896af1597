import { execFileSync, spawn, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { type ServiceProcess, startProcess } from '../helper/process.ts'
import { freePort } from '../helper/proxies.ts'
import { jsonRequest, openRaw, type RawConnection, rawRequest, request } from '../helper/raw-http.ts'
import { skills, until } from '../helper/skills.ts'
import { startStopwatch } from '../helper/timing.ts'

const LARGE_BYTES = 20_000_000
const DOWNLOADS = 20
/** The second begins with what the first has left. */
const ROUNDS = 2
const IDLE_CLIENTS = 1_000
const ASKED_MEANWHILE = 200

/** Far above what a request takes on a busy machine, far below what it would wait behind slow clients. */
const FAST_MS = 5_000

const folder = t.testdir({ skills: skills('one', 'two') })
writeFileSync(join(folder, 'skills/one/large.bin'), Buffer.alloc(LARGE_BYTES, 'x'))
const service = await startProcess(t, { args: [join(folder, 'skills')] })

function countDescriptors (): number {
  return readdirSync(`/proc/${service.pid}/fd`).length
}

t.test('K56: clients that hang up in the middle of a download leave no descriptor open', async (t) => {
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

t.test('K56: 1,000 idle connections delay no request', async (t) => {
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
  for (const connection of idle) connection.destroy()
  t.match(await service.stop(), { code: 0, stderr: '' })
})

const BUSY_CLIENTS = 16
/** More than a socket's buffers hold, of an answer that is read, and of one that nobody reads. */
const ANSWER_BYTES = 1_000_000
const UNREAD_BYTES = 40_000_000
const DEADLINE_MS = 10_000

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

async function startWithLargeFile (t: Test, bytes: number): Promise<ServiceProcess> {
  const folder = t.testdir({ skills: skills('one', 'two') })
  writeFileSync(join(folder, 'skills/one/large.bin'), Buffer.alloc(bytes, 'x'))
  return await startProcess(t, { args: [join(folder, 'skills')] })
}

interface Client {
  answered: number
  /** What was wrong with them. */
  readonly losses: string[]
}

t.test('K91: SIGTERM under load: every request that had arrived is answered completely', async (t) => {
  const service = await startWithLargeFile(t, ANSWER_BYTES)
  const stopped = new AbortController()

  async function ask (connection: RawConnection, client: Client, first: number): Promise<void> {
    for (let turn = first; !stopped.signal.aborted && !connection.ended; turn++) {
      const index = turn % BATCH.length
      connection.send(BATCH[index] ?? '')
      const response = await connection.response().catch((error: Error) => error.message)
      if (typeof response === 'string') client.losses.push(response)
      else if (response.status !== STATUSES[index]) {
        client.losses.push(
        `${response.status} instead of ${STATUSES[index]}`)
      }
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
  if (service.log().some(({ msg }) => String(msg).startsWith('closing the connections that are still open'))) {
    t.comment('the machine was too busy')
  } else t.strictSame(clients.flatMap(({ losses }) => losses), [])
})

t.test('K91: SIGTERM ends the process after its deadline of 8 s, in under 10 s, whatever slow clients ' +
  'are at', async (t) => {
  const service = await startWithLargeFile(t, UNREAD_BYTES)
  const connections = await Promise.all(Array.from({ length: 40 }, () => openRaw(service.url)))
  const beginnings = [
    'GET /skills HTTP/1.1\r\nHost: loc',
    'POST /agent/tool-call HTTP/1.1\r\nHost: localhost\r\nContent-Type: ' +
      'application/json\r\nContent-Length: 99\r\n\r\n{', '',
    'GET /skills/one/files/large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n'
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
  t.ok(service.log().some(({ msg }) => msg === 'closing the connections that are still open, 8 s after the stop began'))
  for (const connection of connections) connection.destroy()
})

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** Tool calls of one request, and bytes of the two log lines of a call, at least. */
const CALLS = 128
const CALL_BYTES = 1_100

/** More than the backlog of the log and the buffers of the system, in bytes of log lines. */
const FLOOD_BYTES = 9_500_000
/** A full disk takes none of them. What a full backlog costs is no other matter than with a pipe. */
const FULL_DISK_BYTES = 1_000_000
const GAP = 'log lines were dropped'
const STOP_MS = 10_000

/** A process whose log goes where nothing takes it. */
async function start (t: Test, stdout: 'pipe' | number, env: Readonly<Record<string, string>> = {}) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const stdio: StdioOptions = ['ignore', stdout, 'inherit']
  const args = [MAIN, t.testdir(skills('one')), '--port', String(port)]
  const child = spawn(process.execPath, args, { stdio, env: { PATH: process.env['PATH'], ...env } })
  t.teardown(() => { child.kill('SIGKILL') })
  await until(() => fetch(`${url}/livez`).then(({ ok }) => ok, () => false))
  return { url, child }
}

type StuckService = Awaited<ReturnType<typeof start>>

/** A pipe with a reader that does not read: the descriptor to write to. */
function unreadPipe (t: Test): number {
  const folder = mkdtempSync(join(tmpdir(), 'pipe-'))
  const path = join(folder, 'pipe')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const writer = openSync(path, constants.O_WRONLY)
  rmSync(folder, { recursive: true })
  t.teardown(() => { for (const descriptor of [writer, reader]) closeSync(descriptor) })
  return writer
}

async function statusOf ({ url }: StuckService, path: string): Promise<number> {
  return (await rawRequest(url, request('GET', path))).status
}

/** Calls tools until the log lines of the calls have so many bytes. */
async function flood ({ url }: StuckService, bytes: number): Promise<void> {
  const call = { function: { name: 'get_skill', arguments: { skill_name: '\u6f22'.repeat(180) } } }
  const calls = jsonRequest('POST', '/agent/tool-call', Array.from({ length: CALLS }, () => call))
  for (let left = bytes; left > 0; left -= CALLS * CALL_BYTES) {
    const { status, text } = await rawRequest(url, calls)
    if (status !== 200) throw new Error(`${status} ${text.slice(0, 200)}`)
  }
}

async function survives (t: Test, service: StuckService, bytes = FLOOD_BYTES): Promise<void> {
  await flood(service, bytes)
  const statuses =
    await Promise.all(['/livez', '/readyz', '/skills', '/skills/one'].map((path) => statusOf(service, path)))
  t.strictSame(statuses, [200, 200, 200, 200])
}

async function stops (t: Test, { child }: StuckService): Promise<void> {
  const elapsed = startStopwatch()
  child.kill('SIGTERM')
  t.strictSame(await once(child, 'exit'), [0, null])
  const took = elapsed()
  t.ok(took < STOP_MS, `${took} ms`)
}

t.test('K73: standard output is a pipe that nobody reads: requests are answered, lines of the audit log are ' +
  'counted as dropped, and the process ends', async (t) => {
  const port = String(await freePort())
  const service = await start(t, unreadPipe(t), { AUDIT_LOG: 'stdout', METRICS_PORT: port })
  const dropped = async (log: string) => {
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    return Number(new RegExp(`^skillserve_${log}_dropped_total (\\d+)$`, 'm').exec(metrics)?.[1])
  }
  t.equal(await dropped('audit'), 0)
  await survives(t, service)
  const before = await dropped('audit')
  t.ok(before > 0)
  for (let i = 0; i < 5; i++) await statusOf(service, '/skills/one')
  await until(async () => await dropped('audit') >= before + 5)
  t.ok(await dropped('log') > await dropped('audit'), 'all lines of that output, those of the log too')
  await stops(t, service)
})

t.test('K73: standard output is on a full disk: requests are answered, and the process ends', async (t) => {
  const full = openSync('/dev/full', 'w')
  t.teardown(() => { closeSync(full) })
  const service = await start(t, full)
  await survives(t, service, FULL_DISK_BYTES)
  await stops(t, service)
})

t.test('K70: standard output is a socket whose reader pauses: the log says where lines are missing, ' +
  'and how many', async (t) => {
  const service = await start(t, 'pipe')
  await survives(t, service)
  let text = ''
  const gap = new Promise<void>((resolve) => {
    let end = ''
    service.child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      // The whole text would be searched, and copied, for each chunk.
      end = (end + chunk).slice(-chunk.length - GAP.length)
      if (end.includes(GAP)) resolve()
    })
  })
  await gap
  t.equal(await statusOf(service, '/skills/one'), 200)
  await stops(t, service)
  if (service.child.stdout?.readableEnded === false) await once(service.child.stdout, 'end')

  const lines = text.trimEnd().split('\n').map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
  const reported = lines.filter(({ msg }) => String(msg).includes('were dropped'))
  t.match(reported, [{ level: 40, lines: Number }])
  t.ok(Number(reported[0]?.lines) > 1_000)
  t.match(lines.at(-1), { msg: 'stopped' })
  t.ok(lines.some(({ url }) => url === '/skills/one'), 'lines after the gap are in the log')
})
