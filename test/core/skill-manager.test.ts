import fs from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import type { SkillManager } from '../../src/core/skill-manager.ts'
import { codePoint } from '../helper/code-point.ts'
import {
  createFaultyDisk, createManager, failing, outcome, skill, skills, skillText, startManager, textOf
} from '../helper/skills.ts'
import { statusOf } from '../../src/http/readiness.ts'

async function document (manager: SkillManager, name: string) {
  return await manager.read(name, (skill) => skill.mainFile('SKILL.MD'))
}

t.test('K11 K12: every skill of every root by name, sorted by code point', async (t) => {
  const base = t.testdir({
    a: { ...skills('zebra', 'Alpha', '\u{1F600}'), 'without main file': {} },
    b: skills('alpha', '\uFFFD', 'zebra'),
    personal: skills('mine', 'alpha'),
    empty: {}
  })
  const manager = await startManager(t,
    [join(base, 'a'), join(base, 'b'), { path: join(base, 'personal'), type: 'personal' }])
  const names = await manager.list()
  t.strictSame(names, ['Alpha', 'alpha', 'mine', 'without main file', 'zebra', '\uFFFD', '\u{1F600}'])
  const empty = await startManager(t, [join(base, 'empty')])
  t.strictSame(await empty.list(), [])
})

t.test('K5: a name is compared exactly', async (t) => {
  const manager = await startManager(t,
    [t.testdir({ ...skills('demo', 'é', 'sp ace'), constructor: skill('constructor') })])
  for (const name of ['demo', 'é', 'sp ace', 'constructor']) t.equal((await manager.find(name))?.name, name)
  for (const name of ['Demo', 'DEMO', 'demo ', ' demo', 'e\u0301', 'sp%20ace', '.', '..', '', 'demo/', './demo',
    '__proto__', 'toString', 'demo\0', '\uD800', 'x'.repeat(5_000)]) {
    t.equal(await manager.find(name), undefined, JSON.stringify(name.slice(0, 20)))
  }
  await fc.assert(fc.asyncProperty(fc.string({ unit: codePoint }),
    async (name) => name === 'demo' || await manager.find(name) === undefined))
})

t.test('K6: casings of the main file, and who prefers which', async (t) => {
  const root = t.testdir({
    lower: { 'skill.md': 'lower' },
    odd: { 'sKiLl.Md': 'odd' },
    both: { 'SKILL.md': 'md', 'SKILL.MD': 'MD' },
    three: { 'Skill.md': 'Skill', 'skill.md': 'skill', 'SKILL.MD': 'MD' },
    none: { 'SKILLS.md': '', 'skill.md.txt': '', 'ſkill.md': '' },
    broken: { 'SKILL.MD': {}, 'SKILL.md': 'md' }
  })
  const manager = await startManager(t, [root])
  const read = async (name: string) => [
    await textOf(() => manager.read(name, (skill) => skill.mainFile('SKILL.MD'))),
    await textOf(() => manager.read(name, (skill) => skill.mainFile('SKILL.md'))),
    await textOf(() => manager.read(name, (skill) => skill.file('SKILL.MD'))),
    await textOf(() => manager.read(name, (skill) => skill.file('./SKILL.md'))),
    fs.readFileSync((await manager.find(name))?.metadata.path ?? '').toString()
  ]
  t.strictSame(await read('lower'), ['lower', 'lower', 'lower', 'lower', 'lower'])
  t.strictSame(await read('odd'), ['odd', 'odd', 'odd', 'odd', 'odd'])
  t.strictSame(await read('both'), ['MD', 'md', 'MD', 'md', 'md'])
  t.strictSame(await read('three'), ['MD', 'MD', 'MD', 'MD', 'MD'])
  t.equal(await textOf(() => document(manager, 'none')), "main_file_not_found: SKILL.MD not found for skill 'none'")
  t.equal(await textOf(() => document(manager, 'broken')), 'md', 'what is not a file is passed over')
  t.equal(await textOf(() => manager.read('lower', (skill) => skill.file('Skill.md'))),
    "file_not_found: File 'Skill.md' not found in skill 'lower'", 'only the two usual spellings fall back')
  t.equal(await textOf(() => manager.read('lower', (skill) => skill.file('docs/SKILL.md'))),
    "file_not_found: File 'docs/SKILL.md' not found in skill 'lower'", 'only at the top')
  t.match((await manager.find('both'))?.findings.map(({ code }) => code), ['main_file_ambiguous'])
  t.match((await manager.find('lower'))?.findings.map(({ code }) => code), ['main_file_casing'])
})

t.test('K7: the earlier root wins, a project root beats the personal one, the loser comes back', async (t) => {
  const version = (text: string) => ({ demo: { 'SKILL.md': skillText('demo', text) } })
  const base =
    t.testdir({ one: version('one'), two: version('two'), personal: { ...version('personal'), mine: skill('mine') } })
  const manager = await startManager(t,
    [join(base, 'one'), join(base, 'two'), { path: join(base, 'personal'), type: 'personal' }])
  const state = async () => {
    const found = await manager.find('demo')
    const body = (await manager.loadSkill('demo'))?.content.split('---\n').at(-1)
    return [body, found?.metadata.type, found?.findings.some(({ code }) => code === 'shadowed'), found?.valid]
  }
  t.strictSame(await state(), ['one', 'project', true, true])
  t.strictSame(await manager.list(), ['demo', 'mine'])
  fs.renameSync(join(base, 'one/demo'), join(base, 'aside'))
  t.strictSame(await state(), ['two', 'project', true, true])
  fs.rmSync(join(base, 'two'), { recursive: true })
  t.strictSame(await state(), ['personal', 'personal', false, true])
  fs.renameSync(join(base, 'aside'), join(base, 'one/demo'))
  t.strictSame(await state(), ['one', 'project', true, true])
  fs.rmSync(join(base, 'personal/demo'), { recursive: true })
  await manager.list()
  t.strictSame(await state(), ['one', 'project', false, true], 'nothing is hidden any more')
  t.equal((await manager.find('mine'))?.metadata.type, 'personal')
})

t.test('K14: a root that may not be read, beside one that is missing and one that is there', async (t) => {
  const base = t.testdir({ root: skills('demo'), good: skills('good') })
  const disk = createFaultyDisk()
  const [root, good, missing] = [join(base, 'root'), join(base, 'good'), join(base, 'missing')]
  disk.intercept = failing('readdir', '/root', 'EACCES')
  const alone = await startManager(t, [root], { disk })
  t.equal(await outcome(() => alone.list()), 'SkillError: Permission denied reading skills folder')
  const both = await startManager(t, [missing, root], { disk })
  t.equal(await outcome(() => both.list()), 'SkillError: Permission denied reading skills folder')
  const one = await startManager(t, [missing, root, good], { disk })
  t.strictSame(await one.list(), ['good'])
  t.equal(await outcome(() => document(one, 'demo')), "SkillError: Skill 'demo' not found in skills folder")
  disk.intercept = () => {}
  t.strictSame(await alone.list(), ['demo'])
  const none = createManager(t, [])
  t.equal(await outcome(() => none.list()), 'SkillError: Skills folder not found at path: ')
})

t.test('K33: the interfaces of the seeds', async (t) => {
  const base =
    t.testdir({ root: { good: skill('good'), bad: { 'SKILL.md': 'text' }, none: {} }, personal: skills('mine') })
  const manager = createManager(t, [join(base, 'root'), { path: join(base, 'personal'), type: 'personal' }])
  await manager.initialize()
  const path = join(base, 'root/good')
  const metadata = {
    name: 'good', description: 'What good is for', type: 'project', skillPath: path, path: join(path, 'SKILL.md')
  }
  t.strictSame(manager.getAvailableSkills()[0], metadata)
  t.strictSame(manager.getAvailableSkills().map(({ name, type }) => `${name} ${type}`),
    ['good project', 'mine personal'])
  t.strictSame(manager.getSkills().map(({ name }) => name), ['bad', 'good', 'mine'])
  t.strictSame(await manager.available(), manager.getAvailableSkills())
  t.strictSame(manager.availableIndexed(), manager.getAvailableSkills())
  t.match(await manager.loadSkill('good'), { name: 'good', metadata, valid: true, content: skillText('good') })
  t.equal(await manager.readSkillBody(metadata), 'Instructions of good.\n')
  t.match(await manager.loadSkill('bad'), { valid: false, content: 'text' })
  t.equal(await manager.loadSkill('nothing'), null)
  t.equal(await manager.loadSkill('../root/good'), null)
  t.equal(await outcome(() => manager.loadSkill('none')), "SkillError: SKILL.MD not found for skill 'none'")
  await manager.initialize()
  manager.getAvailableSkills().length = 0
  t.equal(manager.getAvailableSkills().length, 2, 'what a caller does to the list is its own')
})

t.test('K50: ready as soon as the first index is complete and a root is there', async (t) => {
  const root = t.testdir(skills('a', 'b'))
  const disk = createFaultyDisk()
  let open = () => {}
  const gate = new Promise<void>((resolve) => { open = resolve })
  disk.intercept = (operation) => operation === 'open' ? gate : undefined
  const manager = createManager(t, [root], { disk })
  await manager.start()
  t.strictSame(await manager.list(), ['a', 'b'], 'the list does not wait for the index')
  t.match(statusOf(manager), { ready: false, indexed: false, skills: 2 })
  t.same(manager.availableIndexed(), [])
  const available = manager.available()
  open()
  t.equal((await available).length, 2)
  t.match(statusOf(manager), { ready: true, indexed: true })
})
