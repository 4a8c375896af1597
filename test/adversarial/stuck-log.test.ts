import { execFileSync, spawn, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { skills } from '../helper/skills.ts'

t.setTimeout(120_000)

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** More than the backlog of the log and the buffers of the system, in bytes of log lines. */
const FLOOD_BYTES = 9_500_000
const CALLS = 128
/** Of the two log lines of a call, at least. */
const CALL_BYTES = 600
const STOP_MS = 10_000

/** Tells by standard error where the service listens, since nobody reads its log. */
const TELL_PORT = 'data:text/javascript,' + encodeURIComponent(`
  import { Server } from 'node:net'
  const { listen } = Server.prototype
  Server.prototype.listen = function (...args) {
    this.once('listening', () => process.stderr.write('port ' + this.address().port + '\\n'))
    return listen.apply(this, args)
  }
`)

async function start (t: Test, stdout: 'pipe' | number) {
  const folder = t.testdir(skills('one'))
  const stdio: StdioOptions = ['ignore', stdout, 'pipe']
  const child = spawn(process.execPath, ['--import', TELL_PORT, MAIN, folder, '--port', '0'], { stdio, env: { PATH: process.env.PATH } })
  t.teardown(() => { child.kill('SIGKILL') })
  const ended = once(child, 'exit') as Promise<[code: number | null, signal: NodeJS.Signals | null]>
  const [text] = await once(child.stderr as Readable, 'data') as [Buffer]
  const url = `http://127.0.0.1:${String(text).replace(/\D/g, '')}`

  return {
    stdout: child.stdout,
    ended,
    async get (path: string): Promise<number> {
      const response = await fetch(url + path)
      await response.arrayBuffer()
      return response.status
    },
    /** Calls tools until the log lines of the calls are more than anything holds. */
    async flood (): Promise<void> {
      const call = { function: { name: 'get_skill', arguments: { skill_name: 'x'.repeat(180) } } }
      const body = JSON.stringify({ tool_calls: Array.from({ length: CALLS }, () => call) })
      for (let bytes = 0; bytes < FLOOD_BYTES; bytes += CALLS * CALL_BYTES) {
        const response = await fetch(`${url}/agent/tool-call`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
        await response.arrayBuffer()
        if (response.status !== 200) throw new Error(`${response.status}`)
      }
    },
    async stop (): Promise<{ code: number | null, signal: NodeJS.Signals | null, inTime: boolean }> {
      const before = performance.now()
      child.kill('SIGTERM')
      const [code, signal] = await ended
      return { code, signal, inTime: performance.now() - before < STOP_MS }
    }
  }
}

type Service = Awaited<ReturnType<typeof start>>

async function survives (t: Test, service: Service): Promise<void> {
  await service.flood()
  t.strictSame(await Promise.all(['/livez', '/readyz', '/skills', '/skills/one'].map(service.get)), [200, 200, 200, 200])
}

async function stops (t: Test, service: Service): Promise<void> {
  t.strictSame(await service.stop(), { code: 0, signal: null, inTime: true })
}

/** A pipe with a reader that does not read, as a descriptor to write to and one to read from. */
function pipe (t: Test): { readonly writer: number, readonly reader: number } {
  const path = join(t.testdir({}), 'pipe')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const writer = openSync(path, constants.O_WRONLY)
  t.teardown(() => { closeSync(writer) })
  return { writer, reader }
}

t.test('standard output is a pipe that nobody reads: requests are answered, and the process ends', async (t) => {
  const { writer } = pipe(t)
  const service = await start(t, writer)
  await survives(t, service)
  await stops(t, service)
})

t.test('standard output is on a full disk: requests are answered, and the process ends', async (t) => {
  const full = openSync('/dev/full', 'w')
  t.teardown(() => { closeSync(full) })
  const service = await start(t, full)
  await survives(t, service)
  await stops(t, service)
})

t.test('standard output is a socket whose reader pauses: the log says where lines are missing, and how many', async (t) => {
  const service = await start(t, 'pipe')
  await survives(t, service)
  let text = ''
  const gap = new Promise<void>((resolve) => {
    service.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      if (text.includes('lines of the log were dropped')) resolve()
    })
  })
  await gap
  t.equal(await service.get('/skills/one'), 200)
  await stops(t, service)
  if (service.stdout?.readableEnded === false) await once(service.stdout, 'end')

  const lines = text.trimEnd().split('\n').map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
  const told = lines.filter(({ msg }) => String(msg).includes('were dropped'))
  t.match(told, [{ level: 40, lines: Number }])
  t.ok(Number(told[0]?.lines) > 1_000)
  t.match(lines.at(-1), { msg: 'stopped' })
  t.ok(lines.some(({ url }) => url === '/skills/one'), 'lines after the gap are in the log')
})
