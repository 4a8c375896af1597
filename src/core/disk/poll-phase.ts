import type { Awaitable } from '../shared/async.ts'
import type { Signature } from '../shared/skill.ts'
import type { Disk } from './disk.ts'
import { signatureOf } from './signature.ts'

/**
 * Remembers signatures for one poll phase of the event loop. All requests that one phase delivers were sent before it
 * began. A stat for the first of them is therefore as fresh as one of its own for each of the others.
 *
 * Nothing is remembered outside of a phase. Timers and background work run before the requests of
 * the next phase are received: their stats may be too old for those.
 *
 * `Root`, `LiveCatalog` and `FileStore` compare through it what they hold with the disk.
 */
export class PollPhase {
  readonly #stats = new Map<string, Signature | undefined>()
  readonly #connections = new Set<object>()
  #isOpen = false
  readonly #end = () => {
    this.#isOpen = false
    this.#stats.clear()
    this.#connections.clear()
  }

  /**
   * A request was received from the network.
   * @param connection its socket: a second request of one connection may have been sent after the phase began
   */
  begin (connection: object): void {
    if (this.#connections.has(connection)) this.#stats.clear()
    else this.#connections.add(connection)
    if (this.#isOpen) return
    this.#isOpen = true
    setImmediate(this.#end)
  }

  /** The disk is known to have changed since the phase began. */
  forget (): void {
    this.#stats.clear()
  }

  /** The signature of what is at a path, links followed; undefined when nothing is there or it may not be read. */
  stat (disk: Disk, path: string): Awaitable<Signature | undefined> {
    if (this.#isOpen) {
      const known = this.#stats.get(path)
      if (known !== undefined || this.#stats.has(path)) return known
    }
    return this.statNow(disk, path)
  }

  /** The same without waiting: undefined too for a disk that does not answer at once, which is not asked. */
  statAtOnce (disk: Disk, path: string): Signature | undefined {
    const found = disk.answersAtOnce === true ? this.stat(disk, path) : undefined
    return found instanceof Promise ? undefined : found
  }

  /** The same, asked anew. */
  statNow (disk: Disk, path: string): Awaitable<Signature | undefined> {
    try {
      const stats = disk.stat(path)
      if (stats instanceof Promise) return stats.then((value) => value && signatureOf(value), () => undefined)
      const signature = stats && signatureOf(stats)
      if (this.#isOpen) this.#stats.set(path, signature)
      return signature
    } catch {
      return undefined
    }
  }
}
