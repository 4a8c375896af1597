import { isJsonObject, own } from '../json-object.ts'
import { describeTool, type Dialect, idMember, readId, readName } from './dialect.ts'

/** Gemini: a part `{"functionCall":{"id"?,"name","args"?}}`, answered by a `functionResponse` part. */
export const gemini = createGeminiDialect('functionCall', 'functionResponse')

/** The same in snake case, as the Python SDK and Vertex write it. */
export const geminiSnakeCase = createGeminiDialect('function_call', 'function_response')

function createGeminiDialect (callKey: string, responseKey: string) {
  const isCall = (part: unknown) => isJsonObject(own(part, callKey))

  return {
    name: 'gemini',

    recognise: (value) => typeof own(own(value, callKey), 'name') === 'string' && !Object.hasOwn(value, 'role'),

    unwrap (value) {
      const candidates = own(value, 'candidates')
      const content = Array.isArray(candidates) ? own(candidates[0], 'content') : own(value, 'content')
      const parts = own(content, 'parts') ?? own(value, 'parts')
      return Array.isArray(parts) ? parts.filter(isCall) : undefined
    },

    // Only a `functionCall` can be a call: parts are told apart by their keys, and there are more kinds with each version.
    isContent: (value) => !isCall(value),

    readCall (value) {
      const call = own(value, callKey)
      return { id: readId(own(call, 'id')), name: readName(own(call, 'name')), args: own(call, 'args') }
    },

    writeResult (call, outcome) {
      const response = `{"${outcome.isError ? 'error' : 'output'}":${outcome.quotedText}}`
      return `{"${responseKey}":{${idMember('id', call)}"name":${JSON.stringify(call.name)},"response":${response}}}`
    },

    writeDefinitions: (tools) => [{
      functionDeclarations: tools.map((tool) =>
        ({ name: tool.name, description: describeTool(tool), parametersJsonSchema: tool.parameters }))
    }]
  } satisfies Dialect
}
