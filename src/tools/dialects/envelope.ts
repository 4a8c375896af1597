import { isJsonObject, type JsonObject, own } from '../../core/shared/json.ts'
import { MAX_BATCH_ELEMENTS } from '../limits.ts'
import type { Dialect, ToolCall } from './dialect.ts'
import { DIALECTS } from './index.ts'

/** Dialects in the order in which they are asked about calls, and about containers of calls. */
const BY_CALLS = sortedBy(({ recognisedLast = false }) => recognisedLast)
const BY_CONTAINERS = sortedBy(({ recogniseInside }) => recogniseInside === undefined)

const titles = DIALECTS.map(({ title }) => title)

const ACCEPTED_SHAPES = 'Send one tool call, an array of them, {"tool_calls":[…]} or the whole response of the ' +
'model, not its stream or the conversation, in the ' +
  `shape of ${titles.slice(0, -1).join(', ')} or ${titles.at(-1)}`

/** Calls of one dialect in a request body, or the reason why there are none. */
type Envelope =
  | { readonly kind: 'calls', readonly dialect: Dialect, readonly calls: readonly ToolCall[], readonly batch: boolean }
  | { readonly kind: 'unrecognised' | 'too_many_calls', readonly detail: string }

/** Finds the dialect of a body by its shape. The first recognised call decides for its batch. */
export function openEnvelope (body: unknown): Envelope {
  const list = listCalls(body)
  if (list === undefined || list.items.length === 0) {
    const dialect = recognise(body)
    if (dialect !== undefined) return { kind: 'calls', dialect, calls: [dialect.readCall(body)], batch: false }
    return unrecognised(list === undefined ? explain(body) : 'No tool call is in it')
  }
  if (list.items.length > MAX_BATCH_ELEMENTS) {
    return {
      kind: 'too_many_calls', detail: `${list.items.length} elements in one request: the limit is ${MAX_BATCH_ELEMENTS}`
    }
  }
  for (const item of list.items) {
    const dialect = recognise(item, list.owner)
    if (dialect === undefined) continue
    const calls = readBatch(dialect, list)
    return calls.length === 0
      ? unrecognised('Every tool call in it has its result')
      : { kind: 'calls', dialect, calls, batch: true }
  }
  return unrecognised(explain(list.items[0]))
}

/** Values that may be calls, and the dialect of their container. */
interface CallList {
  readonly items: readonly unknown[]
  readonly owner?: Dialect
}

function sortedBy (isLast: (dialect: Dialect) => boolean): readonly Dialect[] {
  return [...DIALECTS].sort((a, b) => Number(isLast(a)) - Number(isLast(b)))
}

function recognise (value: unknown, owner?: Dialect): Dialect | undefined {
  if (!isJsonObject(value)) return undefined
  if (owner?.recogniseInside?.(value) === true) return owner
  const marked = DIALECTS.find((dialect) => dialect.explainMarked?.(value) !== undefined)
  if (marked !== undefined) return marked.recognise?.(value) === true ? marked : undefined
  return BY_CALLS.find((dialect) => dialect.recognise?.(value) === true)
}

/** Returns the elements of an array, or the calls of a container; undefined for any other value. */
function listCalls (body: unknown): CallList | undefined {
  if (Array.isArray(body)) return { items: body }
  if (!isJsonObject(body)) return undefined
  let empty: CallList | undefined
  for (const owner of BY_CONTAINERS) {
    const items = owner.unwrap?.(body)
    if (items === undefined) continue
    if (items.length > 0) return { items, owner }
    empty ??= { items }
  }
  return empty
}

/** Reads the calls that wait for an answer. Other content, and the rest of a conversation, need none. */
function readBatch (dialect: Dialect, { items, owner }: CallList): ToolCall[] {
  const answered = readAnsweredIds(dialect, items)
  return items.flatMap((item): ToolCall | ToolCall[] => {
    const shape = recognise(item, owner)
    if (shape === undefined && isJsonObject(item) && (isContent(dialect, item) || isMessageWithoutCalls(item))) {
      return []
    }
    const call = (shape ?? dialect).readCall(item)
    if (shape !== dialect) {
      return {
        ...call, problem: 'Not a tool call in the shape of the other calls of this batch: send it in another request'
      }
    }
    return answered.has(call.id) ? [] : call
  })
}

/** Where calls and results stand in one list, a result has the id of its call in the same place. */
function readAnsweredIds (dialect: Dialect, items: readonly unknown[]): ReadonlySet<ToolCall['id']> {
  const results = items.filter((item) => isJsonObject(item) && isContent(dialect, item) && dialect.isAnswer(item))
  const ids = new Set(results.map((item) => dialect.readCall(item).id))
  ids.delete(undefined)
  return ids
}

function isContent (dialect: Dialect, item: JsonObject): boolean {
  return dialect.isContent?.(item) === true
}

function isMessageWithoutCalls (item: JsonObject): boolean {
  return Object.hasOwn(item, 'role') && (listCalls(item)?.items ?? []).length === 0
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
  const isNamed = typeof own(value, 'name') === 'string' &&
    !['role', 'type', 'description'].some((key) => Object.hasOwn(value, key))
  return isNamed ? 'A call by its bare name needs "arguments" next to it, {} for none' : 'No tool call was found'
}
