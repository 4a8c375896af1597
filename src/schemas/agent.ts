import { Type } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

/** The body in any dialect (K34): told apart by shape in the handler, so that the schema refuses nothing. */
export const ToolCallRequestSchema = Type.Unsafe<unknown>({
  $id: 'ToolCallRequest',
  title: 'ToolCallRequest',
  description: 'One call, `{"tool_calls": […]}`, an array of calls, or the message of a provider that holds them: OpenAI Chat Completions, OpenAI Responses, Anthropic Messages, Gemini or MCP `tools/call`.',
  anyOf: [{ type: 'object' }, { type: 'array', items: { type: 'object' } }],
  examples: [{
    id: 'call_abc123',
    type: 'function',
    function: { name: 'list_skills', arguments: '{}' }
  }]
})

export const ToolCallResponseSchema = Type.Unsafe<unknown>({
  $id: 'ToolCallResponse',
  title: 'ToolCallResponse',
  description: 'One result for one call, otherwise an array with one result per call in their order, in the dialect of the calls.',
  anyOf: [{ type: 'object' }, { type: 'array', items: { type: 'object' } }],
  examples: [{
    role: 'tool',
    tool_call_id: 'call_abc123',
    name: 'list_skills',
    content: '{"skills": ["calculator", "weather"]}'
  }]
})

export const ToolQuerySchema = Type.Object({
  format: Type.Optional(StringEnum(['openai', 'openai-responses', 'anthropic', 'gemini', 'mcp'], { default: 'openai', description: 'The dialect of the definitions' })),
  toolset: Type.Optional(StringEnum(['reader', 'wave', 'neovate', 'all'], { default: 'reader', description: 'Which tools: `reader` has list_skills, get_skill and read_file_in_skill' }))
})

export const ToolDefinitionsSchema = Type.Array(Type.Unsafe<object>({ type: 'object' }), {
  $id: 'ToolDefinitions',
  title: 'ToolDefinitions',
  description: "Ready to be the `tools` of a model's request.",
  examples: [[{
    type: 'function',
    function: {
      name: 'list_skills',
      description: 'List all available skills in the skills folder. Returns skill names as a JSON array.',
      parameters: { type: 'object', properties: {}, required: [] }
    }
  }]]
})

export const ToolParamsSchema = Type.Object({
  name: Type.String({ description: 'Name of the tool, compared exactly', examples: ['get_skill'] })
})

export const ToolArgumentsSchema = Type.Unsafe<Record<string, unknown>>({
  $id: 'ToolArguments',
  title: 'ToolArguments',
  description: 'The arguments of one call.',
  type: 'object',
  examples: [{ skill_name: 'calculator' }]
})

export const ToolResultSchema = Type.Unsafe<object>({
  $id: 'ToolResult',
  title: 'ToolResult',
  description: "The tool's own result object, of success and of failure.",
  type: 'object',
  examples: [{ skill_name: 'calculator', documentation: '# Calculator Skill\n\nProvides basic arithmetic operations.\n' }]
})
