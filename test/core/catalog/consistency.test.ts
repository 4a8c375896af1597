import fs from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { createNetworkDisk } from '../../../src/core/read/disk.ts'
import { createFaultyDisk, failing, findByDisplayName, osError, outcome, skills, skillText, startManager, until } from '../../helper/skills.ts'

const HOUR_MS = 3_600_000

t.test('K53: a scan that fails keeps what was there, says so once, and heals', async (t) => {
  const base = t.testdir({ root: skills('a', 'b') })
  const root = join(base, 'root')
  const disk = createFaultyDisk()
  const warnings: Array<readonly [object, string]> = []
  const log = { info () {}, warn: (details: object, message: string) => { warnings.push([details, message]) } }
  const manager = await startManager(t, [root], { disk, log })
  disk.intercept = failing('readdir', '/root', 'EIO')
  fs.mkdirSync(join(root, 'c'))
  for (let question = 0; question < 10; question++) t.strictSame(await manager.list(), ['a', 'b'])
  t.equal((await manager.read('a', (skill) => skill.mainFile('SKILL.md'))).utf8, skillText('a'))
  t.match(await manager.freshStatus(), { ready: true, failures: ['EIO'], roots: [{ state: 'failed', skills: 2 }] })
  t.equal(warnings.length, 1, 'told once')
  t.match(warnings, [[{ root, err: { code: 'EIO' } }, /could not be listed/]])
  disk.intercept = failing('readdir', '/root', 'EMFILE')
  await manager.list()
  t.equal(warnings.length, 2, 'another failure is news')
  disk.intercept = () => {}
  t.strictSame(await manager.list(), ['a', 'b', 'c'])
  t.match(await manager.freshStatus(), { failures: [], roots: [{ state: 'ok' }] })
})

t.test('K53: a disk that fails under the skills takes none of them out of the catalog', async (t) => {
  const base = t.testdir({ root: skills('a', 'b') })
  const disk = createFaultyDisk({ ageMs: -HOUR_MS })
  const manager = await startManager(t, [join(base, 'root')], { disk })
  for (const operation of ['stat', 'realpath', 'readdir', 'open', 'read'] as const) {
    disk.intercept = (asked, path) => { if (asked === operation && !path.endsWith('/root')) throw osError('EIO') }
    t.match((await manager.find('a'))?.findings, [{ code: 'main_file_unreadable' }], 'who asks is told')
    t.equal((await findByDisplayName(manager, 'nothing')), undefined)
    t.strictSame(manager.getAvailableSkills().map(({ name }) => name), ['a', 'b'], operation)
  }
  disk.intercept = () => {}
  t.match(await manager.find('a'), { valid: true, findings: [] })
})

for (const [kind, createDisk, count] of [['local', () => undefined, 60], ['network', createNetworkDisk, 20]] as const) {
  t.test(`K53: readers during the exchange of ${count} skills on a ${kind} disk see all of one state, never an empty catalog`, async (t) => {
    const base = t.testdir({ v1: {}, v2: {}, root: t.fixture('symlink', 'v1') })
    for (const version of ['v1', 'v2']) {
      for (let index = 0; index < count; index++) {
        fs.mkdirSync(join(base, version, `${version}-${index}`))
        fs.writeFileSync(join(base, version, `${version}-${index}`, 'SKILL.md'), skillText(`${version}-${index}`))
      }
      fs.mkdirSync(join(base, version, 'same'))
      fs.writeFileSync(join(base, version, 'same/SKILL.md'), skillText('same', version))
    }
    const disk = createDisk()
    const manager = await startManager(t, [join(base, 'root')], { tickMs: 50, ...disk && { disk } })
    const seen = new Set<readonly string[]>()
    const end = new AbortController()
    const readers = Array.from({ length: 2 }, async () => {
      while (!end.signal.aborted) {
        seen.add(await manager.list())
        if (!manager.getAvailableSkills().some(({ name }) => name === 'same')) t.fail('a skill of both versions is gone')
        const body = (await manager.loadSkill('same'))?.content.split('---\n').at(-1)
        if (body !== 'v1' && body !== 'v2') t.fail(`a document of neither version: ${body}`)
        await nextTurn()
      }
    })
    for (const version of ['v2', 'v1']) {
      fs.symlinkSync(version, join(base, 'tmp'))
      fs.renameSync(join(base, 'tmp'), join(base, 'root'))
      await manager.list()
      await until(() => manager.getAvailableSkills().length === count + 1)
    }
    end.abort()
    await Promise.all(readers)
    t.strictSame(new Set([...seen].map((names) => names.join())), new Set(['v1', 'v2'].map((version) => fs.readdirSync(join(base, version)).sort().join())))
  })
}

t.test('K53: a skill is given with the content that its metadata was read from', async (t) => {
  const base = t.testdir({ root: skills('demo') })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [join(base, 'root')], { disk })
  for (let moment = 1; ; moment++) {
    fs.writeFileSync(join(base, 'root/demo/SKILL.md'), skillText('demo'))
    let operations = 0
    disk.intercept = () => { if (++operations === moment) fs.writeFileSync(join(base, 'root/demo/SKILL.md'), skillText('changed')) }
    const loaded = await manager.loadSkill('demo')
    if (!loaded?.content.includes(`name: ${loaded.metadata.name}`)) t.fail(`a mixture when changed before operation ${moment}`)
    if (operations < moment) break
  }
  let edits = 0
  const edit = () => { fs.writeFileSync(join(base, 'root/demo/SKILL.md'), skillText('demo', 'x'.repeat(++edits % 2))) }
  disk.intercept = (operation) => { if (operation === 'fstat') edit() }
  // What was read long enough ago is not read again.
  edit()
  t.equal(await outcome(() => manager.loadSkill('demo')), "SkillError: Error reading SKILL.MD for skill 'demo'", 'one that never holds still')
})
