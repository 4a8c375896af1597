import { Type } from '@sinclair/typebox'
import { isJsonObject, type JsonObject, own } from '../text/json-object.ts'
import { type Dialect, idMember, IdSchema, readId, readName } from './dialect.ts'

/** Where bare calls put their arguments. */
const BARE_ARGUMENT_KEYS = ['arguments', 'input', 'args'] as const

/**
 * OpenAI Chat Completions: `{"id","type":"function","function":{"name","arguments"}}`, answered by a `tool` message.
 * Bare calls `{"name","arguments"}`, as Ollama's clients write them, are answered in the same way; Ollama's whole
 * response has its `message` without `choices`. Its containers come first: a message may hold text blocks beside `tool_calls`.
 */
export const openaiChat = {
  name: 'openai',
  title: 'OpenAI Chat Completions',

  callSchema: Type.Object({
    id: Type.Optional(IdSchema),
    function: Type.Object({ name: Type.String(), arguments: Type.Optional(Type.Unknown()) })
  }),
  resultSchema: Type.Object({
    role: Type.Literal('tool'),
    tool_call_id: Type.Optional(IdSchema),
    name: Type.String(),
    content: Type.String()
  }),
  example: { id: 'call_abc123', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"calculator"}' } },

  recognise: (value) => typeof own(own(value, 'function'), 'name') === 'string' || isCustomCall(value) || isBareCall(value),

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
    const id = readId(own(value, 'id'))
    const definition = own(value, 'function')
    if (isJsonObject(definition)) return { id, name: readName(own(definition, 'name')), args: own(definition, 'arguments') }
    if (isJsonObject(value) && isCustomCall(value)) {
      return {
        id,
        name: readName(own(own(value, 'custom'), 'name')),
        args: undefined,
        problem: 'A custom tool call carries free text: call the tool as a function with JSON arguments'
      }
    }
    return { id, name: readName(own(value, 'name')), args: bareArguments(value) }
  },

  writeResult: (call, outcome) =>
    `{"role":"tool",${idMember('tool_call_id', call)}"name":${JSON.stringify(call.name)},"content":${outcome.quotedText}}`,

  writeDefinitions: (tools) => tools.map(({ name, description, parameters }) =>
    ({ type: 'function' as const, function: { name, description, parameters } }))
} as const satisfies Dialect

function isCustomCall (value: JsonObject): boolean {
  return own(value, 'type') === 'custom' && isJsonObject(own(value, 'custom'))
}

/** Another `type`, or a `role`, marks another provider's item or a message: those are not guessed at. */
function isBareCall (value: JsonObject): boolean {
  const type = own(value, 'type')
  return typeof own(value, 'name') === 'string' && (type === undefined || type === 'function') &&
    !Object.hasOwn(value, 'role') && !Object.hasOwn(value, 'jsonrpc') &&
    BARE_ARGUMENT_KEYS.some((key) => Object.hasOwn(value, key))
}

function bareArguments (value: unknown): unknown {
  const key = BARE_ARGUMENT_KEYS.find((name) => own(value, name) !== undefined)
  return key === undefined ? undefined : own(value, key)
}
