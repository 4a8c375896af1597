import type { Disk } from './disk.ts'
import { signatureOf } from './signature.ts'
import type { Awaitable } from '../async.ts'
import type { Signature } from '../skill.ts'

/**
 * Remembers signatures for one poll phase of the event loop. All requests that one phase delivers had been sent
 * when it began, so a stat made by the first of them is as fresh as one of its own for each of the others, and a
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
    if (this.#sources.has(source)) {
      this.#seen.clear()
      this.#phase++
    } else this.#sources.add(source)
    if (this.#inPhase) return
    this.#inPhase = true
    this.#phase++
    setImmediate(this.#end)
  }

  /** A number that is the same as long as one phase lasts, or the time between two. */
  get phase (): number {
    return this.#phase
  }

  /** Whether requests of a phase are being answered. */
  get inPhase (): boolean {
    return this.#inPhase
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

/** Answers of one phase: what was true for the first of its requests is true for the others. */
export class PhaseMemo<T> {
  readonly #stats: PhaseStats
  readonly #answers = new Map<string, T>()
  #phase = -1

  constructor (stats: PhaseStats) {
    this.#stats = stats
  }

  get (key: string): T | undefined {
    return this.#stats.phase === this.#phase ? this.#answers.get(key) : undefined
  }

  /** @param phase that in which the question was asked: an answer that took longer is too old for the next one's requests */
  set (key: string, answer: T, phase: number): void {
    if (!this.#stats.inPhase || phase !== this.#stats.phase) return
    if (phase !== this.#phase) {
      this.#answers.clear()
      this.#phase = phase
    }
    this.#answers.set(key, answer)
  }
}
