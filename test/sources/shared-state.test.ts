import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { createRepository, skillFiles } from '../helper/git.ts'
import { launch, runProcess, startProcess } from '../helper/process.ts'
import { openSources, sourceAt } from '../helper/sources.ts'
import { skillText, until } from '../helper/skills.ts'

const LOCK_MODULE = fileURLToPath(new URL('../../dist/sources/publish/folder-lock.js', import.meta.url))
const DEAD = JSON.stringify({ pid: 2 ** 30, host: hostname(), id: 'dead' })

/** Takes the lock of each folder that a line names, and says whether it did. */
const CONTENDER = `
  import { createInterface } from 'node:readline'
  const { FolderLock } = await import(process.argv[1])
  console.log('ready')
  for await (const folder of createInterface({ input: process.stdin })) {
    console.log(await new FolderLock(folder).acquire() === undefined ? 'owner' : 'other')
  }`

t.test('K83: of three processes that find the lock of a dead one, one becomes the owner, sixty times', async (t) => {
  const contenders = Array.from({ length: 3 }, () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', CONTENDER, LOCK_MODULE], {
      stdio: ['pipe', 'pipe', 'inherit']
    })
    t.teardown(() => { child.kill('SIGKILL') })
    return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() }
  })
  for (const { lines } of contenders) await lines.next()
  const owners: number[] = []
  for (let round = 0; round < 60; round++) {
    const folder = join(t.testdirName, String(round))
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'lock'), DEAD)
    // A process that ended while it took the lock over is taken over itself.
    if (round % 3 === 0) writeFileSync(join(folder, 'lock.after-dead'), DEAD.replace('"dead"', '"dead-too"'))
    for (const { child } of contenders) child.stdin.write(`${folder}\n`)
    const said = await Promise.all(contenders.map(async ({ lines }) => String((await lines.next()).value)))
    owners.push(said.filter((word) => word === 'owner').length)
    t.strictSame(readdirSync(folder), ['lock'], 'nothing else is left')
  }
  t.strictSame(owners, Array.from({ length: 60 }, () => 1))
})

/** A source of one skill in a state folder of its own. */
function startSource (t: Test) {
  const repository = createRepository(t, 'team')
  repository.commit(skillFiles('a'))
  const stateDir = join(t.testdirName, 'state')
  const config = join(t.testdirName, 'config.yaml')
  const team = { git: `git+file://${repository.path}`, name: 'team', interval: '10s' }
  const configure = (more: object = {}): void => {
    writeFileSync(config, JSON.stringify({ sources: [{ ...team, ...more }] }))
  }
  configure()
  const commit = (text: string): void => { repository.commit({ 'skills/a/SKILL.md': skillText('a', `${text}\n`) }) }
  const folder = (): string => join(stateDir, 'sources', readdirSync(join(stateDir, 'sources'))[0] ?? '')
  return {
    repository, stateDir, config, configure, commit, folder, args: ['--state-dir', stateDir, '--config', config]
  }
}

async function textAt (url: string): Promise<string> {
  const answer = await fetch(`${url}/skills/a`)
  return answer.ok ? ((await answer.json()) as { readonly documentation: string }).documentation : String(answer.status)
}

t.test('K83 K88: processes share a state folder: one fetches, others serve its states, and take over', async (t) => {
  const { args, commit, stateDir } = startSource(t)
  const first = await startProcess(t, { args })
  await until(async () => (await fetch(`${first.url}/readyz`)).status === 200)
  const second = await startProcess(t, { args })
  await second.printed('another process fetches this source')
  await until(async () => (await fetch(`${second.url}/readyz`)).status === 200)
  for (const command of [['sync'], ['lock', '--out', join(stateDir, 'skills.lock')]]) {
    t.match(await runProcess(t, { args: [...command, ...args] }), { code: 0, stderr: '' }, command.join(' '))
  }
  commit('Second.')
  first.signal('SIGHUP')
  await until(async () => /Second/.test(await textAt(second.url)))

  await first.stop('SIGKILL')
  await second.printed('this process fetches this source from now on')
  commit('Third.')
  second.signal('SIGHUP')
  await until(async () => /Third/.test(await textAt(second.url)))
  t.match(await second.stop(), { code: 0, stderr: '' })
})

t.test('K83: a process that was suspended notices that another one fetches, and says so', async (t) => {
  const { args, commit, folder } = startSource(t)
  const first = await startProcess(t, { args })
  await until(async () => (await fetch(`${first.url}/readyz`)).status === 200)
  first.signal('SIGSTOP')
  // As after a minute without a heartbeat.
  const past = new Date(Date.now() - 120_000)
  utimesSync(join(folder(), 'lock'), past, past)
  const second = await startProcess(t, { args })
  await until(() => JSON.parse(readFileSync(join(folder(), 'lock'), 'utf8')).pid === second.pid)
  first.signal('SIGCONT')
  first.signal('SIGHUP')
  await first.printed('another process took over this source while this process was suspended')
  commit('Second.')
  second.signal('SIGHUP')
  await until(async () => /Second/.test(await textAt(first.url)))
  t.equal(JSON.parse(readFileSync(join(folder(), 'lock'), 'utf8')).pid, second.pid)
})

t.test('K85 K89: a source that was edited serves its last state, after a reload and after a restart', async (t) => {
  const { args, configure } = startSource(t)
  const first = await startProcess(t, { args })
  await until(async () => (await fetch(`${first.url}/readyz`)).status === 200)
  configure({ ref: 'missing' })
  first.signal('SIGHUP')
  await first.printed('SIGHUP: done')
  const stateAt = async (url: string) => {
    const answer = await fetch(`${url}/readyz`)
    return { code: answer.status, ...await answer.json() as object }
  }
  t.match(await stateAt(first.url), { code: 200, sources: [{ state: 'stale', skills: 1 }] })
  t.match(await textAt(first.url), /name: a/)
  await first.stop()
  const second = await startProcess(t, { args })
  t.match(await textAt(second.url), /name: a/)
  t.match(await stateAt(second.url), { code: 200, sources: [{ state: 'stale', skills: 1 }] })
  configure({ path: 'skills' })
  second.signal('SIGHUP')
  await until(async () => /"state":"ok"/.test(JSON.stringify(await stateAt(second.url))))
})

t.test('K83: a state that cannot be read is as if it were not there, with one warning', async (t) => {
  const repository = createRepository(t)
  repository.commit(skillFiles('a'))
  const source = sourceAt(`git+file://${repository.path}`)
  const { stateDir, sources } = await openSources(t, [source])
  await sources.close()
  const [folder = ''] = readdirSync(join(stateDir, 'sources'))
  for (const text of ['null', '{}', '[]', '{"skills":{"a":5}}', '{"version":2,"skills":{}}', '{',
    '{"version":1,"skills":{"a":"../../a"}}']) {
    writeFileSync(join(stateDir, 'sources', folder, 'skills.json'), text)
    const { status, log, sources } = await openSources(t, [source], { stateDir })
    t.match(status(), { state: 'ok', skills: 1 }, text)
    t.equal(log.filter(({ message }) => message.includes('in the state folder is damaged')).length, 1, text)
    await sources.close()
  }
})

t.test('K83: what nobody has used for a week is removed; config opens and writes nothing', async (t) => {
  const { args, stateDir, folder } = startSource(t)
  t.match(await runProcess(t, { args: ['config', ...args] }), { code: 0, stderr: '' })
  t.notOk(existsSync(stateDir))
  t.match(await runProcess(t, { args: ['sync', ...args] }), { code: 0 })
  const used = folder()
  const past = new Date(Date.now() - 8 * 24 * 3_600_000)
  for (const name of ['old', 'locked']) mkdirSync(join(stateDir, 'sources', name))
  writeFileSync(join(stateDir, 'sources/locked/lock'), JSON.stringify({ pid: process.pid, host: hostname(), id: 'x' }))
  for (const name of ['old', 'locked']) utimesSync(join(stateDir, 'sources', name), past, past)
  t.match(await runProcess(t, { args: ['sync', ...args] }), { code: 0 })
  t.notOk(existsSync(join(stateDir, 'sources/old')))
  t.ok(existsSync(join(stateDir, 'sources/locked')) && statSync(used).isDirectory())
})

t.test('K89 K91: SIGHUP and a closed terminal end every command but serve; SIGTERM of serve is ' +
  'exit 0 at once', async (t) => {
  const { args, stateDir } = startSource(t)
  const skills = join(t.testdirName, 'skills')
  mkdirSync(join(skills, 'a'), { recursive: true })
  writeFileSync(join(skills, 'a/SKILL.md'), skillText('a'))
  const commands: Readonly<Record<string, { args: readonly string[], line: string, end: object }>> = {
    dev: { args: ['dev', '--no-open', skills], line: 'Preview at', end: { code: 0, signal: null } },
    validate: { args: ['validate', '--watch', skills], line: 'skill', end: { code: 129, signal: null } }
  }
  for (const [name, { args, line, end }] of Object.entries(commands)) {
    const running = launch(t, { args })
    await running.printed(line)
    process.kill(running.pid, 'SIGHUP')
    t.match(await running.ended, end, name)
  }
  const host =
    spawn(process.execPath, [fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url)), 'mcp', ...args])
  t.teardown(() => { host.kill('SIGKILL') })
  const locks = () => existsSync(join(stateDir, 'sources')) &&
    readdirSync(join(stateDir, 'sources')).some((name) => existsSync(join(stateDir, 'sources', name, 'lock')))
  await until(locks)
  host.kill('SIGHUP')
  t.match(await once(host, 'close'), [129, null])
  t.notOk(locks(), 'the lock is free')

  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    // Right after the first module has been loaded.
    const starting = launch(t, {
      args: ['serve', skills],
      nodeOptions: ['--import', `data:text/javascript,setTimeout(()=>process.kill(process.pid,'${name}'),60)`]
    })
    t.match(await starting.ended, { code: 0, signal: null }, name)
  }
})
