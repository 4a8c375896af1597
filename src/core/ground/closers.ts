/** What has been opened, to be closed in the reverse order: nothing is closed before what uses it. */
export class Closers {
  readonly #closers: Array<() => unknown> = []

  add (close: () => unknown): void {
    this.#closers.push(close)
  }

  /** Closes each once, one after the other. */
  async close (): Promise<void> {
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) await close()
  }
}
