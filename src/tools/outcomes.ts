import { Type } from '@sinclair/typebox'
import { spacedJson } from './text/spaced-json.ts'
import { type ToolFailure, ToolOutcome } from './tool.ts'

/** An outcome that a model reads as the JSON text of the result. */
export function jsonOutcome (result: object, failure?: ToolFailure): ToolOutcome {
  return new ToolOutcome(result, () => spacedJson(result), failure)
}

/** The failure of tools whose result is JSON: `{"error":<sentence>}`. */
export async function failWithError (error: ToolFailure): Promise<ToolOutcome> {
  return jsonOutcome({ error: error.message }, error)
}

export const ErrorResultSchema = Type.Object({ error: Type.String() }, { title: 'Failure' })

/**
 * Shares the outcome of an unchanged document between calls, so that the document is escaped once. One outcome is kept
 * for each source object. A caller who spells one path in a thousand ways cannot fill the memory with a thousand
 * renderings. An outcome is collected with its source.
 */
export class SharedOutcomes<Source extends object, Key> {
  readonly #latest = new WeakMap<Source, { readonly key: Key, readonly outcome: ToolOutcome }>()

  /** The outcome made for this source and key, or a new one. */
  get (source: Source, key: Key, make: () => ToolOutcome): ToolOutcome {
    const latest = this.#latest.get(source)
    if (latest !== undefined && latest.key === key) return latest.outcome
    const outcome = make()
    this.#latest.set(source, { key, outcome })
    return outcome
  }
}
