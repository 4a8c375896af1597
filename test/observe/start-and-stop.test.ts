import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { runProcess, startProcess } from '../helper/process.ts'
import { skill } from '../helper/skills.ts'

interface Line {
  readonly event: string
  readonly outcome: string
  readonly target: { readonly skill?: string, readonly revision?: string | null }
}

/** Skills whose revision takes a while after their main file was sent. */
const FILES = { demo: skill('demo', { 'large.bin': Buffer.alloc(20_000_000, 1) }) }

function linesOf (text: string): readonly Line[] {
  return text.split('\n').filter((line) => line.startsWith('{') && line.includes('"event":')).map((line) => JSON.parse(line) as Line)
}

t.test('K73: the last reads before a stop have their revision in the audit log', async (t) => {
  const folder = t.testdir({ skills: FILES })
  const path = join(folder, 'audit.log')
  for (let round = 0; round < 2; round++) {
    const service = await startProcess(t, { args: [join(folder, 'skills')], env: { AUDIT_LOG: path } })
    t.equal((await fetch(`${service.url}/skills/demo`)).status, 200)
    t.match(await service.stop(), { code: 0 })
  }
  const lines = linesOf(readFileSync(path, 'utf8'))
  t.strictSame(lines.map(({ event }) => event), Array.from({ length: 2 }, () => ['service.started', 'skill.read', 'service.stopped']).flat())
  for (const { target } of lines.filter(({ event }) => event === 'skill.read')) t.match(target, { skill: 'demo', revision: /^sha256:[\da-f]{64}$/ })
})

t.test('K73: a start that fails for the audit log ends by itself, whatever was opened before', async (t) => {
  const folder = t.testdir({ skills: { demo: skill('demo') }, file: '' })
  const ended = await runProcess(t, {
    args: [join(folder, 'skills')],
    env: { AUDIT_LOG: join(folder, 'file/audit.log'), LIMITS: 'on', LIMITS_STORE: 'redis://127.0.0.1:1', METRICS_PORT: '0' }
  })
  t.match(ended, { code: 1, signal: null, stderr: /^skillserve: AUDIT_LOG must be a file that can be written, and \S+ cannot be opened \(ENOTDIR, a part of the path is no folder\)\n$/ })
})

t.test('K73 K91: a second signal takes no line of the audit log of what was answered before, and SIGHUP ends no service whose audit log is its output', async (t) => {
  const folder = t.testdir({ skills: FILES })
  const path = join(folder, 'audit.log')
  for (const audit of [path, 'stdout']) {
    const service = await startProcess(t, { args: [join(folder, 'skills')], env: { AUDIT_LOG: audit, SHUTDOWN_DELAY: '30' } })
    service.signal('SIGHUP')
    for (let i = 0; i < 5; i++) t.equal((await fetch(`${service.url}/livez`)).status, 200)
    service.signal('SIGTERM')
    await service.printed('"stopping"')
    t.equal((await fetch(`${service.url}/readyz`)).status, 503)
    const read = await fetch(`${service.url}/skills/demo`)
    const { code, stdout } = await service.stop()
    t.strictSame([read.status, read.headers.get('connection')], [200, 'close'])
    t.equal(code, 1)
    const events = linesOf(audit === path ? readFileSync(path, 'utf8') : stdout).map(({ event }) => event)
    t.strictSame(events, ['service.started', 'skill.read'])
  }
})

t.test('K73: a start that failed has not stopped what it never started', async (t) => {
  const folder = t.testdir({ skills: { demo: skill('demo') } })
  const path = join(folder, 'audit.log')
  const holder = createServer().listen(0, '127.0.0.1')
  t.teardown(() => holder.close())
  await once(holder, 'listening')
  const { port } = holder.address() as AddressInfo
  writeFileSync(path, '')
  t.match(await runProcess(t, { args: [join(folder, 'skills')], env: { AUDIT_LOG: path, METRICS_PORT: String(port) } }), {
    code: 1, stderr: `skillserve: port ${port} of 127.0.0.1 is in use, METRICS_PORT or --metrics-port chooses another (0 takes any free port)\n`
  })
  const events = linesOf(readFileSync(path, 'utf8')).map(({ event }) => event)
  t.equal(events.filter((event) => event === 'service.stopped').length, events.filter((event) => event === 'service.started').length, events.join())
})
