import { Type } from '@sinclair/typebox'
import { type ToolFailure, ToolOutcome } from './tool.ts'

export const ErrorResultSchema = Type.Object({ error: Type.String() }, { title: 'Failure' })

/** The failure of tools whose result is JSON: `{"error":<sentence>}`. */
export async function failWithError (error: ToolFailure): Promise<ToolOutcome> {
  return new ToolOutcome({ error: error.message }, undefined, error)
}
