import { setTimeout as sleep } from 'node:timers/promises'

/**
 * The end of the process. It begins with a delay in which the service is not ready and still answers, each time with
 * `Connection: close`, so that balancers notice before the port closes.
 */
export class Shutdown {
  #isStopping = false

  get isStopping (): boolean {
    return this.#isStopping
  }

  /** Resolves after the delay. */
  async begin (delayMs = 0): Promise<void> {
    this.#isStopping = true
    if (delayMs > 0) await sleep(delayMs)
  }
}

/** What has been opened, to be closed in the reverse order: nothing is closed before what uses it. */
export class Closers {
  readonly #closers: Array<() => unknown> = []
  #isClosed = false

  /** @throws {Error} after `openNoMore`; what is added is closed all the same */
  add (close: () => unknown): void {
    this.#closers.push(close)
    if (this.#isClosed) throw new Error('the process ends while it starts')
  }

  openNoMore (): void {
    this.#isClosed = true
  }

  /** Closes each once, one after the other. */
  async close (): Promise<void> {
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) await close()
  }
}
