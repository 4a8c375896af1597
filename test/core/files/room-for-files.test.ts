import t from 'tap'
import { MAX_MAIN_FILE_BYTES } from '../../../src/core/shared/limits.ts'
import { createSkillManager } from '../../../src/core/skill-manager.ts'
import { skillText } from '../../helper/skills.ts'

t.test('K68: a file over 1 MiB is not read while there is no room for its answer; smaller ones are, and the index asks nobody', async (t) => {
  const root = t.testdir({ demo: { 'SKILL.md': skillText('demo', 'x'.repeat(MAX_MAIN_FILE_BYTES - 1_000)), 'small.txt': 'x', 'large.txt': 'x'.repeat(MAX_MAIN_FILE_BYTES + 1) } })
  const asked: number[] = []
  let hasRoom = false
  const skills = createSkillManager({ projectRoots: [root], watcher: false, hasRoom: async (bytes) => { asked.push(bytes); return hasRoom } })
  t.teardown(async () => { await skills.close() })
  await skills.initialize()
  t.equal((await skills.readFile('demo', 'small.txt')).bytes.length, 1)
  t.ok((await skills.readMainFile('demo', 'SKILL.md')).bytes.length > MAX_MAIN_FILE_BYTES / 2)
  t.strictSame(asked, [])
  await t.rejects(async () => await skills.readFile('demo', 'large.txt'), { code: 'overloaded', kind: 'unavailable' })
  t.strictSame(asked, [4 * (MAX_MAIN_FILE_BYTES + 1)])
  hasRoom = true
  t.equal((await skills.readFile('demo', 'large.txt')).bytes.length, MAX_MAIN_FILE_BYTES + 1)
})
