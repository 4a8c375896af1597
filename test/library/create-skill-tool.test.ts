import t from 'tap'
import type { SkillMetadata } from '../../src/core/shared/skill.ts'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { createSkillTool } from '../../src/library/create-skill-tool.ts'

const SKILLS: readonly SkillMetadata[] = [
  { name: 'demo', description: 'd', type: 'project', skillPath: '/srv/demo-folder', path: '/srv/demo-folder/SKILL.md' }
]
const skillManager = {
  getSkills: () => SKILLS,
  readSkillBody: async (skill: SkillMetadata) => `body of ${skill.name}`
}

t.test('K33: the seed\'s factory gives the seed\'s tool', async (t) => {
  const tool = createSkillTool({ skillManager })
  t.equal(tool.name, 'skill')
  t.equal(tool.description, 'Execute a skill within the conversation')
  t.same(tool.approval, { category: 'read' })
  t.same(tool.parameters.required, ['skill'])
})

t.test('K30: execute answers with the two messages', async (t) => {
  const answer = await createSkillTool({ skillManager }).execute({ skill: ' demo ' })
  t.same(answer, {
    llmContent: '[{"type":"text","text":"<command-message>demo is running…</command-message>\\n<command-name>demo</command-name>"},' +
      '{"type":"text","text":"Base directory for this skill: /srv/demo-folder\\n\\nbody of demo","isMeta":true}]',
    returnDisplay: 'Loaded skill: demo'
  })
})

t.test('K29: the folder\'s name is the second choice', async (t) => {
  t.match(await createSkillTool({ skillManager }).execute({ skill: 'demo-folder' }), { returnDisplay: 'Loaded skill: demo' })
})

t.test('K30: a skill that is not there', async (t) => {
  t.same(await createSkillTool({ skillManager }).execute({ skill: '../demo' }), { isError: true, llmContent: 'Skill "../demo" not found' })
})

t.test('K30: a skill that cannot be read is an answer, as through the service', async (t) => {
  const folder = t.testdir({ demo: { 'SKILL.md': Buffer.from([0xff]) } })
  const manager = createSkillManager({ projectRoots: [folder], watcher: false })
  t.teardown(() => manager.close())
  await manager.initialize()
  const { execute } = createSkillTool({ skillManager: manager })
  t.strictSame(await execute({ skill: 'demo' }), { isError: true, llmContent: "SKILL.MD contains invalid UTF-8 for skill 'demo'" })
  const broken = createSkillTool({ skillManager: { ...skillManager, readSkillBody: async () => { throw new TypeError('a fault of the program') } } })
  await t.rejects(broken.execute({ skill: 'demo' }), TypeError)
})
