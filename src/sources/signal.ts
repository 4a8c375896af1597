/** Tells listeners that something has changed. */
export class Signal {
  readonly #listeners = new Set<() => void>()

  /** Returns a function that ends it. */
  subscribe (listener: () => void): () => void {
    const own = (): void => { listener() }
    this.#listeners.add(own)
    return () => { this.#listeners.delete(own) }
  }

  emit (): void {
    for (const listener of [...this.#listeners]) listener()
  }
}
