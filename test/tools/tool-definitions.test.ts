import t from 'tap'
import { createToolRegistry, createTools } from '../../src/tools/registry.ts'
import { toolDefinitions } from '../../src/tools/tool-definitions.ts'
import { FakeSource } from './fake-source.ts'

const registry = createToolRegistry(createTools({ source: new FakeSource({ pdf: { description: 'Reads PDF' } }) }))
const LIST = { name: 'list_skills', description: 'List all available skills in the skills folder. Returns skill names as a JSON array.' }
const EMPTY = { type: 'object', properties: {}, required: [] }
const DYNAMIC = 'Invoke skills based on available skill metadata. Skills: pdf: Reads PDF'

t.test('K40: definitions in each provider\'s form, keys in order', async (t) => {
  const first = (format: Parameters<typeof toolDefinitions>[1]) => JSON.stringify(toolDefinitions(registry, format, 'reader')[0])
  t.equal(first('openai'), JSON.stringify({ type: 'function', function: { ...LIST, parameters: EMPTY } }))
  t.equal(first('openai-responses'), JSON.stringify({ type: 'function', ...LIST, parameters: EMPTY, strict: false }))
  t.equal(first('anthropic'), JSON.stringify({ ...LIST, input_schema: EMPTY }))
  t.equal(first('mcp'), JSON.stringify({ ...LIST, inputSchema: EMPTY, annotations: { readOnlyHint: true } }))
  t.ok(first('gemini').startsWith(`{"functionDeclarations":[${JSON.stringify({ ...LIST, parametersJsonSchema: EMPTY })},`))
})

t.test('K40: toolsets', async (t) => {
  t.equal(toolDefinitions(registry, 'openai', 'reader').length, 3)
  t.equal(toolDefinitions(registry, 'openai', 'search').length, 4)
  t.equal(toolDefinitions(registry, 'openai', 'wave').length, 1)
  t.equal(toolDefinitions(registry, 'openai', 'neovate').length, 1)
  t.equal(toolDefinitions(registry, 'openai', 'all').length, 6)
})

t.test('K28: function.description is fixed, other forms follow the catalog', async (t) => {
  t.match(toolDefinitions(registry, 'openai', 'wave')[0], { function: { description: 'Invoke a skill to apply specialized expertise and capabilities' } })
  for (const format of ['openai-responses', 'anthropic', 'mcp'] as const) {
    t.match(toolDefinitions(registry, format, 'wave')[0], { description: DYNAMIC })
  }
  t.match(toolDefinitions(registry, 'gemini', 'wave'), [{ functionDeclarations: [{ description: DYNAMIC }] }])
})
