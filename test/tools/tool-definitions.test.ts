import t from 'tap'
import { createToolRegistry } from '../../src/tools/registry.ts'
import { TOOLSETS } from '../../src/tools/tool.ts'
import { createTools } from '../../src/tools/tools.ts'
import { type ToolDefinitionOptions, toolDefinitions } from '../../src/tools/tool-definitions.ts'
import { FakeSource } from './fake-source.ts'

const registry = createToolRegistry(createTools())
const skills = new FakeSource({ pdf: { description: 'Reads PDF' } })
const LIST = {
  name: 'list_skills',
  description: 'List all available skills in the skills folder. Returns skill names as a JSON array.'
}
const EMPTY = { type: 'object', properties: {}, required: [] }
const DYNAMIC = 'Invoke skills based on available skill metadata. Skills: pdf: Reads PDF'

t.test('K40: definitions in each provider\'s form, keys in order', async (t) => {
  const first = (format: ToolDefinitionOptions['format']) =>
    JSON.stringify(toolDefinitions(registry, { format, toolset: 'reader', skills })[0])
  t.equal(first('openai'), JSON.stringify({ type: 'function', function: { ...LIST, parameters: EMPTY } }))
  t.equal(first('openai-responses'), JSON.stringify({ type: 'function', ...LIST, parameters: EMPTY, strict: false }))
  t.equal(first('anthropic'), JSON.stringify({ ...LIST, input_schema: EMPTY }))
  t.equal(first('mcp'), JSON.stringify({
    ...LIST,
    inputSchema: { ...EMPTY, additionalProperties: false },
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
  }))
  t.equal(first('bedrock'), JSON.stringify({ toolSpec: { ...LIST, inputSchema: { json: EMPTY } } }))
  t.ok(first('gemini')
    .startsWith(`{"functionDeclarations":[${JSON.stringify({ ...LIST, parametersJsonSchema: EMPTY })},`))
})

t.test('K40: toolsets', async (t) => {
  for (const toolset of [...TOOLSETS, 'all'] as const) {
    const names = registry.list(toolset === 'all' ? undefined : toolset).map(({ name }) => ({ function: { name } }))
    t.match(toolDefinitions(registry, { format: 'openai', toolset, skills }), names, toolset)
  }
})

t.test('K28: function.description is fixed, other forms follow the catalog', async (t) => {
  t.match(toolDefinitions(registry, { format: 'openai', toolset: 'wave', skills })[0], {
    function: { description: 'Invoke a skill to apply specialized expertise and capabilities' }
  })
  for (const format of ['openai-responses', 'anthropic', 'mcp'] as const) {
    t.match(toolDefinitions(registry, { format, toolset: 'wave', skills })[0], { description: DYNAMIC })
  }
  t.match(toolDefinitions(
    registry, { format: 'gemini', toolset: 'wave', skills }
  ), [{ functionDeclarations: [{ description: DYNAMIC }] }])
})
