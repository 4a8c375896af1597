import type { Disk } from './disk.ts'
import { signatureOf } from './signature.ts'
import type { Awaitable } from './skill-source.ts'
import type { Signature } from './skill.ts'

/**
 * Remembers signatures for one poll phase of the event loop. All requests that one phase delivers had been sent
 * when it began, so a stat made by the first of them is as fresh as one of its own for each of the others (K51), and a
 * busy server pays for one stat a phase instead of one a request.
 *
 * Nothing is remembered outside of a phase that `begin` opened: timers and background work run before the requests of
 * the next phase have been received, so what they see may be too old for those.
 */
export class PhaseStats {
  readonly #seen = new Map<string, Signature | undefined>()
  readonly #sources = new Set<object>()
  #inPhase = false
  #phase = 0
  readonly #end = () => {
    this.#inPhase = false
    this.#phase++
    this.#seen.clear()
    this.#sources.clear()
  }

  /**
   * A request has just been received from the network.
   * @param source its connection: a second request of one connection may have been sent after the phase began
   */
  begin (source: object): void {
    if (this.#sources.has(source)) this.#seen.clear()
    else this.#sources.add(source)
    if (this.#inPhase) return
    this.#inPhase = true
    setImmediate(this.#end)
  }

  /** A number that is the same as long as one phase lasts. */
  get phase (): number {
    return this.#phase
  }

  /** The disk is known to have changed since the phase began. */
  forget (): void {
    this.#seen.clear()
  }

  /** The signature of what is at a path, links followed; undefined when nothing is there or it may not be seen. */
  stat (disk: Disk, path: string): Awaitable<Signature | undefined> {
    if (this.#inPhase) {
      const seen = this.#seen.get(path)
      if (seen !== undefined || this.#seen.has(path)) return seen
    }
    return this.look(disk, path)
  }

  /** The same, without regard to what was seen before. */
  look (disk: Disk, path: string): Awaitable<Signature | undefined> {
    try {
      const stats = disk.stat(path)
      if (stats instanceof Promise) return stats.then((value) => value && signatureOf(value), () => undefined)
      const signature = stats && signatureOf(stats)
      if (this.#inPhase) this.#seen.set(path, signature)
      return signature
    } catch {
      return undefined
    }
  }
}
