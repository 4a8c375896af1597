/**
 * A value that several listeners wait for. A listener that throws has a bug. Its error becomes a warning of the process, and
 * neither the other listeners nor the caller of `emit` notice it.
 */
export class Signal<T> {
  readonly #listeners = new Set<(value: T) => void>()
  readonly #begin: () => () => void
  #end = (): void => {}

  /** @param begin called before the first listener is there; what it returns is called when the last one has left */
  constructor (begin = () => () => {}) {
    this.#begin = begin
  }

  get hasListeners (): boolean {
    return this.#listeners.size > 0
  }

  /** Calls the listener with each later value. Returns a function that ends it. One function can be subscribed several times. */
  subscribe (listener: (value: T) => void): () => void {
    const own = (value: T): void => { listener(value) }
    if (!this.hasListeners) this.#end = this.#begin()
    this.#listeners.add(own)
    return () => { if (this.#listeners.delete(own) && !this.hasListeners) this.#end() }
  }

  /** Calls the listeners in the order of subscription. A listener that leaves meanwhile is not called; a new one is called from the next value on. */
  emit (value: T): void {
    for (const listener of [...this.#listeners]) {
      try {
        if (this.#listeners.has(listener)) listener(value)
      } catch (error) {
        process.emitWarning(error instanceof Error ? error : String(error))
      }
    }
  }

  clear (): void {
    if (!this.hasListeners) return
    this.#listeners.clear()
    this.#end()
  }
}
