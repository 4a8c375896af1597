import { once } from 'node:events'
import t from 'tap'
import type { SkillService } from '../../src/core/service.ts'
import { LinesOfReads } from '../../src/observe/audit/lines-of-reads.ts'
import { LogOutput } from '../../src/log-output.ts'
import { observe } from '../../src/observe/observe.ts'
import { fullDisk, startStuck, unreadPipe } from '../adversarial/attacks/stuck-log.ts'
import { buildService } from '../helper/build.ts'
import { freePort } from '../helper/proxies.ts'
import { rawRequest, request } from '../helper/raw-http.ts'
import { skills, until } from '../helper/skills.ts'

for (const [what, stdout] of [['on a full disk', fullDisk], ['a pipe that nobody reads', unreadPipe]] as const) {
  t.test(`K73: where the audit log is required and standard output is ${what}, nothing is read`, async (t) => {
    const service = await startStuck(t, t.testdir(skills('one')), stdout(t), { AUDIT_LOG: 'stdout', AUDIT_REQUIRED: 'true' })
    let status = 200
    while (status === 200) status = (await rawRequest(service.url, request('GET', '/skills/one'))).status
    t.equal(status, 503)
    t.equal((await rawRequest(service.url, request('GET', '/livez'))).status, 200)
    t.match(await service.stop(), { code: 0 })
  })
}

t.test('K73: lines of the audit log that standard output does not take are counted as such', async (t) => {
  const port = await freePort()
  const service = await startStuck(t, t.testdir(skills('one')), unreadPipe(t), { AUDIT_LOG: 'stdout', METRICS_PORT: String(port) })
  const droppedOf = async (log: string) => Number(new RegExp(`^skillserve_${log}_dropped_total (\\d+)$`, 'm').exec(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text())?.[1])
  const dropped = async () => await droppedOf('audit')
  t.equal(await dropped(), 0)
  let before = 0
  for (; before === 0; before = await dropped()) await service.flood(500_000)
  for (let i = 0; i < 5; i++) await rawRequest(service.url, request('GET', '/skills/one'))
  await until(async () => await dropped() >= before + 5)
  t.ok(await droppedOf('log') > await dropped(), 'all lines of that output, those of the log too')
  await service.stop()
})

t.test('K73: lines whose revisions nobody gets are bounded, whatever was begun for those before', async (t) => {
  let reported = 0
  const written: object[] = []
  const lines = new LinesOfReads({ append: (_time, fields) => { written.push(fields) } }, (count) => { reported += count })
  let answer = (): void => {}
  const inspect: SkillService['inspect'] = async () => await new Promise((resolve) => { answer = () => { resolve(undefined) } })
  const source = { inspect } as unknown as SkillService
  const flushes: Array<Promise<void>> = []
  for (let round = 0; round < 10; round++) {
    for (let i = 0; i < 5_000; i++) lines.add({ time: 0, askedAt: 0, fields: {}, target: {}, skill: 'a', skills: source, revision: undefined, folderId: undefined })
    t.equal(lines.hasRoom, round < 2, `${(round + 1) * 5_000}`)
    flushes.push(lines.flush())
  }
  t.equal(lines.dropped, 30_000)
  const pump = setInterval(() => { answer() }, 1)
  await Promise.all(flushes)
  clearInterval(pump)
  t.equal(written.length, 20_000)
  t.ok(lines.hasRoom)
  await lines.close()
  t.equal(reported, 30_000)
})

t.test('K73: the end writes every line, though nobody answers for the revisions of those before', async (t) => {
  const written: object[] = []
  const lines = new LinesOfReads({ append: (_time, fields) => { written.push(fields) } }, () => {})
  const source = { inspect: () => new Promise(() => {}) } as unknown as SkillService
  const add = (number: number) => { lines.add({ time: 0, askedAt: 0, fields: { number }, target: {}, skill: 'a', skills: source, revision: undefined, folderId: undefined }) }
  add(1)
  const flushed = lines.flush()
  add(2)
  add(3)
  await Promise.all([lines.close(), flushed])
  t.same(written, [1, 2, 3].map((number) => ({ number, target: { revision: null } })))
})

t.test('K73: the end that waits for nothing writes every line once, in its order', async (t) => {
  const written: object[] = []
  const lines = new LinesOfReads({ append: (_time, fields) => { written.push(fields) } }, () => {})
  const asked = new EventTarget()
  let answer: (state: undefined) => void = () => {}
  const source = {
    inspect: () => new Promise((resolve) => {
      answer = resolve
      asked.dispatchEvent(new Event('asked'))
    })
  } as unknown as SkillService
  const add = (number: number, more: object = {}) => { lines.add({ time: 0, askedAt: 0, fields: { number }, target: {}, skill: 'a', skills: source, revision: undefined, folderId: undefined, ...more }) }
  add(1)
  const inspected = once(asked, 'asked')
  const flushed = lines.flush()
  await inspected
  add(2, { revision: 'r' })
  add(3, { skill: undefined })
  lines.closeNow()
  answer(undefined)
  await flushed
  t.same(written, [{ number: 1, target: { revision: null } }, { number: 2, target: { revision: 'r' } }, { number: 3, target: {} }])
})

t.test('K73: an output keeps up while it has room, and no line has waited for long', async (t) => {
  let isFull = true
  const write = (bytes: Uint8Array): number => {
    if (isFull) throw Object.assign(new Error('EAGAIN'), { code: 'EAGAIN' })
    return bytes.length
  }
  const output = new LogOutput({ write, writeSync: write })
  t.ok(output.keepsUp)
  output.write('one\n')
  output.flush()
  t.ok(output.keepsUp, 'for a moment')
  await until(() => !output.keepsUp)
  isFull = false
  await until(() => output.keepsUp)
  isFull = true
  output.flush()
  while (output.keepsUp) output.write(`${'x'.repeat(60_000)}\n`)
  t.equal(output.lost, 0, 'it says so before a line is lost')
})

t.test('K73: a line that its output has lost is counted at once, and its number is a line when the output takes lines again', async (t) => {
  let isFull = true
  let text = ''
  const write = (bytes: Uint8Array): number => {
    if (isFull) throw Object.assign(new Error('EAGAIN'), { code: 'EAGAIN' })
    text += String(Buffer.from(bytes))
    return bytes.length
  }
  const stdout = new LogOutput({ write, writeSync: write })
  const logged: object[] = []
  let url = ''
  const log = { info: (fields: object) => { url = 'url' in fields ? String(fields.url) : url }, warn: (fields: object) => { logged.push(fields) } }
  const { skills } = await buildService(t)
  const { start, close, auditState } = await observe({
    skills,
    version: '1',
    log,
    clientOf: undefined,
    readings: {},
    metrics: { address: { host: '127.0.0.1', port: 0 }, hasCallers: false, basePath: '', countsReads: false },
    audit: { path: 'stdout', isRequired: false, stdout, salt: undefined, skills, policies: [], judged: undefined }
  })
  t.teardown(close)
  const fill = () => { for (const { lost } = stdout; stdout.lost === lost;) stdout.write(`${'x'.repeat(60_000)}\n`) }
  fill()
  t.equal(auditState(), 'failing')
  await start()
  t.match(await (await fetch(url)).text(), /^skillserve_audit_dropped_total 1$/m)
  isFull = false
  stdout.flushSync()
  t.equal(auditState(), 'working')
  isFull = true
  fill()
  isFull = false
  stdout.flushSync()
  t.strictSame(logged, [{ lines: 1, path: 'stdout' }], 'the second time only lines of others were lost')
  t.strictSame(text.match(/"event":"audit[^}]+/g), ['"event":"audit.dropped","outcome":"error","target":{"lines":1'])
  t.notMatch(text, 'service.started')
})
