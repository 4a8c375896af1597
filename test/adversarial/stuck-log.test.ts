import { execFileSync, spawn, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { freePort } from '../helper/proxies.ts'
import { jsonRequest, rawRequest, request } from '../helper/raw-http.ts'
import { skills, until } from '../helper/skills.ts'
import { startStopwatch } from '../helper/timing.ts'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** Tool calls of one request, and bytes of the two log lines of a call, at least. */
const CALLS = 128
const CALL_BYTES = 1_100

/** More than the backlog of the log and the buffers of the system, in bytes of log lines. */
const FLOOD_BYTES = 9_500_000
/** A full disk takes none of them. What a full backlog costs is no other matter than with a pipe. */
const FULL_DISK_BYTES = 1_000_000
const GAP = 'lines of the log were dropped'
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

t.test('standard output is a pipe that nobody reads: requests are answered, and the process ends', async (t) => {
  const service = await start(t, unreadPipe(t))
  await survives(t, service)
  await stops(t, service)
})

t.test('standard output is on a full disk: requests are answered, and the process ends', async (t) => {
  const full = openSync('/dev/full', 'w')
  t.teardown(() => { closeSync(full) })
  const service = await start(t, full)
  await survives(t, service, FULL_DISK_BYTES)
  await stops(t, service)
})

t.test('standard output is a socket whose reader pauses: the log says where lines are missing, ' +
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
  const told = lines.filter(({ msg }) => String(msg).includes('were dropped'))
  t.match(told, [{ level: 40, lines: Number }])
  t.ok(Number(told[0]?.lines) > 1_000)
  t.match(lines.at(-1), { msg: 'stopped' })
  t.ok(lines.some(({ url }) => url === '/skills/one'), 'lines after the gap are in the log')
})

t.test('K73: lines of the audit log that standard output does not take are counted as such', async (t) => {
  const port = String(await freePort())
  const service = await start(t, unreadPipe(t), { AUDIT_LOG: 'stdout', METRICS_PORT: port })
  const dropped = async (log: string) => {
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    return Number(new RegExp(`^skillserve_${log}_dropped_total (\\d+)$`, 'm').exec(metrics)?.[1])
  }
  t.equal(await dropped('audit'), 0)
  let before = 0
  for (; before === 0; before = await dropped('audit')) await flood(service, 500_000)
  for (let i = 0; i < 5; i++) await statusOf(service, '/skills/one')
  await until(async () => await dropped('audit') >= before + 5)
  t.ok(await dropped('log') > await dropped('audit'), 'all lines of that output, those of the log too')
})
