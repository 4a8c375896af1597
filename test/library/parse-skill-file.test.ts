import t from 'tap'
import { execFileSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { MAX_MAIN_FILE_BYTES } from '../../src/core/shared/limits.ts'
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
    frontmatter: {}, content: '# No frontmatter', skillMetadata: { name: 'bare' }, validationErrors: ['SKILL.md has no frontmatter'], isValid: false
  })
  t.match(parseSkillFile(join(root, 'demo', 'SKILL.md')), { validationErrors: [], isValid: true })
})

t.test('K33: a file that cannot be read is a validation error', async t => {
  const root = t.testdir({
    demo: { 'latin1.md': '', 'large.md': '', 'limit.md': '', 'locked.md': 'x', folder: {}, loop: t.fixture('symlink', 'loop') }
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
    ['loop', "Error reading SKILL.MD for skill 'demo'"],
    ['nul\0.md', "Error reading SKILL.MD for skill 'demo'"]
  ]
  if (process.getuid?.() !== 0) rows.push(['locked.md', "Permission denied reading SKILL.MD for skill 'demo'"])
  for (const [name, error] of rows) {
    const { frontmatter, content, skillMetadata, validationErrors, isValid } = parseSkillFile(at(name))
    t.strictSame({ content, validationErrors, isValid }, { content: '', validationErrors: [error], isValid: false }, JSON.stringify(name))
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

t.test('K33: a file whose size is not known beforehand is read to its end', { skip: process.platform !== 'linux' }, async t => {
  t.match(parseSkillFile('/proc/self/status').content, 'Pid:')
})
