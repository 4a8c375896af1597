import { DIALECTS } from '../tools/dialects/index.ts'
import { openEnvelope } from '../tools/dialects/envelope.ts'
import { FUNCTION_CALL_EXAMPLE } from '../tools/dialects/function-call.ts'
import { getSkill } from '../tools/reader/get-skill.ts'
import { createTools } from '../tools/tools.ts'

type NamedExamples = Readonly<Record<string, { readonly summary: string, readonly value: unknown }>>

const tools = createTools()

const SEVERAL = ['call_1', 'call_2'].map((id) => ({ ...FUNCTION_CALL_EXAMPLE, id }))

const calls = [
  ...DIALECTS.map(({ name, title, example }) => ({ name, summary: title, value: example })),
  { name: 'batch', summary: 'Several calls', value: { tool_calls: SEVERAL } }
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
  const { dialect, calls, batch } = envelope
  const results = calls.map((call) => dialect.writeResult(call, getSkill.example.outcome))
  // Without members that are undefined.
  return JSON.parse(JSON.stringify(batch ? results : results[0]))
}
