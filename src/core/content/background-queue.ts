import { setImmediate as nextTurn } from 'node:timers/promises'

/** Work that nobody waits for: one name at a time, each at most once in the queue. */
export class BackgroundQueue {
  readonly #work: (name: string) => Promise<void>
  readonly #names = new Set<string>()
  #worker: Promise<void> | undefined
  #isClosed = false

  /** @param work must not fail */
  constructor (work: (name: string) => Promise<void>) {
    this.#work = work
  }

  /** Whether the work for this name is still to be done, or being done. */
  has (name: string): boolean {
    return this.#names.has(name)
  }

  add (name: string): void {
    if (this.#isClosed) return
    this.#names.add(name)
    this.#worker ??= this.#run()
  }

  /** Returns when the work under way has ended; what waits is not begun. */
  async close (): Promise<void> {
    this.#isClosed = true
    this.#names.clear()
    await this.#worker
  }

  async #run (): Promise<void> {
    // Meets those that are added meanwhile, too.
    for (const name of this.#names) {
      // First those who are here now.
      await nextTurn()
      if (this.#isClosed) break
      await this.#work(name)
      this.#names.delete(name)
    }
    this.#worker = undefined
  }
}
