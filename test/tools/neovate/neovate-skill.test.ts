import t from 'tap'
import { mainFileError } from '../../../src/core/shared/errors.ts'
import { neovateSkill } from '../../../src/tools/neovate/neovate-skill.ts'
import { createToolRegistry } from '../../../src/tools/registry.ts'
import { FakeSource, shown } from '../fake-source.ts'

const BODY = '\n# Demo\n\n"quoted" é\n'
const LLM_CONTENT = JSON.stringify([
  { type: 'text', text: '<command-message>demo is running\u2026</command-message>\n<command-name>demo</command-name>' },
  { type: 'text', text: `Base directory for this skill: /srv/skills/demo\n\n${BODY}`, isMeta: true }
])

function setUp () {
  const source = new FakeSource({
    demo: { description: 'A demo', files: { 'SKILL.md': `---\nname: demo\ndescription: A demo\n---\n${BODY}` } },
    folder: { label: 'Label', files: { 'SKILL.md': 'plain' } },
    Label: { label: 'other', files: { 'SKILL.md': 'wrong one' } },
    hollow: {},
    secret: { files: { 'SKILL.md': mainFileError.permissionDenied('secret') } }
  })
  const tool = neovateSkill
  const registry = createToolRegistry([tool])
  return { source, tool, call: (skill?: unknown) => registry.call(tool, { skill }, source) }
}

t.test('the definition is the seed\'s', async (t) => {
  const { name, description, parameters } = setUp().tool
  t.equal(JSON.stringify({ name, description, parameters }),
    '{"name":"skill","description":"Execute a skill within the ' +
    'conversation","parameters":{"type":"object","properties":' +
    '{"skill":{"type":"string","description":"The skill name to execute"}},"required":["skill"]}}')
})

t.test('K30: two messages, the body without its frontmatter', async (t) => {
  t.same(shown(await setUp().call('demo')), {
    result: { llmContent: LLM_CONTENT, returnDisplay: 'Loaded skill: demo' }, text: LLM_CONTENT, isError: false
  })
})

t.test('K29: the argument is trimmed', async (t) => {
  t.equal((await setUp().call(' \tdemo\n')).text, LLM_CONTENT)
})

t.test('K29: the frontmatter\'s name comes before the folder\'s', async (t) => {
  const { call } = setUp()
  const outcome = await call('Label')
  t.match(outcome.result, { returnDisplay: 'Loaded skill: Label' })
  t.match(outcome.text, 'plain')
  t.match((await call('folder')).text, 'folder is running')
})

t.test('K30: what is not there, or would be a path', async (t) => {
  const { call } = setUp()
  for (const name of ['nope', '../demo', '/etc/passwd', 'demo/SKILL.md', '', '__proto__']) {
    const llmContent = `Skill "${name}" not found`
    t.same(shown(await call(` ${name} `)), { result: { isError: true, llmContent }, text: llmContent, isError: true })
  }
})

t.test('K30: a skill that goes away during the call is not found', async (t) => {
  const { source, call } = setUp()
  source.readByDisplayName = async (name) => { throw mainFileError.skillNotFound(name) }
  t.same((await call('demo')).result, { isError: true, llmContent: 'Skill "demo" not found' })
})

t.test('K30: other failures have fixed sentences', async (t) => {
  const { call } = setUp()
  t.same((await call('hollow')).result, { isError: true, llmContent: "SKILL.MD not found for skill 'hollow'" })
  t.same((await call('secret')).result, {
    isError: true, llmContent: "Permission denied reading SKILL.MD for skill 'secret'"
  })
})

t.test('an argument that is no string is refused by name', async (t) => {
  const { call } = setUp()
  for (const value of [
    5, ['demo'], null
  ]) t.match((await call(value)).text, "Invalid tool arguments: 'skill' must be a string")
})
