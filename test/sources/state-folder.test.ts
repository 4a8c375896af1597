import { mkdirSync, readdirSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { tarGzOf } from '../helper/archives.ts'
import { startServer } from '../helper/fault-server.ts'
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
