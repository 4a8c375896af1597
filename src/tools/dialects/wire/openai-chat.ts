import { Type } from '@sinclair/typebox'
import { isJsonObject, type JsonObject, own } from '../../../core/shared/json.ts'
import { type Dialect, IdSchema, readId, readParts } from '../dialect.ts'
import { FREE_TEXT, FUNCTION_CALL_EXAMPLE, isFunctionCall, readFunctionCall } from '../function-call.ts'

/** Keys of the arguments in calls without an envelope. */
const BARE_ARGUMENT_KEYS = ['arguments', 'input', 'args', 'parameters'] as const
const FOREIGN_KEYS = ['role', 'jsonrpc', 'description'] as const

/**
 * OpenAI Chat Completions: `{"id","type":"function","function":{"name","arguments"}}`, answered by a `tool` message.
 * Bare calls are answered in the same way: `{"name","arguments"}` as people write them, `{"name","parameters"}` of
 * Llama and Cohere v1, `{"name","args"}` of Gemini's `functionCalls`. Its containers are asked before those of others:
 * a message may have text blocks next to `tool_calls`.
 */
export const openaiChat = {
  name: 'openai',
  title: 'OpenAI Chat Completions',

  resultSchema: Type.Object({
    role: Type.Literal('tool'),
    tool_call_id: Type.Optional(IdSchema),
    name: Type.String(),
    content: Type.String()
  }),
  example: FUNCTION_CALL_EXAMPLE,

  recognise: (value) => isFunctionCall(value) || isCustomCall(value) || isBareCall(value),

  recognisedLast: true,

  unwrap (value) {
    const calls = own(value, 'tool_calls')
    if (Array.isArray(calls)) return calls
    const choices = own(value, 'choices')
    const message = own(Array.isArray(choices) ? choices[0] : value, 'message')
    if (!isJsonObject(message)) return undefined
    const messageCalls = own(message, 'tool_calls')
    if (Array.isArray(messageCalls) && messageCalls.length > 0) return messageCalls
    return isJsonObject(own(message, 'function_call')) ? [message] : []
  },

  isAnswer: (value) => own(value, 'role') === 'tool',

  readCall (value) {
    if (isJsonObject(own(value, 'function'))) return readFunctionCall(value)
    const id = readId(own(value, 'id'))
    if (isJsonObject(value) && isCustomCall(value)) {
      return { ...readParts(own(value, 'custom'), 'name'), id, problem: FREE_TEXT }
    }
    return readParts(value, 'name', BARE_ARGUMENT_KEYS.find((key) => own(value, key) !== undefined), 'id')
  },

  writeResult: ({ id, name }, { text }) => ({ role: 'tool', tool_call_id: id, name, content: text }),

  writeDefinitions: (tools) => tools.map(({ name, description, parameters }) =>
    ({ type: 'function' as const, function: { name, description, parameters } }))
} as const satisfies Dialect

function isCustomCall (value: JsonObject): boolean {
  return own(value, 'type') === 'custom' && isJsonObject(own(value, 'custom'))
}

/** Recognises a call without envelope. `role` or another `type` mean another provider, `description` a definition. */
function isBareCall (value: JsonObject): boolean {
  const type = own(value, 'type')
  return typeof own(value, 'name') === 'string' && (type === undefined || type === 'function') &&
    !FOREIGN_KEYS.some((key) => Object.hasOwn(value, key)) &&
    BARE_ARGUMENT_KEYS.some((key) => Object.hasOwn(value, key))
}
