import { isJsonObject } from '../text/json-object.ts'
import type { Dialect, ToolCall } from './dialect.ts'
import { DIALECTS } from './index.ts'

const IN_ORDER_OF_RECOGNITION = [
  ...DIALECTS.filter(({ recognisedLast }) => !recognisedLast),
  ...DIALECTS.filter(({ recognisedLast }) => recognisedLast)
]

const titles = DIALECTS.map(({ title }) => title)

const ACCEPTED_SHAPES = 'Send one tool call, an array of them, {"tool_calls":[…]} or the whole response of the model, in the ' +
  `shape of ${titles.slice(0, -1).join(', ')} or ${titles.at(-1)}`

/** The shape of a request body: calls of one dialect, or the reason why there are none. */
export type Envelope =
  | { readonly kind: 'calls', readonly dialect: Dialect, readonly calls: readonly ToolCall[], readonly batch: boolean }
  | { readonly kind: 'unrecognised', readonly detail: string }

/** Finds the dialect of a body by its shape. The first call that is recognised decides for its whole batch. */
export function openEnvelope (body: unknown): Envelope {
  const list = listCalls(body)
  if (list === undefined || list.length === 0) {
    const dialect = recognise(body)
    if (dialect !== undefined) return { kind: 'calls', dialect, calls: [dialect.readCall(body)], batch: false }
    return unrecognised(list === undefined ? explain(body) : 'No tool call is in it')
  }
  for (const item of list) {
    const dialect = recognise(item)
    if (dialect !== undefined) return { kind: 'calls', dialect, calls: readBatch(dialect, list), batch: true }
  }
  return unrecognised(explain(list[0]))
}

function recognise (value: unknown): Dialect | undefined {
  if (!isJsonObject(value)) return undefined
  const marked = DIALECTS.find((dialect) => dialect.explainMarked?.(value) !== undefined)
  if (marked !== undefined) return marked.recognise(value) ? marked : undefined
  return IN_ORDER_OF_RECOGNITION.find((dialect) => dialect.recognise(value))
}

/** The elements of an array, or the calls of a container, which may have none; undefined for any other value. */
function listCalls (body: unknown): readonly unknown[] | undefined {
  if (Array.isArray(body)) return body
  if (!isJsonObject(body)) return undefined
  const lists = DIALECTS.map((dialect) => dialect.unwrap?.(body))
  return lists.find((calls) => calls !== undefined && calls.length > 0) ?? lists.find((calls) => calls !== undefined)
}

/** Content that a model wrote beside its calls is left out: it needs no answer. */
function readBatch (dialect: Dialect, list: readonly unknown[]): ToolCall[] {
  return list
    .filter((item) => !isJsonObject(item) || recognise(item) !== undefined || dialect.isContent?.(item) !== true)
    .map((item) => readBatched(dialect, item))
}

function readBatched (dialect: Dialect, value: unknown): ToolCall {
  const call = dialect.readCall(value)
  return recognise(value) === dialect ? call : { ...call, problem: 'Not a tool call in the shape of the other calls of this batch' }
}

function unrecognised (reason: string): Envelope {
  return { kind: 'unrecognised', detail: `${reason}. ${ACCEPTED_SHAPES}` }
}

function explain (value: unknown): string {
  if (typeof value === 'string') return 'The body is a JSON string: send the object itself, not a string that holds it'
  if (!isJsonObject(value)) return 'No tool call was found'
  if (DIALECTS.some((dialect) => dialect.isAnswer(value))) return 'This is the result of a tool call, not a call'
  for (const dialect of DIALECTS) {
    const reason = dialect.explainMarked?.(value)
    if (reason !== undefined) return reason
  }
  return 'No tool call was found'
}
