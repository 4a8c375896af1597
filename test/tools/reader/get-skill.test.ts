import t from 'tap'
import { mainFileError } from '../../../src/core/shared/errors.ts'
import { createGetSkillTool } from '../../../src/tools/reader/get-skill.ts'
import { createToolRegistry } from '../../../src/tools/registry.ts'
import { type FakeSkill, FakeSource, shown } from '../fake-source.ts'

const DOCUMENT = '# Calculator Skill\n\nProvides basic arithmetic operations.\n\n## Usage\n\n```python\nresult = 2 + 2\nprint(result)\n```'

function setUp (skills: Readonly<Record<string, FakeSkill>>) {
  const source = new FakeSource(skills)
  const tool = createGetSkillTool()
  const registry = createToolRegistry([tool])
  return { source, tool, call: (name?: unknown) => registry.call(tool, { skill_name: name }, source) }
}

t.test('the definition is the seed\'s', async (t) => {
  const { name, description, parameters } = createGetSkillTool()
  t.equal(JSON.stringify({ name, description, parameters }),
    '{"name":"get_skill","description":"Read the SKILL.MD documentation for a specific skill. Returns the full text content of the documentation file.",' +
    '"parameters":{"type":"object","properties":{"skill_name":{"type":"string","description":"Name of the skill (folder name)"}},"required":["skill_name"]}}')
})

t.test('K15, example 1: the whole document, keys in order', async (t) => {
  const { call } = setUp({ calculator: { files: { 'SKILL.md': DOCUMENT } } })
  const outcome = await call('calculator')
  t.equal(outcome.json, JSON.stringify({ skill_name: 'calculator', documentation: DOCUMENT }))
  t.equal(outcome.text, `{"skill_name": "calculator", "documentation": ${JSON.stringify(DOCUMENT)}}`)
  t.equal(outcome.isError, false)
})

t.test('K15: verbatim: frontmatter, CRLF, BOM, blanks and characters beyond ASCII', async (t) => {
  const text = '\ufeff---\r\nname: a\r\n---\r\n  é 😀 "q": 1, \\ \u2028 end \n\n'
  const { call } = setUp({ a: { files: { 'SKILL.md': text } } })
  const outcome = await call('a')
  t.same(outcome.result, { skill_name: 'a', documentation: text })
  t.same(JSON.parse(outcome.text), { skill_name: 'a', documentation: text })
})

t.test('K16: each error is the contract\'s sentence', async (t) => {
  const { call } = setUp({
    calculator: {},
    large: { files: { 'SKILL.md': mainFileError.tooLarge('large') } },
    secret: { files: { 'SKILL.md': mainFileError.permissionDenied('secret') } },
    binary: { files: { 'SKILL.md': Buffer.from([0xff, 0xff]) } },
    broken: { files: { 'SKILL.md': mainFileError.unreadable('broken') } }
  })
  const rows: ReadonlyArray<readonly [name: string, error: string]> = [
    ['../../../etc/passwd', "Invalid skill name: '../../../etc/passwd'. Skill names must not contain '/', '\\', or '..'"],
    ['', "Invalid skill name: ''. Skill names must not contain '/', '\\', or '..'"],
    ['a\\b', "Invalid skill name: 'a\\b'. Skill names must not contain '/', '\\', or '..'"],
    ['nonexistent', "Skill 'nonexistent' not found in skills folder"],
    ['calculator', "SKILL.MD not found for skill 'calculator'"],
    ['large', "SKILL.MD too large (>1MB) for skill 'large'"],
    ['secret', "Permission denied reading SKILL.MD for skill 'secret'"],
    ['binary', "SKILL.MD contains invalid UTF-8 for skill 'binary'"],
    ['broken', "Error reading SKILL.MD for skill 'broken'"]
  ]
  for (const [name, error] of rows) {
    t.same(shown(await call(name)), { result: { error }, text: `{"error": ${JSON.stringify(error)}}`, isError: true })
  }
})

t.test('K37: an argument that is missing or no string is refused by name, with the schema', async (t) => {
  const { call, tool } = setUp({ 5: { files: { 'SKILL.md': 'x' } } })
  for (const value of [undefined, 5, null, true, ['5'], { toString: '5' }]) {
    const { result, isError } = await call(value)
    const problem = value === undefined ? "'skill_name' is missing, it must be a string" : "'skill_name' must be a string"
    t.same(result, { error: `Invalid tool arguments: ${problem}\n\nParameters: ${JSON.stringify(tool.parameters)}` })
    t.equal(isError, true)
  }
})

t.test('an unchanged document is rendered once, a changed one again', async (t) => {
  const { call, source } = setUp({ a: { files: { 'SKILL.md': 'one' } } })
  const first = await call('a')
  t.equal(await call('a'), first)
  source.set({ a: { files: { 'SKILL.md': 'two' } } })
  t.same((await call('a')).result, { skill_name: 'a', documentation: 'two' })
})
