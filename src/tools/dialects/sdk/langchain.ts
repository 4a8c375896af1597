import { Type } from '@sinclair/typebox'
import { own } from '../../../core/shared/json.ts'
import { type Dialect, IdSchema, readParts } from '../dialect.ts'

/**
 * LangChain: `{"name","args","id","type":"tool_call"}`, answered by the fields of a ToolMessage. A message serialised
 * by JavaScript keeps its calls in `kwargs`. Calls whose arguments are not JSON are in `invalid_tool_calls`, and need
 * an answer too.
 */
export const langchain = {
  name: 'langchain',
  title: 'LangChain',

  resultSchema: Type.Object({
    type: Type.Literal('tool'),
    role: Type.Literal('tool'),
    tool_call_id: Type.Optional(IdSchema),
    name: Type.String(),
    content: Type.String(),
    status: Type.Union([Type.Literal('success'), Type.Literal('error')])
  }),
  example: { name: 'get_skill', args: { skill_name: 'calculator' }, id: 'call_1', type: 'tool_call' },

  recognise: (value) => isTyped(value) && typeof own(value, 'name') === 'string',

  unwrap (value) {
    const message = own(value, 'lc') === undefined ? value : own(value, 'kwargs')
    const [calls, invalid] = [own(message, 'tool_calls'), own(message, 'invalid_tool_calls')]
    if (!Array.isArray(invalid)) return message !== value && Array.isArray(calls) ? calls : undefined
    return Array.isArray(calls) ? [...calls, ...invalid] : invalid
  },

  // In a message made from one of OpenAI's, an invalid call has no `type`.
  recogniseInside: (item) =>
    typeof own(item, 'name') === 'string' && (isTyped(item) || own(item, 'type') === undefined),

  isAnswer: (value) => own(value, 'type') === 'tool',

  readCall: (value) => readParts(value, 'name', 'args', 'id'),

  writeResult: ({ id, name }, { text, isError }) =>
    ({ type: 'tool', role: 'tool', tool_call_id: id, name, content: text, status: isError ? 'error' : 'success' })
} as const satisfies Dialect

function isTyped (value: unknown): boolean {
  const type = own(value, 'type')
  return type === 'tool_call' || type === 'invalid_tool_call'
}
