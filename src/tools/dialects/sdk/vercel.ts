import { Type } from '@sinclair/typebox'
import { own } from '../../../core/shared/json.ts'
import { callsIn, type Dialect, IdSchema, readParts } from '../dialect.ts'

/** Vercel's AI SDK: a part `{"type":"tool-call","toolCallId","toolName","input"}`, answered by a `tool-result` part. */
export const vercel = {
  name: 'vercel-ai-sdk',
  title: "Vercel's AI SDK",

  resultSchema: Type.Object({
    type: Type.Literal('tool-result'),
    toolCallId: Type.Optional(IdSchema),
    toolName: Type.String(),
    output: Type.Object({ type: Type.Union([Type.Literal('text'), Type.Literal('error-text')]), value: Type.String() })
  }),
  example: { type: 'tool-call', toolCallId: 'call-1', toolName: 'get_skill', input: { skill_name: 'calculator' } },

  recognise: (value) => isCall(value) && typeof own(value, 'toolName') === 'string',

  unwrap: (value) => callsIn(own(value, 'toolCalls') ?? own(value, 'content'), isCall),

  isContent: (value) => typeof own(value, 'type') === 'string' && !isCall(value),

  isAnswer: (value) => own(value, 'type') === 'tool-result',

  // Version 4 calls the input `args`.
  readCall: (value) => readParts(value, 'toolName', own(value, 'input') === undefined ? 'args' : 'input', 'toolCallId'),

  writeResult: ({ id, name }, { text, isError }) => ({
    type: 'tool-result', toolCallId: id, toolName: name, output: { type: isError ? 'error-text' : 'text', value: text }
  })
} as const satisfies Dialect

/** Whether a part needs an answer: a call that the provider runs has its result in the same message. */
function isCall (value: unknown): boolean {
  return own(value, 'type') === 'tool-call' && own(value, 'providerExecuted') !== true
}
