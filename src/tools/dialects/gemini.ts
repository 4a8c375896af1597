import { isJsonObject, own } from '../json-object.ts'
import { describeTool, type Dialect, idMember, readId, readName } from './dialect.ts'

/** Gemini: a part `{"functionCall":{"id"?,"name","args"?}}`, answered by a `functionResponse` part. */
export const gemini = createGeminiDialect('functionCall', 'functionResponse')

/** The same in snake case, as the Python SDK and Vertex write it. */
export const geminiSnakeCase = createGeminiDialect('function_call', 'function_response')

function createGeminiDialect (callKey: string, responseKey: string): Dialect {
  return {
    name: 'gemini',

    recognise: (value) => typeof own(own(value, callKey), 'name') === 'string' && !Object.hasOwn(value, 'role'),

    unwrap (value) {
      const candidates = own(value, 'candidates')
      const content = Array.isArray(candidates) ? own(candidates[0], 'content') : own(value, 'content')
      const parts = own(content, 'parts') ?? own(value, 'parts')
      const calls = Array.isArray(parts) ? parts.filter((part) => isJsonObject(own(part, callKey))) : []
      return calls.length > 0 ? calls : undefined
    },

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
  }
}
