import { DIALECTS } from '../tools/dialects/index.ts'
import { openEnvelope } from '../tools/dialects/envelope.ts'
import type { ToolExample } from '../tools/tool.ts'
import { createTools } from '../tools/tools.ts'

type NamedExamples = Readonly<Record<string, { readonly summary: string, readonly value: unknown }>>

const tools = createTools()

const SEVERAL_CALLS = {
  tool_calls: ['list_skills', 'get_skill'].map((name, index) => {
    const { args } = exampleOf(name)
    return { id: `call_${index + 1}`, type: 'function', function: { name, arguments: JSON.stringify(args) } }
  })
}

const calls = [
  ...DIALECTS.map(({ name, title, example }) => ({ name, summary: title, value: example })),
  { name: 'batch', summary: 'Several calls', value: SEVERAL_CALLS }
]

/** One call in each dialect, and several in one request. */
export const toolCallExamples: NamedExamples = Object.fromEntries(calls.map(({ name, ...example }) => [name, example]))

/** The answers to the calls above, as the dialects write them. */
export const toolCallAnswerExamples: NamedExamples =
  Object.fromEntries(calls.map(({ name, summary, value }) => [name, { summary, value: answerTo(value) }]))

/** Arguments and results of one call of each tool. */
export const toolArgumentsExamples: NamedExamples = Object.fromEntries(
  tools.map(({ name, example }) => [name, { summary: name, value: example.args }])
)
export const toolResultExamples: NamedExamples = Object.fromEntries(
  tools.map(({ name, example }) => [name, { summary: name, value: example.outcome.result }])
)

function answerTo (body: unknown): unknown {
  const envelope = openEnvelope(body)
  if (envelope.kind !== 'calls') throw new Error(envelope.detail)
  const results = envelope.calls.map(
    (call): unknown => JSON.parse(JSON.stringify(envelope.dialect.writeResult(call, exampleOf(call.name).outcome)))
  )
  return envelope.batch ? results : results[0]
}

function exampleOf (toolName: string): ToolExample {
  const tool = tools.find(({ name }) => name === toolName)
  if (tool === undefined) throw new Error(`there is no tool ${toolName}`)
  return tool.example
}
