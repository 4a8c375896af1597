import t from 'tap'
import { folderError } from '../../../src/core/shared/errors.ts'
import { DEFAULT_FOUND_SKILLS, MAX_FOUND_SKILLS } from '../../../src/tools/limits.ts'
import { MAX_QUERY_CODE_POINTS } from '../../../src/schemas/catalog.ts'
import { DEFINITION_FORMATS } from '../../../src/tools/dialects/index.ts'
import { createToolRegistry } from '../../../src/tools/registry.ts'
import { createTools } from '../../../src/tools/tools.ts'
import { createSearchSkillsTool } from '../../../src/tools/reader/search-skills.ts'
import { createToolCallHandler } from '../../../src/tools/calls/tool-call.ts'
import { toolDefinitions } from '../../../src/tools/tool-definitions.ts'
import { FakeSource, shown } from '../fake-source.ts'

const MANY = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`many-${String(index).padStart(2, '0')}`, {}]))

t.test('the definition is in the style of the seeds', async (t) => {
  const { name, description, parameters } = createSearchSkillsTool()
  t.equal(JSON.stringify({ name, description, parameters }),
    '{"name":"search_skills","description":"Search the available skills by what they are for. Looks for the words of the query in names, descriptions and headings. Returns skill names with descriptions as a JSON array, the best match first.",' +
    '"parameters":{"type":"object","properties":{"query":{"type":"string","description":"Words that say what the skill should be about (e.g., \'fill pdf form\')"},' +
    '"limit":{"type":"integer","description":"Maximum number of skills to return, from 1 to 50. Default: 10"}},"required":["query"]}}')
})

t.test('K46: names and descriptions in the order of the search, spaced as in the seeds', async (t) => {
  const source = new FakeSource({ pdf: { description: 'Reads PDF' }, 'pdf-form': { description: 'Fills "forms"' }, other: {} })
  const tool = createSearchSkillsTool()
  t.same(shown(await tool.run({ query: 'pdf' }, source)), {
    result: { skills: [{ skill_name: 'pdf', description: 'Reads PDF' }, { skill_name: 'pdf-form', description: 'Fills "forms"' }] },
    text: '{"skills": [{"skill_name": "pdf", "description": "Reads PDF"}, {"skill_name": "pdf-form", "description": "Fills \\"forms\\""}]}',
    isError: false
  })
  t.same(shown(await tool.run({ query: 'zzz' }, source)), { result: { skills: [] }, text: '{"skills": []}', isError: false })
})

t.test('K46: as many as asked for, ten otherwise', async (t) => {
  const source = new FakeSource(MANY)
  const tool = createSearchSkillsTool()
  const count = async (args: object) => ((await tool.run({ query: 'many', ...args }, source)).result as { skills: object[] }).skills.length
  t.equal(await count({}), DEFAULT_FOUND_SKILLS)
  t.equal(await count({ limit: 1 }), 1)
  t.equal(await count({ limit: MAX_FOUND_SKILLS }), MAX_FOUND_SKILLS)
})

t.test('K46: a skill that has just gone is passed over', async (t) => {
  const source = new FakeSource({ 'many-1': {}, 'many-2': {} })
  const tool = createSearchSkillsTool()
  source.search = async () => ({ names: ['gone', 'many-2'], scores: [2, 1] })
  t.same((await tool.run({ query: 'many', limit: 1 }, source)).result, { skills: [{ skill_name: 'many-2', description: '' }] })
})

t.test('K37: arguments are not converted', async (t) => {
  const source = new FakeSource(MANY)
  const tool = createSearchSkillsTool()
  const registry = createToolRegistry([tool])
  const rows: ReadonlyArray<readonly [args: object, problem: string]> = [
    [{}, "'query' is missing, it must be a string"],
    [{ query: 5 }, "'query' must be a string"],
    [{ query: ['many'] }, "'query' must be a string"],
    [{ query: '' }, "'query' must not be empty"],
    [{ query: ' \n' }, "'query' must not be empty"],
    [{ query: 'x'.repeat(MAX_QUERY_CODE_POINTS + 1) }, "'query' must not be longer than 1000 characters"],
    ...['5', 0, -1, 51, 1.5, 1e21, Number.NaN, null, true, [5], {}].map((limit) => [{ query: 'many', limit }, "'limit' must be an integer from 1 to 50"] as const)
  ]
  for (const [args, problem] of rows) {
    const { result, isError } = await registry.call(tool, args as Readonly<Record<string, unknown>>, source)
    t.ok(isError)
    t.equal((result as { error: string }).error, `Invalid tool arguments: ${problem}\n\nParameters: ${JSON.stringify(tool.parameters)}`)
  }
  t.match((await tool.run(JSON.parse('{"query":"many","__proto__":{"limit":1}}'), source)).result, { skills: { length: DEFAULT_FOUND_SKILLS } })
})

t.test('K14: without a root', async (t) => {
  const source = new FakeSource()
  const tool = createSearchSkillsTool()
  source.failure = folderError.notFound('/srv/skills')
  t.same(shown(await createToolRegistry([tool]).call(tool, { query: 'x' }, source)), {
    result: { error: 'Skills folder not found at path: /srv/skills' },
    text: '{"error": "Skills folder not found at path: /srv/skills"}',
    isError: true
  })
})

t.test('K40: the toolset `search` is the reader\'s tools and this one, in every dialect', async (t) => {
  const registry = createToolRegistry(createTools())
  const skills = new FakeSource()
  for (const format of DEFINITION_FORMATS) {
    const text = JSON.stringify(toolDefinitions(registry, { format, toolset: 'explore', skills }))
    const names = Array.from(text.matchAll(/"name":"(\w+)"/g), ([, name]) => name)
    t.same(names, ['list_skills', 'get_skill', 'read_file_in_skill', 'search_skills', 'list_skill_files'], format)
    t.match(text, '"limit":{"type":"integer"')
    t.notMatch(JSON.stringify(toolDefinitions(registry, { format, toolset: 'reader', skills })), 'search_skills')
    t.match(JSON.stringify(toolDefinitions(registry, { format, toolset: 'all', skills })), 'search_skills')
  }
})

t.test('K34, K39: a call in every dialect, with its two lines', async (t) => {
  const lines: string[] = []
  const skills = new FakeSource({ pdf: { description: 'Reads' } })
  const registry = createToolRegistry(createTools())
  const handle = createToolCallHandler({ registry, log: { info: (_fields, line) => { lines.push(line) } } })
  const args = { query: 'pdf', limit: 3 }
  const calls = [
    { id: '1', function: { name: 'search_skills', arguments: JSON.stringify(args) } },
    { type: 'function_call', call_id: '1', name: 'search_skills', arguments: JSON.stringify(args) },
    { type: 'tool_use', id: '1', name: 'search_skills', input: args },
    { functionCall: { name: 'search_skills', args } },
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'search_skills', arguments: args } }
  ]
  for (const call of calls) {
    const answer = await handle(call, { skills, requestId: 'r' })
    t.ok(answer.kind === 'answer' && answer.json.includes(JSON.stringify('{"skills": [{"skill_name": "pdf", "description": "Reads"}]}')))
  }
  t.same(lines.slice(0, 2), ['[Tool Call] search_skills(query="pdf", limit=3)', '[Tool Result] "{\\"skills\\": [{\\"skill_name\\": \\"pdf\\", \\"description\\": \\"Reads\\"}]}"'])
  t.equal(lines.length, 10)
})
