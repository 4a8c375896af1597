import { Type } from '@sinclair/typebox'
import { own } from '../../../core/shared/json.ts'
import { callsIn, type Dialect, IdSchema } from '../dialect.ts'
import { FUNCTION_CALL_EXAMPLE, isFunctionCall, readFunctionCall } from '../function-call.ts'

const MESSAGE = { role: 'assistant', toolCalls: [FUNCTION_CALL_EXAMPLE] } as const

/** Mistral's SDK: OpenAI's completion in camel case. `arguments` is a string or an object. */
export const mistral = {
  name: 'mistral-sdk',
  title: "Mistral's SDK",
  resultSchema: Type.Object({
    role: Type.Literal('tool'),
    toolCallId: Type.Optional(IdSchema),
    name: Type.String(),
    content: Type.String()
  }),
  example: MESSAGE,
  ...createCamelCaseDialect((value) => {
    const choices = own(value, 'choices')
    return Array.isArray(choices) ? own(choices[0], 'message') : value
  }),

  writeResult: ({ id, name }, { text }) => ({ role: 'tool', toolCallId: id, name, content: text })
} as const satisfies Dialect

/** Cohere's SDK for its second API: the message is inside the response, and a result has no name. */
export const cohere = {
  name: 'cohere-sdk',
  title: "Cohere's SDK",
  resultSchema: Type.Object({
    role: Type.Literal('tool'), toolCallId: Type.Optional(IdSchema), content: Type.String()
  }),
  example: { message: MESSAGE },
  ...createCamelCaseDialect((value) => own(value, 'message')),

  writeResult: ({ id }, { text }) => ({ role: 'tool', toolCallId: id, content: text })
} as const satisfies Dialect

function createCamelCaseDialect (messageOf: (value: unknown) => unknown) {
  return {
    unwrap: (value) => callsIn(own(messageOf(value), 'toolCalls')),

    recogniseInside: isFunctionCall,

    isAnswer: (value) => own(value, 'role') === 'tool',

    readCall: readFunctionCall
  } satisfies Partial<Dialect>
}
