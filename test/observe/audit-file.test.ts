import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runHere } from '../helper/command-line.ts'
import { newSecret } from '../helper/guarded.ts'
import { startProcess } from '../helper/process.ts'
import { openRaw, request } from '../helper/raw-http.ts'
import { saveAtomically, until } from '../helper/skills.ts'

const FILES = { demo: { 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# Demo\n' } }

t.test('K73: the audit log survives rotation, SIGHUP and SIGTERM without a lost line', async (t) => {
  const folder = t.testdir({ skills: FILES })
  const [path, rotated] = [join(folder, 'audit.log'), join(folder, 'audit.log.1')]
  // What a process has left that was killed while it wrote.
  writeFileSync(path, '{"event":"skill.read"}\n{"event":"ski')
  const service = await startProcess(t, { args: [join(folder, 'skills')], env: { AUDIT_LOG: path } })
  const read = async () => (await fetch(`${service.url}/skills/demo`)).text()
  await read()
  await until(() => readFileSync(path, 'utf8').includes('"skill.read",'))
  renameSync(path, rotated)
  service.signal('SIGHUP')
  await read()
  await until(() => existsSync(path) && readFileSync(path, 'utf8').includes('skill.read'))
  await read()
  t.match(await service.stop(), { code: 0 })
  const texts = [rotated, path].flatMap((file) => readFileSync(file, 'utf8').trim().split('\n')).slice(1)
  t.equal(texts[0], '{"event":"ski')
  const lines = texts.slice(1).map((line) => JSON.parse(line) as { readonly event: string, readonly prev: string, readonly target: { readonly revision?: string } })
  for (const [i, { prev }] of lines.entries()) t.equal(prev, createHash('sha256').update(texts[i] ?? '').digest('hex'), 'one chain over restart and rotation')
  t.strictSame(lines.map(({ event }) => event), ['service.started', 'skill.read', 'skill.read', 'skill.read', 'service.stopped'])
  t.match(lines[1]?.target.revision, /^sha256:[\da-f]{64}$/)
})

t.test('K73: a full disk delays nothing where the log is not required', { skip: existsSync('/dev/full') ? false : 'there is no /dev/full' }, async (t) => {
  const free = await startProcess(t, { args: [t.testdir(FILES)], env: { AUDIT_LOG: '/dev/full' } })
  for (let i = 0; i < 50; i++) t.equal((await fetch(`${free.url}/skills/demo`)).status, 200)
  const readiness = async () => await (await fetch(`${free.url}/readyz`)).json() as { readonly status: unknown, readonly detail?: string }
  await until(async () => (await readiness()).detail !== undefined)
  t.match(await readiness(), { status: 'ready', detail: 'the audit log cannot be written; its lines wait, and are lost when they are too many' })
  t.match(await free.stop(), { code: 0 })
  t.match(free.log().filter(({ msg }) => String(msg).startsWith('the audit log')), [{ level: 40, path: '/dev/full', code: 'ENOSPC', msg: 'the audit log cannot be written; its lines wait' }])
})

t.test('K73: where the log is required a full disk refuses reads; a line that it has cut off is whole, in the file before a rotation or in that after it', async (t) => {
  const folder = t.testdir({ skills: FILES })
  const [path, rotated] = [join(folder, 'audit.log'), join(folder, 'audit.log.1')]
  // Of 64 KiB: a file of that size takes a part of what is written, and then nothing.
  const service = await startProcess(t, { args: [join(folder, 'skills')], env: { AUDIT_LOG: path, AUDIT_REQUIRED: 'true' }, ulimit: "-f 64; trap '' XFSZ" })
  const readiness = async () => await (await fetch(`${service.url}/readyz`)).json() as { readonly status: unknown, readonly detail?: string }
  const statusOf = async (path: string) => (await fetch(service.url + path)).status
  const isWritten = async () => await statusOf('/skills/demo') === 200
  // It listens before all skills have been read.
  await until(async () => (await readiness()).status === 'ready')
  while (await isWritten()) await new Promise((resolve) => setTimeout(resolve, 5))
  t.strictSame([await statusOf('/skills/demo'), await statusOf('/livez')], [503, 200])
  t.match(await readiness(), { status: 503, code: 'not_ready', detail: 'the audit log cannot be written, and AUDIT_REQUIRED refuses reads until it can' })
  renameSync(path, rotated)
  await until(isWritten)
  t.match(await readiness(), { status: 'ready' })
  t.match(await service.stop(), { code: 0 })
  const texts = [rotated, path].map((file) => readFileSync(file, 'utf8'))
  for (const text of texts) t.match(text, /\}\n$/)
  const lines = texts.join('').trim().split('\n')
  for (const [i, line] of lines.slice(1).entries()) t.equal((JSON.parse(line) as { readonly prev: string }).prev, createHash('sha256').update(lines[i] ?? '').digest('hex'))
})

t.test('K73: a process that ends on a full disk leaves whole lines', async (t) => {
  const folder = t.testdir({ skills: FILES })
  const path = join(folder, 'audit.log')
  const first = `${JSON.stringify({ text: 'x'.repeat(64 * 1_024 - 112) })}\n`
  writeFileSync(path, first)
  const service = await startProcess(t, { args: [join(folder, 'skills')], env: { AUDIT_LOG: path }, ulimit: "-f 64; trap '' XFSZ" })
  t.match(await service.stop(), { code: 0 })
  t.equal(readFileSync(path, 'utf8'), first, 'there was room for 100 bytes')
})

t.test('K73: a disk that hangs delays no request and no end', async (t) => {
  const folder = t.testdir({ skills: FILES })
  const fifo = join(folder, 'audit.fifo')
  t.equal(spawnSync('mkfifo', [fifo]).status, 0)
  // Holds the other end open and reads nothing: a write waits for ever once the pipe is full.
  const holder = await import('node:fs/promises').then(({ open }) => open(fifo, 'r+'))
  t.teardown(() => holder.close())
  const service = await startProcess(t, { args: [join(folder, 'skills')], env: { AUDIT_LOG: fifo } })
  const connection = await openRaw(service.url)
  t.teardown(() => { connection.destroy() })
  // A pipe has room for 64 KiB, and a line of a read has more than 400 bytes.
  for (let i = 0; i < 200; i++) t.equal((await connection.send(request('GET', '/skills/demo')).response()).status, 200)
  const { code, signal } = await service.stop()
  t.ok(code === 0 || signal === 'SIGKILL')
})

t.test('K73: AUDIT_LOG=stdout is among the log; it has refused callers, each state of the access file, and changes of skills', async (t) => {
  const token = newSecret('ci', 'groups: [all]')
  const policy = `tokens:\n  - ${token.entry}\nrules:\n  - { groups: [all] }\n`
  const folder = t.testdir({ skills: FILES, 'access.yaml': policy })
  const access = join(folder, 'access.yaml')
  const service = await startProcess(t, { args: [join(folder, 'skills')], env: { AUDIT_LOG: 'stdout', ACCESS_FILE: access } })
  const events = (event: string) => service.log().filter((line) => line['event'] === event)
  const read = async (headers = {}) => (await fetch(`${service.url}/skills/demo`, { headers })).status
  t.equal(await read({ authorization: `Bearer ${token.text}` }), 200)
  t.equal(await read({ authorization: 'Bearer sks_wrong' }), 401)
  t.equal(await read(), 401)
  saveAtomically(access, 'tokens: nonsense\n')
  await until(() => events('policy.rejected').length === 1)
  saveAtomically(access, `${policy}# Again\n`)
  saveAtomically(join(folder, 'skills', 'demo', 'SKILL.md'), '---\nname: demo\ndescription: Another\n---\n# Demo\n', join(folder, 'next'))
  await until(() => events('policy.loaded').length === 2 && events('skill.changed').length > 0)
  await service.stop()
  t.match(events('skill.read'), [{ outcome: 'success', principal: { kind: 'token', id: 'token:ci', name: 'ci', groups: ['anonymous', 'authenticated', 'all'] }, target: { skill: 'demo', root: 'skills' } }])
  t.match(events('auth.failed'), [
    { outcome: 'denied', principal: { kind: 'anonymous' }, door: 'rest', target: { skill: 'demo', code: 'invalid_token' } },
    { outcome: 'denied', target: { skill: 'demo', code: 'unauthenticated' } }
  ])
  t.match(events('policy.rejected'), [{ outcome: 'failure', target: { file: access, problem: /access\.yaml:1/ } }])
  t.match(events('policy.loaded')[0], { target: { file: access, digest: /^sha256:[\da-f]{64}$/ } })
  t.match(events('skill.changed'), [{ target: { skill: 'demo', change: 'changed' } }])
})

t.test('K73: a pipe that nobody reads is refused, and the start does not wait for a reader', async (t) => {
  const folder = t.testdir({ skills: FILES })
  const fifo = join(folder, 'audit.fifo')
  t.equal(spawnSync('mkfifo', [fifo]).status, 0)
  t.match(await runHere([join(folder, 'skills')], { env: { PORT: '0', AUDIT_LOG: fifo } }), {
    code: 1, stderr: /^skillserve: AUDIT_LOG must be a file that can be written, and \S+ cannot be opened \(ENXIO\)\n$/
  })
})

t.test('K73: a file among the skills stops the start, also through a link, since it would be served', async (t) => {
  const folder = t.testdir({ skills: FILES, link: t.fixture('symlink', 'skills/demo') })
  t.match(await runHere([join(folder, 'skills')], { env: { PORT: '0', AUDIT_LOG: join(folder, 'link/audit.log') } }), {
    code: 1, stderr: /^skillserve: AUDIT_LOG: "\S+audit\.log" is inside "\S+skills" of DIR or SKILLS_DIR, .+\n$/
  })
  t.notOk(existsSync(join(folder, 'skills/demo/audit.log')))
})
