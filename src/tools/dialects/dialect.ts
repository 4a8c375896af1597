import { type TSchema, Type } from '@sinclair/typebox'
import type { JsonObject } from '../json-object.ts'
import type { Tool, ToolOutcome } from '../tool.ts'

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

/** The content of a function definition, whatever it is wrapped in. */
export interface ToolDefinition extends Pick<Tool, 'name' | 'description' | 'parameters'> {
  /** Follows the catalog where the tool has such a description; otherwise `description`. */
  readonly currentDescription: string
}

/**
 * One wire shape. Values come from outside: own properties only. Results are written as JSON text around
 * `outcome.quotedText`, so that a document is escaped once and not once for each answer.
 */
export interface Dialect {
  /** The value of `format` where it has definitions of its own. */
  readonly name: string
  /** As the documents of its provider call it. */
  readonly title: string

  /** For the OpenAPI document: the shapes of a call, a result and a refusal, and a call of `get_skill`. */
  readonly callSchema: TSchema
  readonly resultSchema: TSchema
  readonly refusalSchema?: TSchema
  readonly example: JsonObject

  /** Whether the object is a call in this shape. Dialects are asked in the order of their list: the first one that agrees is taken. */
  recognise (value: JsonObject): boolean

  /** Its calls have no mark of their own: all other dialects are asked first. Its containers keep their place. */
  readonly recognisedLast?: true

  /** For an object with the mark of this dialect, which is a call of no other one: why it is none of this one, if it is none. */
  explainMarked? (value: JsonObject): string | undefined

  /** The calls inside a provider's message or response, and nothing else; undefined when the object is no container of this dialect. */
  unwrap? (value: JsonObject): readonly unknown[] | undefined

  /** Whether the object, which is no call, stands beside a model's calls and needs no answer: text, reasoning. */
  isContent? (value: JsonObject): boolean

  /** Whether the object is a result in this shape, which a caller sent back by mistake. */
  isAnswer (value: JsonObject): boolean

  /** Reads what can be read, also from something that is not recognised: each call of a batch needs an answer with its id. */
  readCall (value: unknown): ToolCall

  /** The result message as JSON text, keys in the provider's order. */
  writeResult (call: ToolCall, outcome: ToolOutcome): string

  /** The answer to a call that names no tool, as JSON text; absent where it is a result like any other. */
  writeRefusal? (call: ToolCall, message: string): string

  /** The tools as this provider's request wants them, in its `tools` array. */
  writeDefinitions? (tools: readonly ToolDefinition[]): readonly object[]
}

/** An id that is echoed. */
export const IdSchema = Type.Unsafe<string | number>({ description: 'Echoed in the result', type: ['string', 'integer', 'number'] })

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
