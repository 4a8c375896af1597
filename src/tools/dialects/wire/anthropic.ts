import { Type } from '@sinclair/typebox'
import { own } from '../../../core/shared/json.ts'
import { callsIn, type Dialect, IdSchema, readParts } from '../dialect.ts'

/** Anthropic Messages: a `tool_use` block, answered by a `tool_result` block for the next user message. */
export const anthropic = {
  name: 'anthropic',
  title: 'Anthropic Messages',

  resultSchema: Type.Object({
    type: Type.Literal('tool_result'),
    tool_use_id: Type.Optional(IdSchema),
    content: Type.String(),
    is_error: Type.Boolean()
  }),
  example: { type: 'tool_use', id: 'toolu_01', name: 'get_skill', input: { skill_name: 'calculator' } },

  recognise: isToolUse,

  unwrap (value) {
    const isMessage = own(value, 'role') === 'assistant' || own(value, 'type') === 'message'
    return isMessage ? callsIn(own(value, 'content'), isToolUse) : undefined
  },

  isContent: (value) => typeof own(value, 'type') === 'string',

  isAnswer: (value) => own(value, 'type') === 'tool_result',

  readCall: (value) => readParts(value, 'name', 'input', 'id'),

  writeResult: ({ id }, { text, isError }) =>
    ({ type: 'tool_result', tool_use_id: id, content: text, is_error: isError }),

  writeDefinitions: (tools) => tools.map(({ name, currentDescription, parameters }) =>
    ({ name, description: currentDescription, input_schema: parameters }))
} as const satisfies Dialect

function isToolUse (value: unknown): boolean {
  return own(value, 'type') === 'tool_use'
}
