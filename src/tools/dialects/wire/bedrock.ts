import { Type } from '@sinclair/typebox'
import { isJsonObject, own } from '../../../core/shared/json.ts'
import { callsIn, type Dialect, IdSchema, readParts } from '../dialect.ts'

/** Bedrock Converse: a block `{"toolUse":{"toolUseId","name","input"}}`, answered by a `toolResult` block. */
export const bedrock = {
  name: 'bedrock',
  title: 'Bedrock Converse',

  resultSchema: Type.Object({
    toolResult: Type.Object({
      toolUseId: Type.Optional(IdSchema),
      content: Type.Array(Type.Object({ text: Type.String() })),
      status: Type.Union([Type.Literal('success'), Type.Literal('error')])
    })
  }),
  example: { toolUse: { toolUseId: 'tooluse_01', name: 'get_skill', input: { skill_name: 'calculator' } } },

  recognise: (value) => typeof own(own(value, 'toolUse'), 'name') === 'string',

  unwrap: (value) =>
    callsIn(own(own(own(value, 'output'), 'message') ?? own(value, 'message') ?? value, 'content'), isToolUse),

  // Kinds of blocks differ in their keys; Bedrock runs its server tools itself.
  isContent: (value) => !isToolUse(value),

  isAnswer: (value) => Object.hasOwn(value, 'toolResult'),

  readCall: (value) => readParts(own(value, 'toolUse'), 'name', 'input', 'toolUseId'),

  writeResult: ({ id }, { text, isError }) =>
    ({ toolResult: { toolUseId: id, content: [{ text }], status: isError ? 'error' : 'success' } }),

  writeDefinitions: (tools) => tools.map(({ name, currentDescription, parameters }) =>
    ({ toolSpec: { name, description: currentDescription, inputSchema: { json: parameters } } }))
} as const satisfies Dialect

function isToolUse (value: unknown): boolean {
  const call = own(value, 'toolUse')
  return isJsonObject(call) && own(call, 'type') !== 'server_tool_use'
}
