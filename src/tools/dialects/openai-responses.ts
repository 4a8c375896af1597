import { own } from '../json-object.ts'
import { describeTool, type Dialect, idMember, readId, readName } from './dialect.ts'

/**
 * OpenAI Responses: `{"type":"function_call","call_id","name","arguments"}`, answered by a `function_call_output` with
 * the `call_id`. `callId` is how agent SDKs keep the same item in memory.
 */
export const openaiResponses = {
  name: 'openai-responses',

  recognise: (value) => isFunctionCall(value) && typeof callId(value) === 'string',

  unwrap (value) {
    const output = own(value, 'output')
    return Array.isArray(output) ? output.filter(isFunctionCall) : undefined
  },

  isContent: (value) => typeof own(value, 'type') === 'string' && !isFunctionCall(value),

  readCall: (value) => ({ id: readId(callId(value)), name: readName(own(value, 'name')), args: own(value, 'arguments') }),

  writeResult: (call, outcome) => `{"type":"function_call_output",${idMember('call_id', call)}"output":${outcome.quotedText}}`,

  writeDefinitions: (tools) => tools.map((tool) =>
    ({ type: 'function' as const, name: tool.name, description: describeTool(tool), parameters: tool.parameters, strict: false }))
} satisfies Dialect

function isFunctionCall (value: unknown): boolean {
  return own(value, 'type') === 'function_call'
}

function callId (value: unknown): unknown {
  return own(value, 'call_id') ?? own(value, 'callId')
}
