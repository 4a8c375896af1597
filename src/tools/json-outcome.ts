import { Type } from '@sinclair/typebox'
import { spacedJson } from './spaced-json.ts'
import { type ToolFailure, ToolOutcome } from './tool.ts'

/** An outcome that a model reads as the JSON text of the result. */
export function jsonOutcome (result: object, isError = false): ToolOutcome {
  return new ToolOutcome(result, () => spacedJson(result), isError)
}

/** The failure of tools whose result is JSON: `{"error":<sentence>}`. */
export function failWithError (error: ToolFailure): ToolOutcome {
  return jsonOutcome({ error: error.message }, true)
}

export const ErrorResultSchema = Type.Object({ error: Type.String() }, { title: 'Failure' })
