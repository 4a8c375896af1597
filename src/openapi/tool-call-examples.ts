import type { Examples } from './responses.ts'

const ARGUMENTS = { skill_name: 'calculator' }
const ARGUMENTS_TEXT = JSON.stringify(ARGUMENTS)
const DOCUMENT_TEXT = '{"skill_name": "calculator", "documentation": "# Calculator Skill\\n"}'

/** One call in each dialect, and a batch. */
export const toolCallExamples = {
  openai: {
    summary: 'OpenAI Chat Completions',
    value: { id: 'call_abc123', type: 'function', function: { name: 'get_skill', arguments: ARGUMENTS_TEXT } }
  },
  openaiBatch: {
    summary: 'OpenAI Chat Completions, several calls',
    value: {
      tool_calls: [
        { id: 'call_1', type: 'function', function: { name: 'list_skills', arguments: '{}' } },
        { id: 'call_2', type: 'function', function: { name: 'get_skill', arguments: ARGUMENTS_TEXT } }
      ]
    }
  },
  openaiResponses: {
    summary: 'OpenAI Responses',
    value: { type: 'function_call', call_id: 'call_abc123', name: 'get_skill', arguments: ARGUMENTS_TEXT }
  },
  anthropic: {
    summary: 'Anthropic Messages',
    value: { type: 'tool_use', id: 'toolu_01', name: 'get_skill', input: ARGUMENTS }
  },
  gemini: {
    summary: 'Gemini',
    value: { functionCall: { id: 'call-1', name: 'get_skill', args: ARGUMENTS } }
  },
  mcp: {
    summary: 'MCP tools/call',
    value: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_skill', arguments: ARGUMENTS } }
  }
} as const satisfies Examples

/** The answers to the calls above. */
export const toolCallAnswerExamples = {
  openai: {
    summary: 'OpenAI Chat Completions',
    value: { role: 'tool', tool_call_id: 'call_abc123', name: 'get_skill', content: DOCUMENT_TEXT }
  },
  openaiBatch: {
    summary: 'OpenAI Chat Completions, several calls',
    value: [
      { role: 'tool', tool_call_id: 'call_1', name: 'list_skills', content: '{"skills": ["calculator"]}' },
      { role: 'tool', tool_call_id: 'call_2', name: 'get_skill', content: DOCUMENT_TEXT }
    ]
  },
  openaiResponses: {
    summary: 'OpenAI Responses',
    value: { type: 'function_call_output', call_id: 'call_abc123', output: DOCUMENT_TEXT }
  },
  anthropic: {
    summary: 'Anthropic Messages',
    value: { type: 'tool_result', tool_use_id: 'toolu_01', content: DOCUMENT_TEXT, is_error: false }
  },
  gemini: {
    summary: 'Gemini',
    value: { functionResponse: { id: 'call-1', name: 'get_skill', response: { output: DOCUMENT_TEXT } } }
  },
  mcp: {
    summary: 'MCP tools/call',
    value: {
      jsonrpc: '2.0',
      id: 1,
      result: { resultType: 'complete', content: [{ type: 'text', text: DOCUMENT_TEXT }], isError: false, _meta: { 'skillserve/revision': `sha256:${'0123456789abcdef'.repeat(4)}` } }
    }
  }
} as const satisfies Record<keyof typeof toolCallExamples, object>

/** Arguments of one call. */
export const toolArgumentsExamples = {
  get_skill: { summary: 'get_skill, Skill', value: ARGUMENTS },
  read_file_in_skill: { summary: 'read_file_in_skill', value: { ...ARGUMENTS, file_path: 'examples/basic.py' } },
  list_skills: { summary: 'list_skills', value: {} },
  search_skills: { summary: 'search_skills', value: { query: 'exact decimal arithmetic', limit: 5 } },
  skill: { summary: 'skill', value: { skill: 'calculator' } }
} as const satisfies Examples
