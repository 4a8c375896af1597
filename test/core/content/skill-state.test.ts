import fs from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createFaultyDisk, outcome, skill, skillText, startManager } from '../../helper/skills.ts'

const HOUR_MS = 3_600_000

t.test('K53: entry, manifest, main file and files that are read through one state agree, whenever a file changes', async (t) => {
  const base = t.testdir({ demo: skill('demo', { docs: { 'a.md': 'one' } }) })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [base], { disk })
  for (let moment = 1; ; moment++) {
    fs.writeFileSync(join(base, 'demo/SKILL.md'), skillText('demo', 'one'))
    fs.writeFileSync(join(base, 'demo/docs/a.md'), 'one')
    let operations = 0
    disk.intercept = () => {
      if (++operations !== moment) return
      fs.writeFileSync(join(base, 'demo/SKILL.md'), skillText('demo', 'two'))
      fs.writeFileSync(join(base, 'demo/docs/a.md'), 'two')
    }
    const { skill, manifest, main, file } = await manager.read('demo', async (state) => {
      const main = await state.mainFile()
      const manifest = await state.manifest()
      return { skill: state.skill, main, manifest, file: await state.file('docs/a.md') }
    })
    const digestOf = (path: string) => manifest.files.find((each) => each.path === path)?.digest
    t.same([skill.digest, main.digest, file.digest], [digestOf('SKILL.md'), digestOf('SKILL.md'), digestOf('docs/a.md')], `changed before operation ${moment}`)
    t.equal(main.utf8?.includes(file.utf8 ?? '-'), true, `changed before operation ${moment}`)
    if (operations < moment) break
  }
})

t.test('K48: a skill of which no state holds is unavailable for now, after a bounded wait', async (t) => {
  const base = t.testdir({ demo: skill('demo', { a: 'a' }) })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [base], { disk })
  let writes = 0
  disk.intercept = (operation) => { if (operation === 'close') fs.writeFileSync(join(base, 'demo/a'), 'a'.repeat(++writes % 100)) }
  const start = performance.now()
  await t.rejects(manager.manifest('demo'), { code: 'skill_changing', message: "Skill 'demo' changed while it was read" })
  t.ok(performance.now() - start < 20_000)
  disk.intercept = () => {}
  t.match(await manager.manifest('demo'), { skill_name: 'demo' })
})

t.test('K53: a main file that is replaced by rename again and again is read whole, with its own metadata, or is changing', async (t) => {
  const base = t.testdir({ demo: skill('demo') })
  const disk = createFaultyDisk()
  const manager = await startManager(t, [base], { disk })
  let version = 0
  const replace = (): void => {
    fs.writeFileSync(join(base, 'new'), `---\nname: demo\ndescription: v${++version}\n---\nv${version}`)
    fs.renameSync(join(base, 'new'), join(base, 'demo/SKILL.md'))
  }
  disk.intercept = (operation) => { if (operation === 'stat') replace() }
  for (let count = 0; count < 50; count++) {
    try {
      const { description, body } = await manager.readByDisplayName('demo', async (state) => ({
        description: state.skill.metadata.description, body: (await state.mainFile()).utf8?.split('\n').at(-1)
      }))
      t.equal(description, body)
    } catch (error) {
      t.match(error, { code: 'skill_changing' })
    }
  }
})

t.test('K58: what is asked in a revision is of one state, however many parts the answer has', async (t) => {
  const base = t.testdir({ demo: skill('demo', { 'a.md': 'a' }) })
  const disk = createFaultyDisk({ ageMs: -HOUR_MS })
  const manager = await startManager(t, [base], { disk })
  const at = manager.at('current')
  t.equal((await at.readMainFile('demo', 'SKILL.MD')).utf8, skillText('demo'))
  t.equal(at.revisionOf('demo'), (await manager.manifest('demo')).revision)
})

t.test('K58: a revision that the skill never had is refused, and the present one is named', async (t) => {
  const manager = await startManager(t, [t.testdir({ demo: skill('demo') })])
  const { revision } = await manager.manifest('demo')
  const wrong = `sha256:${'0'.repeat(64)}`
  for (const ask of [
    () => manager.at(wrong).readMainFile('demo', 'SKILL.md'), () => manager.at(wrong).readFile('demo', 'SKILL.md'), () => manager.at(wrong).openFile('demo', 'SKILL.md'),
    () => manager.at(wrong).manifest('demo'), () => manager.at(wrong).archive('demo'), () => manager.at(wrong).find('demo'),
    () => manager.at(wrong).readByDisplayName('demo', async () => {})
  ]) {
    t.equal(await outcome(ask), `SkillError: The skill has changed: its revision is ${revision} now`)
  }
  t.equal(await outcome(() => manager.at(wrong).readMainFile('nope', 'SKILL.md')), "SkillError: Skill 'nope' not found in skills folder")
  t.equal(await manager.at(wrong).find('nope'), undefined)
})
