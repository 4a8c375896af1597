import type { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { ReadableStream } from 'node:stream/web'
import fp from 'fastify-plugin'
import { MAX_UNSENT_BYTES } from '../limits.ts'
import { HttpProblem } from '../problem.ts'

export interface UnsentAnswersOptions {
  /** What all answers together may hold, in bytes. Default MAX_UNSENT_BYTES. */
  readonly maxBytes?: number
  /** Time in which an answer that leaves no room for others must be sent, in milliseconds. Default 2 s. */
  readonly graceMs?: number
}

/** Answers up to this size are not counted: the buffers of a socket take as much. In bytes. */
const UNCOUNTED_BYTES = 16_384

/** A streamed answer until it is measured: a piece of a file, in bytes. */
const STREAMED_BYTES = 65_536

/** Pause between two measurements of the answers that are streamed, in milliseconds. */
const MEASURE_MS = 100

interface Unsent {
  readonly since: number
  bytes: number
  /** The memory of a body that several answers may share; absent for a text, of which each socket has its copy. */
  readonly memory: ArrayBufferLike | undefined
  readonly isStreamed: boolean
}

/**
 * Bounds the memory of all answers that wait for their clients. Thousands of clients that read nothing would fill it. A page of the
 * catalog has up to 4 MB, the results of tool calls 32 MB. Past the bound, answers that have waited for more than the grace
 * time are cut, the oldest first. Without any, the new answer is a 503. Small answers cost one comparison.
 */
export const unsentAnswers = fp<UnsentAnswersOptions>(function unsentAnswers (app, { maxBytes = MAX_UNSENT_BYTES, graceMs = 2_000 }, done) {
  /** In the order of their start. */
  const unsent = new Map<ServerResponse, Unsent>()
  const sharers = new Map<ArrayBufferLike, number>()
  let total = 0
  let measuredAt = 0

  app.addHook('onSend', (request, reply, payload, next) => {
    const isStreamed = typeof payload === 'object' && payload !== null && !Buffer.isBuffer(payload)
    const bytes = isStreamed ? STREAMED_BYTES : sizeOf(payload)
    if (bytes <= UNCOUNTED_BYTES) return next(null, payload)
    const { raw: response } = reply
    const { socket } = request.raw
    // What is injected has no client that could be slow.
    if (!(socket instanceof Socket)) return next(null, payload)
    const answer = { since: performance.now(), bytes, memory: Buffer.isBuffer(payload) ? payload.buffer : undefined, isStreamed }
    if (makeRoom(answer)) {
      add(response, answer)
      response.once('close', () => { remove(response) })
      next(null, payload)
    } else {
      discard(payload)
      next(new HttpProblem('overloaded'))
    }
  })

  function makeRoom ({ since: now, bytes, memory }: Unsent): boolean {
    if (memory !== undefined && sharers.has(memory)) return true
    if (now - measuredAt > MEASURE_MS) measure(now)
    for (const [response, { since }] of unsent) {
      if (total + bytes <= maxBytes || now - since <= graceMs) break
      remove(response)
      response.destroy()
    }
    // One answer always fits, however large.
    return total === 0 || total + bytes <= maxBytes
  }

  function measure (now: number): void {
    measuredAt = now
    for (const [response, answer] of unsent) {
      if (!answer.isStreamed) continue
      total += response.writableLength - answer.bytes
      answer.bytes = response.writableLength
    }
  }

  function add (response: ServerResponse, answer: Unsent): void {
    const { bytes, memory } = answer
    unsent.set(response, answer)
    const count = memory === undefined ? 0 : sharers.get(memory) ?? 0
    if (memory !== undefined) sharers.set(memory, count + 1)
    if (count === 0) total += bytes
  }

  function remove (response: ServerResponse): void {
    const answer = unsent.get(response)
    if (answer === undefined) return
    unsent.delete(response)
    const { bytes, memory } = answer
    const count = memory === undefined ? 1 : sharers.get(memory) ?? 1
    if (memory !== undefined && count > 1) sharers.set(memory, count - 1)
    else {
      total -= bytes
      if (memory !== undefined) sharers.delete(memory)
    }
  }

  done()
}, { name: 'unsent-answers', fastify: '5.x' })

function sizeOf (payload: unknown): number {
  return typeof payload === 'string' || Buffer.isBuffer(payload) ? payload.length : 0
}

function discard (payload: unknown): void {
  if (payload instanceof Readable) payload.destroy()
  else if (payload instanceof Response) void payload.body?.cancel()
  else if (payload instanceof ReadableStream) void payload.cancel()
}
