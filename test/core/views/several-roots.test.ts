import { mkdirSync, renameSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { MAX_SKILL_BYTES } from '../../../src/core/shared/limits.ts'
import { createFaultyDisk, skill, skillText, skills, startManager, textOf } from '../../helper/skills.ts'

t.test('K5: a name that no skill can have becomes no path, in a root that has changed either', async (t) => {
  const dir = t.testdir({ root: skills('alpha'), secret: 'bytes' })
  const paths: string[] = []
  const manager = await startManager(t, [join(dir, 'root')], { disk: createFaultyDisk({ intercept: (_operation, path) => { paths.push(path) } }) })
  for (const [index, name] of ['../secret', '.hidden', 'al\0pha'].entries()) {
    mkdirSync(join(dir, `root/new-${index}`))
    await manager.find(name)
    t.match(await textOf(() => manager.readByDisplayName(name, (state) => state.mainFile())), /^skill_not_found/)
    t.notOk(paths.some((path) => path.endsWith(name)), JSON.stringify(name))
  }
})

t.test('K58: the revisions that are kept of a skill that moves between roots are each there once', async (t) => {
  const dir = t.testdir({ first: skills('alpha'), second: {} })
  const manager = await startManager(t, [join(dir, 'first'), join(dir, 'second')])
  const revisionNow = async () => (await manager.manifest('alpha')).revision
  const before = await revisionNow()
  renameSync(join(dir, 'first/alpha'), join(dir, 'second/alpha'))
  writeFileSync(join(dir, 'second/alpha/SKILL.md'), skillText('alpha', 'Other instructions.'))
  const after = await revisionNow()
  t.strictSame(new Set(manager.keptRevisions('alpha')), new Set([after, before]))
  renameSync(join(dir, 'second/alpha'), join(dir, 'first/alpha'))
  t.equal(await revisionNow(), after)
  t.strictSame(new Set(manager.keptRevisions('alpha')), new Set([after, before]))
})

t.test('K3: a manager without a root is not ready', async (t) => {
  const manager = await startManager(t, [])
  t.equal(manager.status.ready, false)
})

t.test('K59: what the present skill hides is not read from a revision that another root keeps', async (t) => {
  const dir = t.testdir({ first: { alpha: skill('alpha', { 'private.txt': 'secret' }), beta: skill('beta') }, second: {} })
  const manager = await startManager(t, [join(dir, 'first'), join(dir, 'second')])
  const { revision } = await manager.manifest('alpha')
  const read = () => textOf(() => manager.at(revision).readFile('alpha', 'private.txt'))
  renameSync(join(dir, 'first/alpha'), join(dir, 'second/alpha'))
  t.equal(await read(), 'secret', 'nothing is hidden')
  writeFileSync(join(dir, 'second/alpha/.skillignore'), 'private.txt\n')
  await manager.manifest('alpha')
  t.match(await read(), /^revision_changed/)
  t.match(await textOf(() => manager.at(revision).readMainFile('alpha', 'SKILL.md')), /^revision_changed/)
})

t.test('K59: a revision that a later root keeps is read while the skill that hides it has none', async (t) => {
  const dir = t.testdir({ first: {}, second: { alpha: skill('alpha', { 'data.txt': 'data' }) }, new: { alpha: skill('alpha') } })
  const manager = await startManager(t, [join(dir, 'first'), join(dir, 'second')])
  const { revision } = await manager.manifest('alpha')
  const read = (path: string, of = revision) => textOf(() => manager.at(of).readFile('alpha', path))
  writeFileSync(join(dir, 'new/alpha/large.bin'), '')
  truncateSync(join(dir, 'new/alpha/large.bin'), MAX_SKILL_BYTES + 1)
  renameSync(join(dir, 'new/alpha'), join(dir, 'first/alpha'))
  t.equal(await read('data.txt'), 'data')
  t.match(await read('nosuch.txt'), /^file_not_found/)
  t.match(await read('data.txt', `sha256:${'0'.repeat(64)}`), /^skill_too_large/)
})

t.test('K59: what the present skill hides is not read from a skill that it hides, and the revision that is named is its own', async (t) => {
  const dir = t.testdir({ first: {}, second: { alpha: skill('alpha', { 'private.txt': 'secret' }) }, new: { alpha: skill('alpha', { '.skillignore': 'private.txt\n' }) } })
  const manager = await startManager(t, [join(dir, 'first'), join(dir, 'second')])
  const { revision } = await manager.manifest('alpha')
  const read = () => textOf(() => manager.at(revision).readFile('alpha', 'private.txt'))
  renameSync(join(dir, 'new/alpha'), join(dir, 'first/alpha'))
  const present = (await manager.manifest('alpha')).revision
  t.equal(await read(), `revision_changed: The skill has changed: its revision is ${present} now`)
  writeFileSync(join(dir, 'second/alpha/other.txt'), 'other')
  t.equal(await read(), `revision_changed: The skill has changed: its revision is ${present} now`)
})
