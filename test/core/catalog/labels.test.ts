import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createFaultyDisk, findByDisplayName, skill, skills, skillText, startManager } from '../../helper/skills.ts'

const HOUR_MS = 3_600_000
const SKILLS = 100

t.test('K29 K51: a label that nobody has costs one stat for each skill, and one that was just taken is found', async (t) => {
  const root = t.testdir({ ...skills(...Array.from({ length: SKILLS }, (_, index) => `skill-${index}`)), folder: skill('label') })
  const disk = createFaultyDisk({ ageMs: HOUR_MS })
  const manager = await startManager(t, [root], { disk, watcher: false })
  let stats = 0
  disk.intercept = (operation) => { if (operation === 'stat') stats++ }
  t.equal(await findByDisplayName(manager, 'nobody'), undefined)
  t.ok(stats >= SKILLS && stats < 1.2 * SKILLS, `${stats} stats`)
  fs.writeFileSync(join(root, 'skill-7/SKILL.md'), skillText('nobody'))
  t.equal((await findByDisplayName(manager, 'nobody'))?.name, 'skill-7')
  fs.writeFileSync(join(root, 'skill-8/skill.md'), skillText('lower'))
  fs.rmSync(join(root, 'skill-8/SKILL.md'))
  t.equal((await findByDisplayName(manager, 'lower'))?.name, 'skill-8', 'another main file')
  fs.writeFileSync(join(root, 'skill-8/SKILL.md'), skillText('upper'))
  t.equal((await findByDisplayName(manager, 'upper'))?.name, 'skill-8', 'one that is preferred')
})

t.test('K29 K51: a label is found in a skill that has just come, beside a folder of that name and behind a link', async (t) => {
  const base = t.testdir({ skills: { taken: skill('other'), linked: t.fixture('symlink', '../elsewhere/late') }, elsewhere: {} })
  const disk = createFaultyDisk({ ageMs: HOUR_MS })
  const manager = await startManager(t, [join(base, 'skills')], { disk, watcher: false, linkTargets: [join(base, 'elsewhere')] })
  t.equal((await findByDisplayName(manager, 'taken'))?.name, 'taken', 'the folder, while no skill has the label')
  fs.mkdirSync(join(base, 'skills/fresh'))
  fs.writeFileSync(join(base, 'skills/fresh/SKILL.md'), skillText('taken'))
  t.equal((await findByDisplayName(manager, 'taken'))?.name, 'fresh')
  t.equal(await findByDisplayName(manager, 'late'), undefined)
  fs.mkdirSync(join(base, 'elsewhere/late'))
  fs.writeFileSync(join(base, 'elsewhere/late/SKILL.md'), skillText('late'))
  t.equal((await findByDisplayName(manager, 'late'))?.name, 'linked', 'the root itself has not changed')
})

t.test('K29: questions at the same time for labels that nobody has share two comparisons at most', async (t) => {
  const root = t.testdir(skills(...Array.from({ length: SKILLS }, (_, index) => `skill-${index}`)))
  const disk = createFaultyDisk({ ageMs: HOUR_MS })
  const manager = await startManager(t, [root], { disk, watcher: false })
  let stats = 0
  disk.intercept = (operation, _path, file) => { if (operation === 'stat' && file.includes('/skill-')) stats++ }
  await Promise.all(Array.from({ length: 50 }, (_, index) => findByDisplayName(manager, `nobody-${index}`)))
  t.ok(stats >= SKILLS && stats <= 2 * SKILLS, `${stats} stats`)
})
