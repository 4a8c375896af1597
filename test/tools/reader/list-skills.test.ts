import t from 'tap'
import { folderError } from '../../../src/core/shared/errors.ts'
import { createListSkillsTool } from '../../../src/tools/reader/list-skills.ts'
import { createToolRegistry } from '../../../src/tools/registry.ts'
import { FakeSource, shown } from '../fake-source.ts'

t.test('the definition is the seed\'s', async (t) => {
  const { name, description, parameters } = createListSkillsTool()
  t.equal(JSON.stringify({ name, description, parameters }),
    '{"name":"list_skills","description":"List all available skills in the skills folder. Returns skill names as a JSON array.",' +
    '"parameters":{"type":"object","properties":{},"required":[]}}')
})

t.test('K11, example 1: the names of all skills, spaced as in the seed', async (t) => {
  const source = new FakeSource({ weather: {}, web_search: {}, calculator: {} })
  const tool = createListSkillsTool()
  t.same(shown(await tool.run({}, source)), {
    result: { skills: ['calculator', 'weather', 'web_search'] },
    text: '{"skills": ["calculator", "weather", "web_search"]}',
    isError: false
  })
})

t.test('K12, example 2: no skills', async (t) => {
  const source = new FakeSource()
  const tool = createListSkillsTool()
  t.same(shown(await tool.run({}, source)), { result: { skills: [] }, text: '{"skills": []}', isError: false })
})

t.test('K14, example 3: no folder, or none that may be read', async (t) => {
  const source = new FakeSource()
  const tool = createListSkillsTool()
  const registry = createToolRegistry([tool])
  source.failure = folderError.notFound('/path/to/skills')
  t.same(shown(await registry.call(tool, {}, source)), {
    result: { error: 'Skills folder not found at path: /path/to/skills' },
    text: '{"error": "Skills folder not found at path: /path/to/skills"}',
    isError: true
  })
  source.failure = folderError.permissionDenied()
  t.same((await registry.call(tool, {}, source)).result, { error: 'Permission denied reading skills folder' })
})

t.test('an unknown argument is ignored', async (t) => {
  const source = new FakeSource({ a: {} })
  const tool = createListSkillsTool()
  t.same((await tool.run(JSON.parse('{"x":1,"__proto__":{}}'), source)).result, { skills: ['a'] })
})

t.test('an unchanged list is rendered once', async (t) => {
  const source = new FakeSource({ a: {} })
  const tool = createListSkillsTool()
  const first = await tool.run({}, source)
  t.equal(await tool.run({}, source), first)
  source.set({ a: {}, b: {} })
  t.same((await tool.run({}, source)).result, { skills: ['a', 'b'] })
})
