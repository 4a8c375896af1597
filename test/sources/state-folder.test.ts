import { cpSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { tarGzOf } from '../helper/archives.ts'
import { startServer } from '../helper/fault-server.ts'
import { createRepository, skillFiles } from '../helper/git.ts'
import { runProcess } from '../helper/process.ts'
import { skillText } from '../helper/skills.ts'
import { openSources, sourceAt } from '../helper/sources.ts'

const DAY_MS = 86_400_000

t.test('K83: the folder of a source that no start has named for a month is removed, and no other one', async (t) => {
  const body = await tarGzOf([['a/SKILL.md', skillText('a')]])
  const server = await startServer(t, (_, response) => { response.end(body) })
  const stateDir = join(t.testdir(), 'state')
  const open = async (...names: readonly string[]): Promise<string[]> => {
    const { sources } = await openSources(t, names.map((name) => sourceAt(`${server.url}/${name}.tgz`, { name })), { stateDir })
    await sources.close()
    return readdirSync(join(stateDir, 'sources')).map((name) => name.replace(/-[^-]*$/, '')).sort()
  }
  const age = (days: number, ...names: readonly string[]): void => {
    const at = new Date(Date.now() - days * DAY_MS)
    for (const name of readdirSync(join(stateDir, 'sources'))) if (names.some((each) => name.startsWith(each))) utimesSync(join(stateDir, 'sources', name), at, at)
  }
  t.strictSame(await open('kept', 'recent', 'gone'), ['gone', 'kept', 'recent'])
  const others = ['own-0123456789ab', 'mine']
  for (const name of others) mkdirSync(join(stateDir, 'sources', name, 'notes'), { recursive: true })
  age(31, 'kept', 'gone', ...others)
  age(29, 'recent')
  t.strictSame(await open('kept'), ['kept', 'mine', 'own', 'recent'])
  t.strictSame(await open('recent'), ['kept', 'mine', 'own', 'recent'], 'a start with it counts as use')
})

t.test('K83: what cannot be read among them keeps none of the others, and the copy of a repository goes like the rest', async (t) => {
  const repository = createRepository(t, 'kept')
  repository.commit(skillFiles('a'))
  cpSync(repository.path, join(t.testdirName, 'gone'), { recursive: true })
  const kept = sourceAt(`git+file://${repository.path}`)
  const gone = sourceAt(`git+file://${join(t.testdirName, 'gone')}`)
  const first = await openSources(t, [kept, gone])
  await first.sources.close()
  const { stateDir } = first
  const at = new Date(Date.now() - 31 * DAY_MS)
  // Listed before all others, and no folder.
  writeFileSync(join(stateDir, 'sources', '-0123456789ab'), '')
  for (const name of readdirSync(join(stateDir, 'sources'))) utimesSync(join(stateDir, 'sources', name), at, at)
  const { sources, log } = await openSources(t, [kept], { stateDir })
  await sources.close()
  t.strictSame(readdirSync(join(stateDir, 'sources')).map((name) => name.replace(/-[^-]*$/, '')).sort(), ['', 'kept'])
  t.strictSame(log.filter(({ level }) => level === 'warn'), [])
})

t.test('K85: a disk that is full at one start leaves no lock for the next', async (t) => {
  const cwd = t.testdir({ state: {} })
  const repository = createRepository(t, 'full')
  repository.commit(skillFiles('a'))
  const args = ['sync', '--state-dir', join(cwd, 'state'), `git+file://${repository.path}`]
  t.match(await runProcess(t, { args, ulimit: '-f 0' }), { code: 1, stderr: /cannot be written \(EFBIG/ })
  t.strictSame(readdirSync(join(cwd, 'state')), [])
})
