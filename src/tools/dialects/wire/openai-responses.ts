import { Type } from '@sinclair/typebox'
import { own } from '../../../core/shared/json.ts'
import { callsIn, type Dialect, IdSchema, readParts } from '../dialect.ts'
import { FREE_TEXT } from '../function-call.ts'

/**
 * OpenAI Responses: `{"type":"function_call","call_id","name","arguments"}`, answered by a `function_call_output` with
 * the `call_id`. Agent SDKs keep the same item with `callId`, and the Realtime API has it in the `response` of an
 * event. A `custom_tool_call` carries free text; it is refused by a result, so that the conversation stays complete.
 */
export const openaiResponses = {
  name: 'openai-responses',
  title: 'OpenAI Responses',

  resultSchema: Type.Object({
    type: Type.Union([Type.Literal('function_call_output'), Type.Literal('custom_tool_call_output')]),
    call_id: Type.Optional(IdSchema),
    output: Type.String()
  }),
  example: {
    type: 'function_call', call_id: 'call_abc123', name: 'get_skill', arguments: '{"skill_name":"calculator"}'
  },

  recognise: (value) => isCall(value) && typeof (own(value, 'call_id') ?? own(value, 'callId')) === 'string',

  unwrap: (value) => callsIn(own(value, 'output') ?? own(own(value, 'response'), 'output'), isCall),

  isContent: (value) => typeof own(value, 'type') === 'string' && !isCall(value),

  isAnswer: (value) =>
    own(value, 'type') === 'function_call_output' || own(value, 'type') === 'custom_tool_call_output',

  readCall (value) {
    const call = readParts(value, 'name', 'arguments', own(value, 'call_id') === undefined ? 'callId' : 'call_id')
    return isCustomCall(value) ? { ...call, problem: FREE_TEXT, isCustom: true } : call
  },

  writeResult: ({ id, isCustom }, { text }) =>
    ({ type: isCustom === true ? 'custom_tool_call_output' : 'function_call_output', call_id: id, output: text }),

  writeDefinitions: (tools) => tools.map(({ name, currentDescription, parameters }) =>
    ({ type: 'function' as const, name, description: currentDescription, parameters, strict: false }))
} as const satisfies Dialect

function isCall (value: unknown): boolean {
  return own(value, 'type') === 'function_call' || isCustomCall(value)
}

function isCustomCall (value: unknown): boolean {
  return own(value, 'type') === 'custom_tool_call'
}
