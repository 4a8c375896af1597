/**
 * The times that the service promises, and sizes that come with them; what it takes on a quiet machine is measured by
 * `npm run bench`.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { buildService } from '../helper/build.ts'
import { createManager, skill, skills, startManager } from '../helper/skills.ts'
import { checkTime, timeOf, usedMemory } from '../helper/timing.ts'

const MEBIBYTE = 1_048_576

function writeSkills (folder: string, count: number, text: (name: string) => string): void {
  for (let index = 0; index < count; index++) {
    const name = `skill-${index}`
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'SKILL.md'), text(name))
  }
}

function described (name: string): string {
  return `---\nname: ${name}\ndescription: ${'many words '.repeat(20).trim()}\n---\n${'Instructions.\n'.repeat(300)}`
}

t.test('K13: 100 skills are listed in under a second, from nothing', async (t) => {
  const names = Array.from({ length: 100 }, (_, index) => `skill-${String(index).padStart(3, '0')}`)
  const root = t.testdir(skills(...names))
  await checkTime(t, 1_000, async () => {
    const manager = createManager(t, [root])
    await manager.start()
    t.same(await manager.list(), names)
  })
})

t.test('K16 K21: a document and a file of 1 MiB take under 500 ms, a refusal 100 ms, a traversal 10 ms', async (t) => {
  const { app } = await buildService(t, {
    files: { demo: skill('demo', { 'large.txt': 'x'.repeat(MEBIBYTE) }), large: { 'SKILL.md': 'x'.repeat(MEBIBYTE) } }
  })
  const call = async (tool: string, args: object) =>
    (await app.inject({ method: 'POST', url: `/agent/tools/${tool}`, payload: args })).body
  const read = async (path: string) => await call('read_file_in_skill', { skill_name: 'demo', file_path: path })
  t.ok((await checkTime(t, 500, () => call('get_skill', { skill_name: 'large' }))).length > MEBIBYTE)
  t.ok((await checkTime(t, 500, () => read('large.txt'))).length > MEBIBYTE)
  t.match(await checkTime(t, 100, () => read('missing.txt')), 'not found')
  t.match(await checkTime(t, 10, () => read('../'.repeat(1_000))), 'Path traversal')
})

t.test('a figure counts what is waited for', async (t) => {
  const tries: number[] = []
  for (let count = 0; count < 5; count++) tries.push((await timeOf(() => sleep(50))).took)
  t.ok(Math.max(...tries) > 45, tries.join(' '))
})

t.test('K32: of 1,000 skills discovery, one skill, the description, an error and metadata cost little', async (t) => {
  const { app, root } = await buildService(t,
    { options: { prepare: (folder) => { writeSkills(join(folder, 'skills'), 1_000, described) } } })
  await checkTime(t, 500, async () => {
    const manager = createSkillManager({ projectRoots: [root], watcher: false })
    await manager.initialize()
    await manager.close()
  }, 'discovery')

  const before = usedMemory()
  const manager = await startManager(t, [root])
  const used = usedMemory() - before
  t.equal(manager.getAvailableSkills().length, 1_000)
  t.ok(used < 10_000_000, `${used} bytes`)

  t.ok(await checkTime(t, 100, () => manager.find('skill-500'), 'one skill'))
  t.match(
    (await checkTime(t, 50, () => app.inject('/agent/tools?toolset=wave&format=anthropic'), 'the description')).body,
    'skill-999: many words')
  const missing = { method: 'POST', url: '/agent/tools/Skill', payload: { skill_name: 'nope' } } as const
  t.match((await checkTime(t, 10, () => app.inject(missing), 'an error')).body, 'not found')
})
