import { Type } from '@sinclair/typebox'
import { own, ownText } from '../../../core/shared/json.ts'
import { type Dialect, idMember, IdSchema, readId } from '../dialect.ts'

/** Anthropic Messages: a `tool_use` block, answered by a `tool_result` block for the next user message. */
export const anthropic = {
  name: 'anthropic',
  title: 'Anthropic Messages',

  callSchema: Type.Object({
    type: Type.Literal('tool_use'),
    id: Type.Optional(IdSchema),
    name: Type.String(),
    input: Type.Optional(Type.Unknown())
  }),
  resultSchema: Type.Object({
    type: Type.Literal('tool_result'),
    tool_use_id: Type.Optional(IdSchema),
    content: Type.String(),
    is_error: Type.Boolean()
  }),
  example: { type: 'tool_use', id: 'toolu_01', name: 'get_skill', input: { skill_name: 'calculator' } },

  recognise: isToolUse,

  unwrap (value) {
    const content = own(value, 'content')
    const isMessage = own(value, 'role') === 'assistant' || own(value, 'type') === 'message'
    return isMessage && Array.isArray(content) ? content.filter(isToolUse) : undefined
  },

  isContent: (value) => typeof own(value, 'type') === 'string',

  isAnswer: (value) => own(value, 'type') === 'tool_result',

  readCall: (value) => ({ id: readId(own(value, 'id')), name: ownText(value, 'name'), args: own(value, 'input') }),

  writeResult: (call, outcome) =>
    `{"type":"tool_result",${idMember('tool_use_id', call)}"content":${outcome.quotedText},"is_error":${outcome.isError}}`,

  writeDefinitions: (tools) => tools.map(({ name, currentDescription, parameters }) =>
    ({ name, description: currentDescription, input_schema: parameters }))
} as const satisfies Dialect

function isToolUse (value: unknown): boolean {
  return own(value, 'type') === 'tool_use'
}
