import { Type } from '@sinclair/typebox'
import { SkillDocumentSchema, SkillFileSchema, SkillListSchema } from './skills.ts'
import { reference } from './reference.ts'
import { StringEnum } from './string-enum.ts'

const TEXT = { type: 'string' }
const ID = { description: 'Echoed in the result', type: ['string', 'integer', 'number'] }

/** The body in any dialect: for the document. The handler tells the dialects apart and says what is wrong. */
export const ToolCallRequestSchema = Type.Unsafe<unknown>({
  title: 'ToolCallRequest',
  description: 'One call, `{"tool_calls": […]}`, an array of calls, or the message or the whole response of a provider that holds them. `arguments` is an object or a JSON string of one.',
  anyOf: [
    { title: 'OpenAI Chat Completions', ...object({ id: ID, function: object({ name: TEXT, arguments: {} }, ['name']) }, ['function']) },
    { title: 'OpenAI Responses', ...object({ type: { enum: ['function_call'] }, call_id: TEXT, name: TEXT, arguments: {} }, ['type', 'call_id', 'name']) },
    { title: 'Anthropic Messages', ...object({ type: { enum: ['tool_use'] }, id: ID, name: TEXT, input: {} }, ['type', 'name']) },
    { title: 'Gemini', ...object({ functionCall: object({ id: ID, name: TEXT, args: {} }, ['name']) }, ['functionCall']) },
    {
      title: 'MCP tools/call',
      ...object({ jsonrpc: { enum: ['2.0'] }, id: ID, method: { enum: ['tools/call'] }, params: object({ name: TEXT, arguments: {} }, ['name']) }, ['jsonrpc', 'method', 'params'])
    },
    { title: 'Calls in a message or response of a provider', type: 'object' },
    { title: 'An array of calls', type: 'array', items: {}, minItems: 1, maxItems: 128 }
  ]
})

const toolCallResults: readonly object[] = [
  { title: 'OpenAI Chat Completions', ...object({ role: { enum: ['tool', 'function'] }, tool_call_id: ID, name: TEXT, content: TEXT }, ['role', 'name', 'content']) },
  { title: 'OpenAI Responses', ...object({ type: { enum: ['function_call_output'] }, call_id: ID, output: TEXT }, ['type', 'output']) },
  { title: 'Anthropic Messages', ...object({ type: { enum: ['tool_result'] }, tool_use_id: ID, content: TEXT, is_error: { type: 'boolean' } }, ['type', 'content', 'is_error']) },
  { title: 'Gemini', ...object({ functionResponse: geminiResponse() }, ['functionResponse']) },
  { title: 'Gemini in snake case', ...object({ function_response: geminiResponse() }, ['function_response']) },
  { title: 'MCP tools/call', ...object({ jsonrpc: { enum: ['2.0'] }, id: { type: ['string', 'integer', 'number', 'null'] }, result: mcpResult() }, ['jsonrpc', 'id', 'result']) },
  {
    title: 'MCP, no such tool',
    ...object({ jsonrpc: { enum: ['2.0'] }, id: { type: ['string', 'integer', 'number', 'null'] }, error: object({ code: { type: 'integer' }, message: TEXT }, ['code', 'message']) }, ['jsonrpc', 'id', 'error'])
  }
]

export const ToolCallResponseSchema = Type.Unsafe<unknown>({
  $id: 'ToolCallResponse',
  title: 'ToolCallResponse',
  description: 'One result for one call, otherwise an array with one result per call in their order, in the dialect of the calls.',
  anyOf: [...toolCallResults, { title: 'Results of several calls', type: 'array', items: { anyOf: toolCallResults } }]
})

export const ToolQuerySchema = Type.Object({
  format: Type.Optional(StringEnum(['openai', 'openai-responses', 'anthropic', 'gemini', 'mcp'], {
    default: 'openai',
    description: 'The dialect of the definitions',
    examples: ['anthropic']
  })),
  toolset: Type.Optional(StringEnum(['reader', 'search', 'wave', 'neovate', 'all'], {
    default: 'reader',
    description: 'Which tools: `reader` has list_skills, get_skill and read_file_in_skill, `search` has these and search_skills, `wave` has Skill, `neovate` has skill',
    examples: ['reader']
  }))
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
  name: Type.String({ description: 'Name of the tool, compared exactly: `Skill` and `skill` are two tools', examples: ['get_skill'] })
})

export const ToolArgumentsSchema = Type.Unsafe<unknown>({
  title: 'ToolArguments',
  description: 'The arguments of one call, as the definition of the tool says. What does not fit is told in the result.',
  type: 'object'
})

const waveError = object({
  type: { enum: ['skill_not_found', 'skill_invalid', 'skill_inaccessible', 'skill_malformed', 'system_error'] },
  skillName: TEXT,
  message: TEXT,
  suggestions: { type: 'array', items: TEXT },
  availableSkills: { type: 'array', items: TEXT }
}, ['type', 'skillName', 'message', 'suggestions', 'availableSkills'])

export const ToolResultSchema = Type.Unsafe<object>({
  $id: 'ToolResult',
  title: 'ToolResult',
  description: "The tool's own result object, of success and of failure.",
  anyOf: [
    reference(SkillListSchema),
    reference(SkillDocumentSchema),
    reference(SkillFileSchema),
    { title: 'search_skills', ...object({ skills: { type: 'array', items: object({ skill_name: TEXT, description: TEXT }, ['skill_name', 'description']) } }, ['skills']) },
    { title: 'Failure of read_file_in_skill', ...object({ success: { enum: [false] }, skill_name: TEXT, file_path: TEXT, error: TEXT }, ['success', 'skill_name', 'file_path', 'error']) },
    {
      title: 'Skill',
      ...object({ success: { type: 'boolean' }, content: TEXT, error: TEXT, shortResult: TEXT, errorDetails: waveError }, ['success', 'content'])
    },
    { title: 'skill', ...object({ isError: { enum: [true] }, llmContent: TEXT, returnDisplay: TEXT }, ['llmContent']) },
    { title: 'Failure of list_skills, get_skill and search_skills', ...object({ error: TEXT }, ['error']) }
  ],
  examples: [{ skill_name: 'calculator', documentation: '# Calculator Skill\n\nProvides basic arithmetic operations.\n' }]
})

function geminiResponse (): object {
  return object({ id: ID, name: TEXT, response: object({ output: TEXT, error: TEXT }, []) }, ['name', 'response'])
}

function mcpResult (): object {
  const block = object({ type: { enum: ['text'] }, text: TEXT }, ['type', 'text'])
  return object({ resultType: { enum: ['complete'] }, content: { type: 'array', items: block }, isError: { type: 'boolean' }, _meta: { type: 'object', description: 'The revision of the skill, as `skillserve/revision`, when it is known: see the header `Skill-Revision`' } }, ['content', 'isError'])
}

function object (properties: Readonly<Record<string, object>>, required: readonly string[]): object {
  return { type: 'object', properties, ...required.length > 0 && { required } }
}
