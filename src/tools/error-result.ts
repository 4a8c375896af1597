import { spacedJson } from './spaced-json.ts'
import { type ToolFailure, ToolOutcome } from './tool.ts'

/** The form of failure that `list_skills` and `get_skill` share: `{"error":<sentence>}`. */
export function failWithError (error: ToolFailure): ToolOutcome {
  const result = { error: error.message }
  return new ToolOutcome(result, () => spacedJson(result), true)
}
