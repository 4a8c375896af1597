import { Type } from '@sinclair/typebox'
import { own } from '../../../core/shared/json.ts'
import { type Dialect, readParts } from '../dialect.ts'

/**
 * OpenAI's older form, one call on the assistant message: `{"role":"assistant","function_call":{"name","arguments"}}`,
 * answered by `{"role":"function","name","content"}`. Gemini's `function_call` has neither `role` nor `arguments`.
 */
export const openaiLegacy = {
  name: 'openai-legacy',
  title: 'OpenAI Chat Completions with function_call',

  resultSchema: Type.Object({ role: Type.Literal('function'), name: Type.String(), content: Type.String() }),
  example: {
    role: 'assistant', content: null, function_call: { name: 'get_skill', arguments: '{"skill_name":"calculator"}' }
  },

  recognise (value) {
    const call = own(value, 'function_call')
    return typeof own(call, 'name') === 'string' &&
      (own(value, 'role') === 'assistant' || own(call, 'arguments') !== undefined)
  },

  isAnswer: (value) => own(value, 'role') === 'function',

  readCall: (value) => readParts(own(value, 'function_call'), 'name', 'arguments'),

  writeResult: ({ name }, { text }) => ({ role: 'function', name, content: text })
} as const satisfies Dialect
