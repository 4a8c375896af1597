import { Type } from '@sinclair/typebox'
import { own } from '../text/json-object.ts'
import { type Dialect, idMember, IdSchema, readId, readName } from './dialect.ts'

/**
 * OpenAI Responses: `{"type":"function_call","call_id","name","arguments"}`, answered by a `function_call_output` with
 * the `call_id`. `callId` is how agent SDKs keep the same item in memory.
 */
export const openaiResponses = {
  name: 'openai-responses',
  title: 'OpenAI Responses',

  callSchema: Type.Object({
    type: Type.Literal('function_call'),
    call_id: Type.String(),
    name: Type.String(),
    arguments: Type.Optional(Type.Unknown())
  }),
  resultSchema: Type.Object({
    type: Type.Literal('function_call_output'),
    call_id: Type.Optional(IdSchema),
    output: Type.String()
  }),
  example: { type: 'function_call', call_id: 'call_abc123', name: 'get_skill', arguments: '{"skill_name":"calculator"}' },

  recognise: (value) => isFunctionCall(value) && typeof callId(value) === 'string',

  unwrap (value) {
    const output = own(value, 'output')
    return Array.isArray(output) ? output.filter(isFunctionCall) : undefined
  },

  isContent: (value) => typeof own(value, 'type') === 'string' && !isFunctionCall(value),

  isAnswer: (value) => own(value, 'type') === 'function_call_output',

  readCall: (value) => ({ id: readId(callId(value)), name: readName(own(value, 'name')), args: own(value, 'arguments') }),

  writeResult: (call, outcome) => `{"type":"function_call_output",${idMember('call_id', call)}"output":${outcome.quotedText}}`,

  writeDefinitions: (tools) => tools.map(({ name, currentDescription, parameters }) =>
    ({ type: 'function' as const, name, description: currentDescription, parameters, strict: false }))
} as const satisfies Dialect

function isFunctionCall (value: unknown): boolean {
  return own(value, 'type') === 'function_call'
}

function callId (value: unknown): unknown {
  return own(value, 'call_id') ?? own(value, 'callId')
}
