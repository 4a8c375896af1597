/** One kind of news and those who want it. Listeners are called in order of subscription and must not throw. */
export class Signal<T> {
  readonly #listeners = new Set<(value: T) => void>()

  get hasListeners (): boolean {
    return this.#listeners.size > 0
  }

  /** Returns the way to stop. The same function may be subscribed several times. */
  subscribe (listener: (value: T) => void): () => void {
    const own = (value: T): void => { listener(value) }
    this.#listeners.add(own)
    return () => { this.#listeners.delete(own) }
  }

  emit (value: T): void {
    for (const listener of this.#listeners) listener(value)
  }

  clear (): void {
    this.#listeners.clear()
  }
}
