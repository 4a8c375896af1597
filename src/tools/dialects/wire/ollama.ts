import { Type } from '@sinclair/typebox'
import { isJsonObject, own } from '../../../core/shared/json.ts'
import { type Dialect, IdSchema } from '../dialect.ts'
import { isFunctionCall, readFunctionCall } from '../function-call.ts'

/** Ollama: its whole response, which has a `message` and `done`, answered by `tool` messages with a `tool_name`. */
export const ollama = {
  name: 'ollama',
  title: 'Ollama',

  resultSchema: Type.Object({
    role: Type.Literal('tool'),
    tool_call_id: Type.Optional(IdSchema),
    tool_name: Type.String(),
    content: Type.String()
  }),
  example: {
    model: 'qwen3',
    message: {
      role: 'assistant',
      content: '',
      tool_calls: [{ function: { name: 'get_skill', arguments: { skill_name: 'calculator' } } }]
    },
    done: true
  },

  unwrap (value) {
    const message = own(value, 'message')
    if (typeof own(value, 'done') !== 'boolean' || !isJsonObject(message)) return undefined
    const calls = own(message, 'tool_calls')
    return Array.isArray(calls) ? calls : []
  },

  recogniseInside: isFunctionCall,

  isAnswer: (value) => own(value, 'role') === 'tool',

  readCall: readFunctionCall,

  writeResult: ({ id, name }, { text }) => ({ role: 'tool', tool_call_id: id, tool_name: name, content: text })
} as const satisfies Dialect
