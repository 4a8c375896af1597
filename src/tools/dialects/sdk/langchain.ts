import { Type } from '@sinclair/typebox'
import { own } from '../../../core/ground/json.ts'
import { type Dialect, idMember, IdSchema, readId, readName } from '../dialect.ts'

/**
 * LangChain: `{"name","args","id","type":"tool_call"}`, answered by the fields of a ToolMessage. The `tool_calls` of a message
 * are OpenAI's container; a message that JavaScript has serialised keeps them in `kwargs`.
 */
export const langchain = {
  name: 'langchain',
  title: 'LangChain',

  callSchema: Type.Object({
    type: Type.Literal('tool_call'),
    id: Type.Optional(IdSchema),
    name: Type.String(),
    args: Type.Optional(Type.Unknown())
  }),
  resultSchema: Type.Object({
    type: Type.Literal('tool'),
    role: Type.Literal('tool'),
    tool_call_id: Type.Optional(IdSchema),
    name: Type.String(),
    content: Type.String(),
    status: Type.Union([Type.Literal('success'), Type.Literal('error')])
  }),
  example: { name: 'get_skill', args: { skill_name: 'calculator' }, id: 'call_1', type: 'tool_call' },

  recognise: (value) => own(value, 'type') === 'tool_call' && typeof own(value, 'name') === 'string',

  unwrap (value) {
    const calls = own(value, 'lc') === undefined ? undefined : own(own(value, 'kwargs'), 'tool_calls')
    return Array.isArray(calls) ? calls : undefined
  },

  isAnswer: (value) => own(value, 'type') === 'tool',

  readCall: (value) => ({ id: readId(own(value, 'id')), name: readName(own(value, 'name')), args: own(value, 'args') }),

  writeResult: (call, outcome) =>
    `{"type":"tool","role":"tool",${idMember('tool_call_id', call)}"name":${JSON.stringify(call.name)},` +
    `"content":${outcome.quotedText},"status":"${outcome.isError ? 'error' : 'success'}"}`
} as const satisfies Dialect
