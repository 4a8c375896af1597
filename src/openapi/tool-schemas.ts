import { type TSchema, Type } from '@sinclair/typebox'
import { reference, StringEnum } from '../schemas/typebox.ts'
import { RevisionSchema } from '../schemas/skills.ts'
import { openEnvelope } from '../tools/dialects/envelope.ts'
import { FUNCTION_CALL_EXAMPLE } from '../tools/dialects/function-call.ts'
import { DEFINITION_FORMATS, DIALECTS, writeDefinitions } from '../tools/dialects/index.ts'
import { MAX_TOOL_CALLS } from '../tools/limits.ts'
import { getSkill } from '../tools/reader/get-skill.ts'
import { createToolRegistry } from '../tools/registry.ts'
import { TOOLSETS, type Toolset } from '../tools/tool.ts'
import { createTools } from '../tools/tools.ts'

const registry = createToolRegistry(createTools())
const tools = registry.list()

function namesIn (toolset: Toolset): string {
  return registry.list(toolset).map(({ name }) => name).join(', ')
}

const results = DIALECTS.flatMap(({ title, resultSchema, refusalSchema }) => [
  { title, ...resultSchema },
  ...refusalSchema === undefined ? [] : [{ title: `${title}, no such tool`, ...refusalSchema }]
])

/** Schema of the body in any dialect, for the document only: the handler detects the dialect and explains errors. */
export const ToolCallRequestSchema = Type.Unsafe<unknown>({
  title: 'ToolCallRequest',
  description: 'One call, `{"tool_calls": […]}`, an array of calls, or the message or the whole response of a ' +
    'provider that has them; the examples have each shape. `arguments` is an object or a JSON string of one.',
  anyOf: [
    { title: 'A call, or what has calls in it', type: 'object', additionalProperties: true },
    { title: 'An array of calls', description: `At most ${MAX_TOOL_CALLS}`, type: 'array', items: {} }
  ]
})

export const ToolCallResponseSchema = Type.Unsafe<unknown>({
  $id: 'ToolCallResponse',
  title: 'ToolCallResponse',
  description: 'One result for one call, otherwise an array with one result per call in their order, in the dialect ' +
    'of the calls.',
  anyOf: [...results, { title: 'Results of several calls', type: 'array', items: { anyOf: results } }]
})

export const ToolQuerySchema = Type.Object({
  format: Type.Optional(StringEnum(DEFINITION_FORMATS, {
    default: 'openai',
    description: 'The dialect of the definitions'
  })),
  toolset: Type.Optional(StringEnum([...TOOLSETS, 'all'], {
    default: 'reader',
    description: `Which tools: ${TOOLSETS.map((set) => `\`${set}\` has ${namesIn(set)}`).join('; ')}`
  }))
})

export const ToolCallQuerySchema = Type.Object({
  revision: RevisionSchema,
  toolset: Type.Optional(StringEnum([...TOOLSETS, 'all'], {
    description: 'The tools that the model was given: no other runs, and errors name no other. Without it every tool ' +
      'runs'
  })),
  others: Type.Optional(StringEnum(['skip'], {
    description: '`skip` leaves calls of tools that are not known here without an answer. Without it they get an ' +
      'error result'
  }))
})

export const ToolDefinitionsSchema = Type.Array(Type.Unsafe<object>({ type: 'object', additionalProperties: true }), {
  $id: 'ToolDefinitions',
  title: 'ToolDefinitions',
  description: "Ready to be the `tools` of a model's request.",
  examples: [
    writeDefinitions('openai', tools.slice(0, 1).map((tool) => ({ ...tool, currentDescription: tool.description })))
  ]
})

export const ToolParamsSchema = Type.Object({
  name: Type.String({
    description: 'Name of the tool, compared exactly: `Skill` and `skill` are two tools',
    examples: ['list_skills']
  })
})

export const ToolArgumentsSchema = Type.Unsafe<unknown>({
  title: 'ToolArguments',
  description: 'The arguments of one call, as the definition of the tool says. The result explains what does not fit.',
  anyOf: [
    { type: 'object', additionalProperties: true }, { title: 'Anything else', description: 'Gets an error result' }
  ]
})

export const ToolResultSchema = Type.Unsafe<object>({
  $id: 'ToolResult',
  title: 'ToolResult',
  description: "The tool's own result object, of success and of failure.",
  anyOf: [...new Set(tools.flatMap(({ resultSchema, failureSchema }) => [resultSchema, failureSchema]))]
    .map((schema) => schema.$id === undefined ? schema : reference(schema))
})

/** Components of the document for tools and dialects. */
export const toolSchemas: readonly TSchema[] = [ToolCallResponseSchema, ToolDefinitionsSchema, ToolResultSchema]

const SEVERAL = ['call_1', 'call_2'].map((id) => ({ ...FUNCTION_CALL_EXAMPLE, id }))

const calls = [
  ...DIALECTS.map(({ name, title, example }) => ({ name, summary: title, value: example })),
  { name: 'batch', summary: 'Several calls', value: { tool_calls: SEVERAL } }
]

/** One call in each dialect, and a request with several calls. */
export const toolCallExamples = byName(calls, ({ value }) => value)

/** The answers to these calls, in the dialect of each. */
export const toolCallAnswerExamples = byName(calls, ({ value }) => answerTo(value))

/** Arguments and results of one call of each tool. */
export const toolArgumentsExamples = byName(tools, ({ example }) => example.args)
export const toolResultExamples = byName(tools, ({ example }) => example.outcome.result)

function byName<Item extends { readonly name: string, readonly summary?: string }> (
  items: readonly Item[], valueOf: (item: Item) => unknown
): Readonly<Record<string, { readonly summary: string, readonly value: unknown }>> {
  return Object.fromEntries(items.map((item) =>
    [item.name, { summary: item.summary ?? item.name, value: valueOf(item) }]))
}

function answerTo (body: unknown): unknown {
  const envelope = openEnvelope(body)
  if (envelope.kind !== 'calls') throw new Error(envelope.detail)
  const { dialect, calls, batch } = envelope
  const results = calls.map((call) => dialect.writeResult(call, getSkill.example.outcome))
  // The round trip through JSON removes undefined members.
  return JSON.parse(JSON.stringify(batch ? results : results[0]))
}
