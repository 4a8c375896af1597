import type { JsonObject } from '../json-object.ts'
import type { Tool, ToolOutcome } from '../tool.ts'

export type DialectName = 'openai' | 'openai-responses' | 'anthropic' | 'gemini' | 'mcp'

/** A call as it came: nothing in it has been checked but the types named here. */
export interface ToolCall {
  /** Undefined when none came. Echoed as it is, never interpreted. */
  readonly id: string | number | undefined
  /** Empty when none could be read. */
  readonly name: string
  /** An object, a JSON string of one, or something that is refused later. */
  readonly args: unknown
  /** Why this is not a call that can be run, if it is not. */
  readonly problem?: string
}

/** What a function definition says, whatever it is wrapped in. */
export type ToolDefinition = Pick<Tool, 'name' | 'description' | 'parameters' | 'currentDescription'>

/**
 * One wire shape. Values come from outside: own properties only. Results are written as JSON text around
 * `outcome.quotedText`, so that a document is escaped once and not once for each answer.
 */
export interface Dialect {
  readonly name: DialectName

  /** Whether the object is a call in this shape. Asked in the order of the table: the first that says yes is meant. */
  recognise (value: JsonObject): boolean

  /** The calls inside a provider's message or response, and nothing else; undefined when the object is no container of this dialect. */
  unwrap? (value: JsonObject): readonly unknown[] | undefined

  /** Whether a model says this beside its calls, so that it needs no answer: text, reasoning. Asked of what is no call. */
  isContent? (value: JsonObject): boolean

  /** Reads what can be read, also from something that is not recognised: each call of a batch needs an answer with its id. */
  readCall (value: unknown): ToolCall

  /** The result message as JSON text, keys in the provider's order. */
  writeResult (call: ToolCall, outcome: ToolOutcome): string

  /** The answer to what is not a call of a tool there is, as JSON text; absent where it is a result like any other. */
  writeRefusal? (call: ToolCall, message: string): string

  /** The tools as this provider's request wants them, in its `tools` array. */
  writeDefinitions (tools: readonly ToolDefinition[]): readonly object[]
}

/** An id that can be echoed; anything else counts as none. */
export function readId (value: unknown): ToolCall['id'] {
  return typeof value === 'string' || (typeof value === 'number' && Number.isFinite(value)) ? value : undefined
}

export function readName (value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** `"key":id,`, or nothing when no id came. */
export function idMember (key: string, { id }: ToolCall): string {
  return id === undefined ? '' : `"${key}":${JSON.stringify(id)},`
}

/** The description that follows the catalog where a tool has one. */
export function describeTool ({ description, currentDescription }: ToolDefinition): string {
  return currentDescription?.() ?? description
}
