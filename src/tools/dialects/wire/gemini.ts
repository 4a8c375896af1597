import { Type } from '@sinclair/typebox'
import { isJsonObject, own } from '../../../core/shared/json.ts'
import { callsIn, type Dialect, IdSchema, readParts } from '../dialect.ts'

const ResponseSchema = Type.Object({
  id: Type.Optional(IdSchema),
  name: Type.String(),
  response: Type.Object({ output: Type.Optional(Type.String()), error: Type.Optional(Type.String()) })
})

const EXAMPLE = { id: 'call-1', name: 'get_skill', args: { skill_name: 'calculator' } } as const

/** Gemini: a part `{"functionCall":{"id"?,"name","args"?}}`, answered by a `functionResponse` part. */
export const gemini = {
  name: 'gemini',
  title: 'Gemini',
  resultSchema: Type.Object({ functionResponse: ResponseSchema }),
  example: { functionCall: EXAMPLE },
  ...createGeminiDialect('functionCall', 'functionResponse'),

  writeDefinitions: (tools) => [{
    functionDeclarations: tools.map(({ name, currentDescription, parameters }) =>
      ({ name, description: currentDescription, parametersJsonSchema: parameters }))
  }]
} as const satisfies Dialect

/** Gemini in snake case, as the Python SDK and Vertex write it. */
export const geminiSnakeCase = {
  name: 'gemini-snake-case',
  title: 'Gemini in snake case',
  resultSchema: Type.Object({ function_response: ResponseSchema }),
  example: { function_call: EXAMPLE },
  ...createGeminiDialect('function_call', 'function_response')
} as const satisfies Dialect

function createGeminiDialect (callKey: string, responseKey: string) {
  const isCall = (part: unknown) => isJsonObject(own(part, callKey))

  return {
    recognise: (value) => typeof own(own(value, callKey), 'name') === 'string' && !Object.hasOwn(value, 'role'),

    unwrap (value) {
      const candidates = own(value, 'candidates')
      const content = Array.isArray(candidates) ? own(candidates[0], 'content') : own(value, 'content')
      return callsIn(own(content, 'parts') ?? own(value, 'parts'), isCall)
    },

    // Every part but a call is content: parts differ in their keys, and each version of the API has more kinds.
    isContent: (value) => !isCall(value),

    isAnswer: (value) => Object.hasOwn(value, responseKey),

    readCall: (value) => readParts(own(value, callKey), 'name', 'args', 'id'),

    writeResult: ({ id, name }, { text, isError }) =>
      ({ [responseKey]: { id, name, response: { [isError ? 'error' : 'output']: text } } })
  } satisfies Partial<Dialect>
}
