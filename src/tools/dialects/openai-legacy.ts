import { own } from '../json-object.ts'
import { type Dialect, readName } from './dialect.ts'
import { openaiChat } from './openai-chat.ts'

/**
 * OpenAI's older form, one call on the assistant message: `{"role":"assistant","function_call":{"name","arguments"}}`,
 * answered by `{"role":"function","name","content"}`. Gemini's `function_call` has neither `role` nor `arguments`.
 */
export const openaiLegacy = {
  name: 'openai',

  recognise (value) {
    const call = own(value, 'function_call')
    return typeof own(call, 'name') === 'string' && (own(value, 'role') === 'assistant' || own(call, 'arguments') !== undefined)
  },

  readCall (value) {
    const call = own(value, 'function_call')
    return { id: undefined, name: readName(own(call, 'name')), args: own(call, 'arguments') }
  },

  writeResult: (call, outcome) => `{"role":"function","name":${JSON.stringify(call.name)},"content":${outcome.quotedText}}`,

  writeDefinitions: openaiChat.writeDefinitions
} satisfies Dialect
