import fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { SkillManager, SkillManagerOptions } from '../../../src/core/skill-manager.ts'
import { skill, startManager, textOf } from '../../helper/skills.ts'
import { writeSkill } from '../../helper/watched-index.ts'

async function start (t: Test, keep: SkillManagerOptions['keep'], files: Record<string, string> = { 'a.txt': 'one' }) {
  const root = t.testdir({ demo: skill('demo', files), other: skill('other') })
  const manager = await startManager(t, [root], { keep: keep ?? {} })
  return { root, manager, edit: (text: string) => { fs.writeFileSync(join(root, 'demo/a.txt'), text) } }
}

async function revisionOf (manager: SkillManager, name = 'demo'): Promise<string> {
  return (await manager.manifest(name)).revision
}

function textAt (manager: SkillManager, revision: string): Promise<unknown> {
  return textOf(() => manager.at(revision).readFile('demo', 'a.txt'))
}

t.test('K59: a revision that was handed out stays readable, whole, after the skill has moved on or is gone', async (t) => {
  const { root, manager, edit } = await start(t, {})
  const first = await revisionOf(manager)
  edit('two')
  const second = await revisionOf(manager)
  edit('three')
  t.equal(await textAt(manager, first), 'one')
  t.equal(await textAt(manager, second), 'two')
  t.equal((await manager.at(first).manifest('demo')).revision, first)
  t.same((await manager.at(first).archive('demo')).revision, first)
  t.strictSame(manager.keptRevisions('demo').slice(-2).length, 2)
  fs.rmSync(join(root, 'demo'), { recursive: true })
  t.equal(await textAt(manager, first), 'one', 'of a skill that is gone')
  t.match(await textOf(() => manager.readFile('demo', 'a.txt')), /not_found/)
})

t.test('K58 K59: a revision that nobody was given is revision_changed, and names the present one, which is kept from then on', async (t) => {
  const { manager, edit } = await start(t, {})
  const stranger = `sha256:${'0'.repeat(64)}`
  const present = await revisionOf(manager)
  t.match(await textAt(manager, stranger), `revision_changed: The skill has changed: its revision is ${present} now`)
  edit('two')
  t.equal(await textAt(manager, present), 'one')
})

t.test('K59: its time counts from the last use', async (t) => {
  let now = performance.now()
  t.intercept(performance, 'now', { value: () => now })
  const { manager, edit } = await start(t, { keepMs: 1_000 })
  const first = await revisionOf(manager)
  edit('two')
  for (let use = 0; use < 3; use++) {
    now += 900
    t.equal(await textAt(manager, first), 'one')
  }
  now += 1_100
  t.match(await textAt(manager, first), 'revision_changed')
})

t.test('K59: revisions that were used last stay within the bytes, and 0 keeps none', async (t) => {
  const { manager, edit } = await start(t, { maxBytes: 30_000 }, { 'a.txt': 'x'.repeat(10_000) })
  const revisions: string[] = []
  for (const letter of ['a', 'b', 'c', 'd']) {
    edit(letter.repeat(10_000))
    revisions.push(await revisionOf(manager))
    await textAt(manager, revisions[0] ?? '')
  }
  edit('now')
  const readable = await Promise.all(revisions.map(async (revision) => !String(await textAt(manager, revision)).startsWith('revision_changed')))
  t.strictSame(readable, [true, false, false, true])

  for (const keep of [{ keepMs: 0 }, { maxBytes: 0 }]) {
    const none = await start(t, keep)
    const first = await revisionOf(none.manager)
    none.edit('two')
    t.match(await textAt(none.manager, first), 'revision_changed')
  }
})

t.test('K59: what an ignore file hides now is not in a kept revision either', async (t) => {
  for (const place of ['demo/.skillignore', '.skillignore']) {
    const { root, manager, edit } = await start(t, {})
    const first = await revisionOf(manager)
    edit('two')
    t.equal(await textAt(manager, first), 'one')
    fs.writeFileSync(join(root, place), 'a.txt\n')
    t.match(await textAt(manager, first), /revision_changed/, place)
  }
})

t.test('K58: reads of one request are of one revision, and a frontmatter name is that of the revision', async (t) => {
  const { root, manager } = await start(t, {})
  const first = await revisionOf(manager)
  const request = manager.at('current')
  await request.readFile('demo', 'a.txt')
  writeSkill(join(root, 'demo'), 'renamed', 'another name')
  await manager.find('demo')
  t.equal((await request.readFile('demo', 'SKILL.md')).text?.content.includes('name: demo'), true)
  t.equal(request.onlyRevision, first)
  t.equal(await manager.at(first).readByDisplayName('demo', async ({ skill }) => skill.metadata.name), 'demo')
})
