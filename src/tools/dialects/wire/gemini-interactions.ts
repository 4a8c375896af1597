import { Type } from '@sinclair/typebox'
import { isJsonObject, own } from '../../../core/shared/json.ts'
import { callsIn, type Dialect, IdSchema, readParts } from '../dialect.ts'

/**
 * Gemini Interactions: a step `{"type":"function_call","id","name","arguments"}`, answered by a `function_result` step
 * with the id as `call_id`. OpenAI's item of the same type has a `call_id` of its own, and text as arguments.
 */
export const geminiInteractions = {
  name: 'gemini-interactions',
  title: 'Gemini Interactions',

  resultSchema: Type.Object({
    type: Type.Literal('function_result'),
    call_id: Type.Optional(IdSchema),
    name: Type.String(),
    result: Type.String(),
    is_error: Type.Optional(Type.Literal(true))
  }),
  example: { type: 'function_call', id: 'fc_1', name: 'get_skill', arguments: { skill_name: 'calculator' } },

  recognise: (value) =>
    isCall(value) && typeof own(value, 'id') === 'string' && isJsonObject(own(value, 'arguments')) &&
    !Object.hasOwn(value, 'call_id') && !Object.hasOwn(value, 'callId'),

  unwrap: (value) => callsIn(own(value, 'steps') ?? own(value, 'outputs'), isCall),

  isContent: (value) => typeof own(value, 'type') === 'string' && !isCall(value),

  isAnswer: (value) => own(value, 'type') === 'function_result',

  // A result has the id of its call, which then needs no other result.
  readCall: (value) => readParts(value, 'name', 'arguments', own(value, 'id') === undefined ? 'call_id' : 'id'),

  writeResult: ({ id, name }, { text, isError }) =>
    ({ type: 'function_result', call_id: id, name, result: text, ...isError && { is_error: true } })
} as const satisfies Dialect

function isCall (value: unknown): boolean {
  return own(value, 'type') === 'function_call'
}
