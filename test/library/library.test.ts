import { execFileSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import t from 'tap'
import { MAX_MAIN_FILE_BYTES } from '../../src/core/shared/limits.ts'
import type { SkillMetadata } from '../../src/core/shared/skill.ts'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { createSkillTool } from '../../src/library/create-skill-tool.ts'
import { parseSkillFile } from '../../src/library/parse-skill-file.ts'

const valid = '---\nname: demo\ndescription: Shows how.\n---\n# Demo\n'

t.test('K33: parseSkillFile gives a valid skill', async t => {
  const root = t.testdir({ demo: { 'SKILL.md': `\uFEFF${valid}` } })
  const path = join(root, 'demo', 'SKILL.md')
  const expected = {
    frontmatter: { name: 'demo', description: 'Shows how.' },
    content: `\uFEFF${valid}`,
    skillMetadata: { name: 'demo', description: 'Shows how.', type: 'project', skillPath: join(root, 'demo'), path },
    validationErrors: [],
    isValid: true
  }
  t.same(parseSkillFile(path), expected)
  t.same(parseSkillFile(relative(process.cwd(), path)), expected, 'relative paths are resolved')
})

t.test('K33: problems of a skill are validation errors; warnings are not', async t => {
  const root = t.testdir({
    other: { 'SKILL.md': '---\nname: demo\n---\nx' },
    bare: { 'SKILL.md': '# No frontmatter' },
    demo: { 'SKILL.md': '---\nname: demo\ndescription: Use when: asked\nextra: 1\n---\n' }
  })
  t.match(parseSkillFile(join(root, 'other', 'SKILL.md')), {
    skillMetadata: { name: 'demo', description: '' },
    validationErrors: ["name 'demo' does not match the folder name 'other'", 'description is missing'],
    isValid: false
  })
  t.match(parseSkillFile(join(root, 'bare', 'SKILL.md')), {
    frontmatter: {},
    content: '# No frontmatter',
    skillMetadata: { name: 'bare' },
    validationErrors: ['SKILL.md has no frontmatter'],
    isValid: false
  })
  t.match(parseSkillFile(join(root, 'demo', 'SKILL.md')), { validationErrors: [], isValid: true })
})

t.test('K33: a file that cannot be read is a validation error', async t => {
  const root = t.testdir({
    demo: {
      'latin1.md': '', 'large.md': '', 'limit.md': '', 'locked.md': 'x', folder: {}, loop: t.fixture('symlink', 'loop')
    }
  })
  const at = (name: string) => join(root, 'demo', name)
  writeFileSync(at('latin1.md'), Buffer.from([0x63, 0xe9]))
  writeFileSync(at('large.md'), Buffer.alloc(MAX_MAIN_FILE_BYTES + 1, 'x'))
  writeFileSync(at('limit.md'), Buffer.alloc(MAX_MAIN_FILE_BYTES, 'x'))
  chmodSync(at('locked.md'), 0)

  const rows: Array<[string, string]> = [
    ['absent.md', "SKILL.MD not found for skill 'demo'"],
    ['latin1.md/SKILL.md', "SKILL.MD not found for skill 'latin1.md'"],
    ['folder', "SKILL.MD not found for skill 'demo'"],
    ['latin1.md', "SKILL.MD contains invalid UTF-8 for skill 'demo'"],
    ['large.md', "SKILL.MD too large (>1MB) for skill 'demo'"],
    ['loop', "SKILL.MD not found for skill 'demo'"],
    ['nul\0.md', "SKILL.MD not found for skill 'demo'"]
  ]
  if (process.getuid?.() !== 0) rows.push(['locked.md', "Permission denied reading SKILL.MD for skill 'demo'"])
  for (const [name, error] of rows) {
    const { frontmatter, content, skillMetadata, validationErrors, isValid } = parseSkillFile(at(name))
    t.strictSame({ content, validationErrors, isValid }, { content: '', validationErrors: [error], isValid: false },
      JSON.stringify(name))
    t.same(frontmatter, {})
    t.equal(skillMetadata.path, at(name))
  }
  t.equal(parseSkillFile(at('limit.md')).content.length, MAX_MAIN_FILE_BYTES)
})

t.test('K33: a FIFO is refused at once', { skip: process.platform === 'win32' }, async t => {
  const root = t.testdir({ demo: {} })
  const path = join(root, 'demo', 'SKILL.md')
  execFileSync('mkfifo', [path])
  t.strictSame(parseSkillFile(path).validationErrors, ["SKILL.MD not found for skill 'demo'"])
})

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
    llmContent: '[{"type":"text","text":"<command-message>demo is ' +
      'running…</command-message>\\n<command-name>demo</command-name>"},' +
      '{"type":"text","text":"Base directory for this skill: /srv/demo-folder\\n\\nbody of demo","isMeta":true}]',
    returnDisplay: 'Loaded skill: demo'
  })
})

t.test('K29: the folder\'s name is the second choice', async (t) => {
  t.match(await createSkillTool({ skillManager }).execute({ skill: 'demo-folder' }),
    { returnDisplay: 'Loaded skill: demo' })
})

t.test('K30: a skill that is not there', async (t) => {
  t.same(await createSkillTool({ skillManager }).execute({ skill: '../demo' }),
    { isError: true, llmContent: 'Skill "../demo" not found' })
})

t.test('K30: a skill that cannot be read is an answer, as through the service', async (t) => {
  const folder = t.testdir({ demo: { 'SKILL.md': Buffer.from([0xff]) } })
  const manager = createSkillManager({ projectRoots: [folder], watcher: false })
  t.teardown(() => manager.close())
  await manager.initialize()
  const { execute } = createSkillTool({ skillManager: manager })
  t.strictSame(await execute({ skill: 'demo' }),
    { isError: true, llmContent: "SKILL.MD contains invalid UTF-8 for skill 'demo'" })
  const broken = createSkillTool({
    skillManager: { ...skillManager, readSkillBody: async () => { throw new TypeError('a fault of the program') } }
  })
  await t.rejects(broken.execute({ skill: 'demo' }), TypeError)
})
