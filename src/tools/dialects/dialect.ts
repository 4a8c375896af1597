import { type TSchema, Type } from '@sinclair/typebox'
import { type JsonObject, own, ownText } from '../../core/shared/json.ts'
import type { Tool, ToolOutcome } from '../tool.ts'

/** A call as it was sent: only the types named here have been checked. */
export interface ToolCall {
  /** Undefined when none was sent. Echoed as it is, never interpreted. */
  readonly id: string | number | undefined
  /** Empty when none could be read. */
  readonly name: string
  /** An object, a JSON string of one, or something that is refused later. */
  readonly args: unknown
  /** The reason why the call cannot run. */
  readonly problem?: string
  /** A call of OpenAI's custom tools, whose results have a type of their own. */
  readonly isCustom?: boolean
}

export interface ToolDefinition extends Pick<Tool, 'name' | 'description' | 'parameters'> {
  /** Follows the catalog, if the tool has such a description; otherwise `description`. */
  readonly currentDescription: string
}

/** One wire shape. */
export interface Dialect {
  /** Also the value of `format`, if it has definitions. */
  readonly name: string
  /** As the documents of its provider call it. */
  readonly title: string

  /** For the OpenAPI document: the shapes of a call, a result and a refusal, and a call of `get_skill`. */
  readonly callSchema: TSchema
  readonly resultSchema: TSchema
  readonly refusalSchema?: TSchema
  readonly example: JsonObject

  /**
   * Whether the object is a call in this shape. The first dialect in the list that matches counts. Absent where calls
   * are known by their container only.
   */
  recognise? (value: JsonObject): boolean

  /** Its calls have no mark of their own, so all other dialects are asked first; its containers keep their place. */
  readonly recognisedLast?: true

  /**
   * For an object with the mark of this dialect, such as JSON-RPC's version: no other dialect is asked about the
   * object.
   * @returns the sentence for an object that is not a call; undefined without the mark
   */
  explainMarked? (value: JsonObject): string | undefined

  /** The calls in a provider's message or response; undefined when the object is not a container of it. */
  unwrap? (value: JsonObject): readonly unknown[] | undefined

  /** Whether an item of its container is a call, where its own shape would be another dialect's. */
  recogniseInside? (item: JsonObject): boolean

  /** Whether an object that is not a call is content of a model's message, which needs no answer: text, reasoning. */
  isContent? (value: JsonObject): boolean

  /** Whether the object is a result in this shape, which a caller sent back by mistake. */
  isAnswer (value: JsonObject): boolean

  /** Reads an unrecognised value too, as far as possible: each call of a batch needs an answer with its id. */
  readCall (value: unknown): ToolCall

  /** The result message, keys in the provider's order. A call without an id has an answer without one. */
  writeResult (call: ToolCall, outcome: ToolOutcome): object

  /** The answer to a call that names no tool; absent where it is a result like any other. */
  writeRefusal? (call: ToolCall, message: string): object

  /** The tools as this provider's request wants them, in its `tools` array. */
  writeDefinitions? (tools: readonly ToolDefinition[]): readonly object[]
}

/** An id that is echoed. */
export const IdSchema =
  Type.Unsafe<string | number>({ description: 'Echoed in the result', type: ['string', 'integer', 'number'] })

export function readId (value: unknown): ToolCall['id'] {
  if (typeof value === 'string') return value.toWellFormed()
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** Reads a call from own properties of an object. Halves of surrogate pairs become U+FFFD. */
export function readParts (call: unknown, nameKey: string, argsKey?: string, idKey?: string): ToolCall {
  return {
    id: idKey === undefined ? undefined : readId(own(call, idKey)),
    name: ownText(call, nameKey).toWellFormed(),
    args: argsKey === undefined ? undefined : own(call, argsKey)
  }
}

/** Returns undefined for a value that is not a list. */
export function callsIn (
  list: unknown, isCall: (item: unknown) => boolean = () => true
): readonly unknown[] | undefined {
  return Array.isArray(list) ? list.filter(isCall) : undefined
}
