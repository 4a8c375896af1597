import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fitHeap } from '../../core/shared/heap.ts'
import { MAX_HELD_BYTES } from '../limits.ts'
import { Garbage } from './garbage.ts'

export interface AnswerMemoryOptions {
  /** What all bodies and answers together may hold, in bytes. Default MAX_HELD_BYTES, and less for a small heap. */
  readonly maxBytes?: number
  /** Time in which an answer that leaves no room for others must be sent, in milliseconds. Default 2 s. */
  readonly graceMs?: number
  /** How long a request waits for room before it is refused, in milliseconds. Default 1 s. */
  readonly waitMs?: number
}

/** A streamed answer until it is measured: a piece of a file, in bytes. */
const STREAMED_BYTES = 65_536

/** Pause between two measurements of the answers that are streamed, in milliseconds. */
const MEASURE_MS = 100

/** What an answer holds. */
export interface Held {
  readonly bytes: number
  /** The memory of a body that several answers may share. */
  readonly memory?: ArrayBufferLike | undefined
  readonly isStreamed?: boolean
}

interface Answer extends Held {
  /** When it began to wait for its client; Infinity while it is being made. */
  readonly since: number
  bytes: number
}

interface Waiter {
  readonly bytes: number
  /** Called when there is room. */
  readonly grant: () => void
}

/**
 * Bounds the memory of all answers that are being made, or wait for their clients. Thousands of clients that read nothing, or ask for
 * a page of 4 MB at once, would fill it. Past the bound, answers that have waited for more than the grace time are cut, the
 * oldest first. Requests wait for room in the order in which they came, and not for long. The plugin `overload` reserves and holds
 * room for each body and answer, and `FileStore` asks for room before it reads a large file. The bound is MAX_HELD_BYTES.
 */
export class AnswerMemory {
  readonly #maxBytes: number
  readonly #graceMs: number
  readonly #waitMs: number
  /** In the order in which they began to wait for their clients. */
  readonly #answers = new Map<ServerResponse, Answer>()
  readonly #sharers = new Map<ArrayBufferLike, number>()
  readonly #waiters = new Set<Waiter>()
  #total = 0
  #measuredAt = 0
  readonly #garbage = new Garbage()

  constructor ({ maxBytes = fitHeap(MAX_HELD_BYTES), graceMs = 2_000, waitMs = 1_000 }: AnswerMemoryOptions = {}) {
    this.#maxBytes = maxBytes
    this.#graceMs = graceMs
    this.#waitMs = waitMs
  }

  /** Bytes that are held now. */
  get total (): number {
    return this.#total
  }

  /**
   * Holds room for what a request takes until its answer is known: then comes `hold`, or `release` where no client is left.
   * @param ready called once, with whether there is room: at once, or after a wait. Not called when the client leaves
   */
  reserve (response: ServerResponse, bytes: number, ready: (hasRoom: boolean) => void): void {
    const enter = (): boolean => this.#enter(response, { bytes }, Infinity)
    if (this.#waiters.size === 0 && enter()) ready(true)
    else this.#enterLater(response, bytes, enter, ready)
  }

  /**
   * Holds room for a piece of a body that has come: what is only announced takes none. A body that has begun is not overtaken by requests
   * that wait.
   * @param ready as for `reserve`
   */
  grow (response: ServerResponse, bytes: number, ready: (hasRoom: boolean) => void): void {
    // After the answer nobody keeps what comes.
    if (response.writableEnded || response.destroyed) return ready(true)
    const enter = (): boolean => this.#grow(response, bytes)
    if (enter()) ready(true)
    else this.#enterLater(response, bytes, enter, ready)
  }

  #enterLater (response: ServerResponse, bytes: number, enter: () => boolean, ready: (hasRoom: boolean) => void): void {
    const leave = this.#wait(bytes, this.#waitMs, () => {
      response.off('close', leave)
      ready(enter())
    })
    response.once('close', leave)
  }

  #grow (response: ServerResponse, bytes: number): boolean {
    const body = this.#answers.get(response)
    // The client itself may take too long.
    if (body === undefined) return this.#enter(response, { bytes }, performance.now())
    if (!this.#makeRoom(bytes, response)) return false
    body.bytes += bytes
    this.#total += bytes
    return true
  }

  /**
   * Whether there is room for a file that is to be read for an answer: many at once would be read for nothing. Holds nothing, since the
   * answer comes next.
   * @param since when the file was asked for, in milliseconds of `performance.now()`: the wait counts from then
   */
  async hasRoomFor (bytes: number, since: number): Promise<boolean> {
    // The answer with the file before this one is made in the meantime, and counted.
    await nextTurn()
    if (!this.#makeRoom(bytes)) {
      const left = since + this.#waitMs - performance.now()
      if (left <= 0) return false
      await new Promise<void>((resolve) => { this.#wait(bytes, left, resolve) })
      if (!this.#makeRoom(bytes)) return false
    }
    this.#garbage.add(bytes)
    return true
  }

  /** Calls `end` when there may be room, or the time is over. Returns a function that stops it. */
  #wait (bytes: number, ms: number, end: () => void): () => void {
    const stop = (): void => {
      clearTimeout(timer)
      this.#waiters.delete(waiter)
    }
    const grant = (): void => {
      stop()
      end()
    }
    const waiter = { bytes, grant }
    const timer = setTimeout(grant, ms)
    this.#waiters.add(waiter)
    return stop
  }

  /** Holds an answer that goes out now, instead of what was reserved for it; nothing for a client that has left. Returns false when there is no room. */
  hold (response: ServerResponse, held: Held): boolean {
    this.#garbage.add(held.bytes)
    if (response.destroyed) this.#remove(response)
    const isHeld = response.destroyed || this.#enter(response, held.isStreamed === true ? { ...held, bytes: STREAMED_BYTES } : held, performance.now())
    this.#grant()
    return isHeld
  }

  /** What is being made for a client that has left takes its room until it is made: otherwise any number could be. */
  #leave (response: ServerResponse): void {
    if (response.writableEnded || this.#answers.get(response)?.since !== Infinity) this.release(response)
  }

  /** Gives back what an answer holds. */
  release (response: ServerResponse): void {
    this.#remove(response)
    this.#grant()
  }

  /** In the order in which they came: a large one is not overtaken for ever by small ones. */
  #grant (): void {
    for (const waiter of this.#waiters) {
      if (!this.#fits(waiter.bytes)) break
      waiter.grant()
    }
  }

  /** @param own what the same request holds already, in bytes */
  #fits (bytes: number, own = 0): boolean {
    // One answer always fits, however large.
    return this.#total === own || this.#total + bytes <= this.#maxBytes
  }

  #enter (response: ServerResponse, { bytes: wanted, memory, isStreamed = false }: Held, now: number): boolean {
    const isFollowed = this.#answers.has(response)
    this.#remove(response)
    // A part of it keeps all of it, and others may share it: whoever leaves last gives back what the first has taken.
    const bytes = memory?.byteLength ?? wanted
    if ((memory === undefined || !this.#sharers.has(memory)) && !this.#makeRoom(bytes)) return false
    if (!isFollowed) response.once('close', () => { this.#leave(response) })
    this.#answers.set(response, { since: now, bytes, memory, isStreamed })
    const count = memory === undefined ? 0 : this.#sharers.get(memory) ?? 0
    if (memory !== undefined) this.#sharers.set(memory, count + 1)
    if (count === 0) this.#total += bytes
    return true
  }

  /** @param beneficiary whose answer or body it is for, if it holds something already */
  #makeRoom (bytes: number, beneficiary?: ServerResponse): boolean {
    const now = performance.now()
    const own = beneficiary && this.#answers.get(beneficiary)?.bytes
    if (now - this.#measuredAt > MEASURE_MS) this.#measure(now)
    for (const [response, { since }] of this.#answers) {
      if (this.#fits(bytes, own)) return true
      if (response === beneficiary || now - since <= this.#graceMs) continue
      this.#remove(response)
      response.destroy()
    }
    return this.#fits(bytes, own)
  }

  #measure (now: number): void {
    this.#measuredAt = now
    for (const [response, answer] of this.#answers) {
      if (answer.isStreamed !== true) continue
      this.#total += response.writableLength - answer.bytes
      answer.bytes = response.writableLength
    }
  }

  #remove (response: ServerResponse): void {
    const answer = this.#answers.get(response)
    if (answer === undefined) return
    this.#answers.delete(response)
    const { bytes, memory } = answer
    const count = memory === undefined ? 1 : this.#sharers.get(memory) ?? 1
    if (memory !== undefined && count > 1) this.#sharers.set(memory, count - 1)
    else {
      this.#total -= bytes
      if (memory !== undefined) this.#sharers.delete(memory)
    }
  }
}
