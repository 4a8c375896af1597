import { mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createFaultyDisk, skill, skillText, startManager, textOf } from '../../helper/skills.ts'

const HOUR_MS = 3_600_000

t.test('K51: a root whose place is a link to it now gives the files of its skills, and links in them', async (t) => {
  for (const [moved, to, isKnown] of [['data/root', 'data/elsewhere', false], ['data', 'disk', false], ['data', 'disk', true]] as const) {
    const dir = t.testdir({ data: { root: { alpha: skill('alpha', { 'notes.txt': 'notes', sub: {}, 'link.md': t.fixture('symlink', 'SKILL.md') }) } } })
    const manager = await startManager(t, [join(dir, 'data/root')], { disk: createFaultyDisk({ ageMs: HOUR_MS }) })
    // The next manifest opens no file whose digest is known, but links.
    if (isKnown) await manager.manifest('alpha')
    mkdirSync(join(dir, 'data/root/alpha/sub/new'))
    renameSync(join(dir, moved), join(dir, to))
    symlinkSync(join(dir, to), join(dir, moved))
    t.strictSame((await manager.manifest('alpha')).files.map(({ path }) => path), ['SKILL.md', 'link.md', 'notes.txt'], moved)
    t.equal(await textOf(() => manager.readFile('alpha', 'notes.txt')), 'notes', moved)
  }
  const dir = t.testdir({ data: { root: { alpha: skill('alpha', { 'notes.txt': 'notes' }) } } })
  const manager = await startManager(t, [join(dir, 'data/root')], { disk: createFaultyDisk({ ageMs: HOUR_MS }) })
  mkdirSync(join(dir, 'disk'))
  renameSync(join(dir, 'data'), join(dir, 'disk/data'))
  symlinkSync('disk/data', join(dir, 'data'))
  t.equal(await textOf(() => manager.readFile('alpha', 'notes.txt')), 'notes')
  t.equal(await textOf(() => manager.readMainFile('alpha', 'SKILL.md')), skillText('alpha'))
})
