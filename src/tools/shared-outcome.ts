import type { ToolOutcome } from './tool.ts'

/**
 * Shares the outcome of an unchanged document between calls, so that the document is escaped once. One outcome is kept for
 * each source object: a caller who spells one path in a thousand ways cannot fill the memory with a thousand renderings.
 * An outcome is collected with its source.
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
