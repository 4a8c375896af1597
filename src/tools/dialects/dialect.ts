import { type TSchema, Type } from '@sinclair/typebox'
import { type JsonObject, own, ownText } from '../../core/shared/json.ts'
import type { Tool, ToolOutcome } from '../tool.ts'

/** Tool call as it was sent; nothing but these types has been checked. */
export interface ToolCall {
  /** Undefined if none was sent. The answer repeats it unchanged. */
  readonly id: string | number | undefined
  /** Name of the tool; empty if none could be read. */
  readonly name: string
  /** Arguments: an object, a JSON string of one, or something that is refused later. */
  readonly args: unknown
  /** The reason why the call cannot run. */
  readonly problem?: string
  /** Whether it is a call of OpenAI's custom tools, whose results have a type of their own. */
  readonly isCustom?: boolean
}

export interface ToolDefinition extends Pick<Tool, 'name' | 'description' | 'parameters'> {
  /** Follows the catalog, if the tool has such a description; otherwise `description`. */
  readonly currentDescription: string
}

/** One shape of tool calls on the wire. */
export interface Dialect {
  /** Also the value of `format`, if it has definitions. */
  readonly name: string
  /** Name in the documentation of its provider. */
  readonly title: string

  /** Schemas of a result and a refusal, and an example call of `get_skill`, for the OpenAPI document. */
  readonly resultSchema: TSchema
  readonly refusalSchema?: TSchema
  readonly example: JsonObject

  /**
   * Whether the object is a call in this shape. The first dialect in the list that matches is used. Absent if only a
   * container makes its calls recognisable.
   */
  recognise? (value: JsonObject): boolean

  /** Asked about calls after all other dialects, since its calls have no mark. Containers keep their order. */
  readonly recognisedLast?: true

  /**
   * Explains an object with the mark of this dialect, such as JSON-RPC's version; no other dialect is asked about it.
   * @returns the error if the object is not a call; undefined without the mark
   */
  explainMarked? (value: JsonObject): string | undefined

  /** Returns the calls in a message or response of the provider; undefined for anything but its containers. */
  unwrap? (value: JsonObject): readonly unknown[] | undefined

  /** Whether an item of its container is a call, although its shape alone would be another dialect's. */
  recogniseInside? (item: JsonObject): boolean

  /** Whether an object that is no call is content of a model's message, such as text, which needs no answer. */
  isContent? (value: JsonObject): boolean

  /** Whether the object is a result in this shape. */
  isAnswer (value: JsonObject): boolean

  /** Reads a call, as far as possible also an unrecognised one: each call of a batch needs an answer with its id. */
  readCall (value: unknown): ToolCall

  /** Returns the result message, with its keys in the provider's order. */
  writeResult (call: ToolCall, outcome: ToolOutcome): object

  /** Returns the answer to a call of an unknown tool; absent if it has the shape of a result. */
  writeRefusal? (call: ToolCall, message: string): object

  /** Returns the elements of `tools` in a request to this provider. */
  writeDefinitions? (tools: readonly ToolDefinition[]): readonly object[]
}

/** Schema of an id that the result repeats. */
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
