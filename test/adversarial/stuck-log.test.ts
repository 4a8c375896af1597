import { once } from 'node:events'
import t, { type Test } from 'tap'
import { fullDisk, startStuck, type StuckService, unreadPipe } from './attacks/stuck-log.ts'
import { rawRequest, request } from '../helper/raw-http.ts'
import { skills } from '../helper/skills.ts'

/** More than the backlog of the log and the buffers of the system, in bytes of log lines. */
const FLOOD_BYTES = 9_500_000
/** A full disk takes none of them. What a full backlog costs is no other matter than with a pipe. */
const FULL_DISK_BYTES = 1_000_000
const GAP = 'lines of the log were dropped'
const STOP_MS = 10_000

const start = (t: Test, stdout: 'pipe' | number) => startStuck(t, t.testdir(skills('one')), stdout)

async function statusOf ({ url }: StuckService, path: string): Promise<number> {
  return (await rawRequest(url, request('GET', path))).status
}

async function survives (t: Test, service: StuckService, bytes = FLOOD_BYTES): Promise<void> {
  await service.flood(bytes)
  t.strictSame(await Promise.all(['/livez', '/readyz', '/skills', '/skills/one'].map((path) => statusOf(service, path))), [200, 200, 200, 200])
}

async function stops (t: Test, service: StuckService): Promise<void> {
  const { took, ...end } = await service.stop()
  t.strictSame(end, { code: 0, signal: null })
  t.ok(took < STOP_MS, `${took} ms`)
}

t.test('standard output is a pipe that nobody reads: requests are answered, and the process ends', async (t) => {
  const service = await start(t, unreadPipe(t))
  await survives(t, service)
  await stops(t, service)
})

t.test('standard output is on a full disk: requests are answered, and the process ends', async (t) => {
  const service = await start(t, fullDisk(t))
  await survives(t, service, FULL_DISK_BYTES)
  await stops(t, service)
})

t.test('standard output is a socket whose reader pauses: the log says where lines are missing, and how many', async (t) => {
  const service = await start(t, 'pipe')
  await survives(t, service)
  let text = ''
  const gap = new Promise<void>((resolve) => {
    let end = ''
    service.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      // The whole text would be searched, and copied, for each chunk.
      end = (end + chunk).slice(-chunk.length - GAP.length)
      if (end.includes(GAP)) resolve()
    })
  })
  await gap
  t.equal(await statusOf(service, '/skills/one'), 200)
  await stops(t, service)
  if (service.stdout?.readableEnded === false) await once(service.stdout, 'end')

  const lines = text.trimEnd().split('\n').map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
  const told = lines.filter(({ msg }) => String(msg).includes('were dropped'))
  t.match(told, [{ level: 40, lines: Number }])
  t.ok(Number(told[0]?.lines) > 1_000)
  t.match(lines.at(-1), { msg: 'stopped' })
  t.ok(lines.some(({ url }) => url === '/skills/one'), 'lines after the gap are in the log')
})
