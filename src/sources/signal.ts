/** News for several listeners. The error of one becomes a warning of the process, and does not reach the others. */
export class Signal<T> {
  readonly #listeners = new Set<(value: T) => void>()

  /** Calls the listener with each later value. Returns a function that ends it. */
  subscribe (listener: (value: T) => void): () => void {
    const own = (value: T): void => { listener(value) }
    this.#listeners.add(own)
    return () => { this.#listeners.delete(own) }
  }

  emit (value: T): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(value)
      } catch (error) {
        process.emitWarning(error instanceof Error ? error : String(error))
      }
    }
  }

  clear (): void {
    this.#listeners.clear()
  }
}
