import { isJsonObject, type JsonObject, own } from '../json-object.ts'
import { anthropic } from './anthropic.ts'
import type { Dialect, DialectName, ToolCall } from './dialect.ts'
import { gemini, geminiSnakeCase } from './gemini.ts'
import { mcp } from './mcp.ts'
import { openaiChat } from './openai-chat.ts'
import { openaiLegacy } from './openai-legacy.ts'
import { openaiResponses } from './openai-responses.ts'

/** The wire shapes in the order in which an object is held against them: from the most to the least explicit. */
export const DIALECTS: readonly Dialect[] = [mcp, openaiResponses, anthropic, openaiLegacy, gemini, geminiSnakeCase, openaiChat]

/** Containers in the order of precedence: an OpenAI message may hold text blocks beside its `tool_calls`. */
const CONTAINERS: readonly Dialect[] = [openaiChat, anthropic, openaiResponses, gemini, geminiSnakeCase]

export const DIALECTS_BY_NAME: Readonly<Record<DialectName, Dialect>> = {
  openai: openaiChat,
  'openai-responses': openaiResponses,
  anthropic,
  gemini,
  mcp
}

const ACCEPTED_SHAPES = 'Send one tool call, an array of them, {"tool_calls":[…]} or the whole response of the model, in the ' +
  'shape of OpenAI Chat Completions, OpenAI Responses, Anthropic, Gemini or MCP tools/call'

/** A request body, read as far as its shape: calls of one dialect, or why there are none. */
export type Envelope =
  | { readonly kind: 'calls', readonly dialect: Dialect, readonly calls: readonly ToolCall[], readonly batch: boolean }
  | { readonly kind: 'unrecognised', readonly detail: string }

/** Tells the dialect of a body by its shape. The first call that is recognised decides for its whole batch. */
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
  // JSON-RPC says what it is: a request of another method is no call of another dialect.
  if (own(value, 'jsonrpc') === '2.0') return mcp.recognise(value) ? mcp : undefined
  return DIALECTS.find((dialect) => dialect.recognise(value))
}

/** The elements of an array, or the calls of a container, which may have none; undefined for what is neither. */
function listCalls (body: unknown): readonly unknown[] | undefined {
  if (Array.isArray(body)) return body
  if (!isJsonObject(body)) return undefined
  const lists = CONTAINERS.map((container) => container.unwrap?.(body))
  return lists.find((calls) => calls !== undefined && calls.length > 0) ?? lists.find((calls) => calls !== undefined)
}

/** What a model said beside its calls is left out: an answer to it would be one too many. */
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
  if (isAnswer(value)) return 'This is the result of a tool call, not a call'
  if (own(value, 'jsonrpc') !== undefined) return 'The only JSON-RPC 2.0 method here is tools/call'
  return 'No tool call was found'
}

function isAnswer (value: JsonObject): boolean {
  const role = own(value, 'role')
  const type = own(value, 'type')
  return role === 'tool' || role === 'function' || type === 'tool_result' || type === 'function_call_output' ||
    Object.hasOwn(value, 'functionResponse') || Object.hasOwn(value, 'function_response') ||
    (own(value, 'jsonrpc') === '2.0' && (Object.hasOwn(value, 'result') || Object.hasOwn(value, 'error')))
}
