import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runProcess, startProcess } from '../helper/process.ts'

const FILES = { demo: { 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# Demo\n' } }

async function until (test: () => boolean): Promise<void> {
  while (!test()) await new Promise((resolve) => setTimeout(resolve, 10))
}

t.test('K73: the audit log survives rotation, SIGHUP and SIGTERM without a lost line', async (t) => {
  const folder = t.testdir({ skills: FILES })
  const [path, rotated] = [join(folder, 'audit.log'), join(folder, 'audit.log.1')]
  const service = await startProcess(t, { args: [join(folder, 'skills')], env: { AUDIT_LOG: path } })
  const read = async () => (await fetch(`${service.url}/skills/demo`)).text()
  await read()
  await until(() => readFileSync(path, 'utf8').includes('skill.read'))
  renameSync(path, rotated)
  service.signal('SIGHUP')
  await read()
  await until(() => existsSync(path) && readFileSync(path, 'utf8').includes('skill.read'))
  await read()
  t.match(await service.stop(), { code: 0 })
  const lines = [rotated, path].flatMap((file) => readFileSync(file, 'utf8').trim().split('\n')).map((line) => JSON.parse(line) as { readonly event: string, readonly target: { readonly revision?: string } })
  t.strictSame(lines.map(({ event }) => event), ['service.started', 'skill.read', 'skill.read', 'skill.read', 'service.stopped'])
  t.match(lines[1]?.target.revision, /^sha256:[\da-f]{64}$/)
})

t.test('K73: a full disk delays nothing, and refuses reads only where the log is required', { skip: existsSync('/dev/full') ? false : 'there is no /dev/full' }, async (t) => {
  const args = [t.testdir(FILES)]
  const free = await startProcess(t, { args, env: { AUDIT_LOG: '/dev/full' } })
  for (let i = 0; i < 50; i++) t.equal((await fetch(`${free.url}/skills/demo`)).status, 200)
  t.match(await free.stop(), { code: 0 })
  const strict = await startProcess(t, { args, env: { AUDIT_LOG: '/dev/full', AUDIT_REQUIRED: 'true' } })
  let status = 200
  while (status === 200) status = (await fetch(`${strict.url}/skills/demo`)).status
  t.equal(status, 503)
  t.equal((await fetch(`${strict.url}/livez`)).status, 200)
  t.match(await strict.stop(), { code: 0 })
})

t.test('K73: a disk that hangs delays no request and no end', async (t) => {
  const folder = t.testdir({ skills: FILES })
  const fifo = join(folder, 'audit.fifo')
  t.equal(spawnSync('mkfifo', [fifo]).status, 0)
  // Holds the other end open and reads nothing: a write waits for ever once the pipe is full.
  const holder = await import('node:fs/promises').then(({ open }) => open(fifo, 'r+'))
  t.teardown(() => holder.close())
  const service = await startProcess(t, { args: [join(folder, 'skills')], env: { AUDIT_LOG: fifo } })
  for (let i = 0; i < 400; i++) t.equal((await fetch(`${service.url}/skills/demo`)).status, 200)
  const { code, signal } = await service.stop()
  t.ok(code === 0 || signal === 'SIGKILL')
})

t.test('K73: the lines of AUDIT_LOG=stdout are among those of the log', async (t) => {
  const service = await startProcess(t, { args: [t.testdir(FILES)], env: { AUDIT_LOG: 'stdout' } })
  await (await fetch(`${service.url}/skills/demo`)).text()
  await service.stop()
  t.match(service.log().filter(({ event }) => event === 'skill.read'), [{ outcome: 'success', target: { skill: 'demo' } }])
})

t.test('a file that cannot be opened stops the start with a line that names the setting', async (t) => {
  const folder = t.testdir({ skills: FILES })
  writeFileSync(join(folder, 'file'), '')
  const { code, stderr } = await runProcess(t, { args: [join(folder, 'skills')], env: { AUDIT_LOG: join(folder, 'file', 'audit.log') } })
  t.equal(code, 1)
  t.match(stderr, /AUDIT_LOG must be a file that can be written, and \S+ cannot be opened \(ENOTDIR\)/)
})
