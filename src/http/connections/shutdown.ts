import { setTimeout as sleep } from 'node:timers/promises'
import { Signal } from '../../core/shared/signal.ts'

/**
 * The end of a process in two steps. Leaving: not ready, each answer ends its connection, and everything is served still, until
 * balancers have noticed. Draining: nothing new begins.
 */
export class Shutdown {
  /** Emits once, with the milliseconds until the draining begins. */
  readonly #left = new Signal<number>()
  #phase: 'running' | 'leaving' | 'draining' = 'running'

  /** Whether the process is to stop: it answers, and is not ready. */
  get isLeaving (): boolean {
    return this.#phase !== 'running'
  }

  get isDraining (): boolean {
    return this.#phase === 'draining'
  }

  /**
   * While the process leaves, ends what is open one after the other: clients do not come back to the other replicas all at once.
   * Returns a function that stops it.
   */
  endWhileLeaving<T> (open: () => readonly T[], end: (item: T) => void): () => void {
    return this.#left.subscribe((delayMs) => {
      const items = open()
      for (const [index, item] of items.entries()) setTimeout(() => { end(item) }, delayMs * index / items.length).unref()
    })
  }

  /** Resolves when the draining begins. */
  async begin (delayMs = 0): Promise<void> {
    this.#phase = delayMs > 0 ? 'leaving' : 'draining'
    if (delayMs > 0) {
      this.#left.emit(delayMs)
      await sleep(delayMs)
    }
    this.#phase = 'draining'
  }
}

/** What has been opened, to be closed in the reverse order: nothing is closed before what uses it. */
export class Closers {
  readonly #closers: Array<() => unknown> = []
  #opensNoMore = false

  /** @throws {Error} once nothing further is to be opened: what is added is closed all the same */
  add (close: () => unknown): void {
    this.#closers.push(close)
    if (this.#opensNoMore) throw new Error('the process ends while it starts')
  }

  /** Whatever is being opened is the last. */
  openNoMore (): void {
    this.#opensNoMore = true
  }

  /** Closes each once, one after the other. */
  async close (): Promise<void> {
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) await close()
  }
}
