import { Socket } from 'node:net'
import { Readable, Transform } from 'node:stream'
import { ReadableStream } from 'node:stream/web'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { overloadError } from '../../core/shared/errors.ts'
import { AnswerMemory } from './answer-memory.ts'
import type { Load } from './load.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the route is under load: `costly` ones are refused first. A `probe` is never refused, has no limit and no span. */
    load?: 'costly' | 'probe'
    /** The most that an answer takes while it is made, in bytes. Default: it is counted when it is sent. */
    answerBytes?: (request: FastifyRequest) => number
    /** Whether the body is used up as it comes, and so takes no memory. */
    isBodyStreamed?: boolean
  }
}

interface OverloadOptions {
  readonly load: Pick<Load, 'level'>
  /** Shared with what reads files for the answers. Default: its own. */
  readonly memory?: AnswerMemory | undefined
}

/** Bodies and answers up to this size are not counted: the buffers of a socket take as much. In bytes. */
const UNCOUNTED_BYTES = 16_384

/**
 * Refuses requests with 503 while the process has more to do, or more to hold, than it can. The costly ones go first and probes never, so
 * that a platform does not restart a busy process. Requests with small bodies and answers pay for three comparisons.
 */
export const overload = fp<OverloadOptions>(function overload (app, { load, memory = new AnswerMemory() }, done) {
  app.addHook('onRequest', (request, _reply, next) => {
    next(load.level > 0 && isShed(request, load.level) ? overloadError.busy() : undefined)
  })

  // Not a hook of every route: a GET would pay for it. After those that refuse a body before it is sent.
  app.addHook('onRoute', (route) => {
    if (route.method !== 'POST' || route.config?.isBodyStreamed === true) return
    route.preParsing = [
      ...[route.preParsing ?? []].flat(),
      (request, { raw }, payload, next) => {
        const isCounted = hasClient(request) && isLarge(request)
        next(null, isCounted ? countedBody(payload, (bytes, ready) => { memory.grow(raw, bytes, ready) }) : payload)
      }
    ]
  })

  app.addHook('onRoute', (route) => {
    const answerBytes = route.config?.answerBytes
    if (answerBytes === undefined) return
    route.preHandler = [
      (request, reply, next) => {
        if (!hasClient(request)) return next()
        memory.reserve(reply.raw, answerBytes(request), (hasRoom) => { next(hasRoom ? undefined : overloadError.full()) })
      },
      ...[route.preHandler ?? []].flat()
    ]
  })

  app.addHook('onSend', (request, reply, payload, next) => {
    // Nobody reads the body of a request that succeeds any more. A stream may last for days, and 1 MiB of JSON can take 16 MB.
    if (reply.statusCode < 400) request.body = undefined
    const isStreamed = typeof payload === 'object' && payload !== null && !Buffer.isBuffer(payload)
    const bytes = isStreamed ? UNCOUNTED_BYTES + 1 : sizeOf(payload)
    if (bytes <= UNCOUNTED_BYTES || !hasClient(request)) {
      if (reply.raw.destroyed) memory.release(reply.raw)
      return next(null, payload)
    }
    if (memory.hold(reply.raw, { bytes, memory: Buffer.isBuffer(payload) ? payload.buffer : undefined, isStreamed })) return next(null, payload)
    discard(payload)
    next(overloadError.full())
  })

  done()
}, { name: 'overload' })

function isShed ({ routeOptions: { config } }: FastifyRequest, level: number): boolean {
  return level > 1 ? config.load !== 'probe' : config.load === 'costly'
}

function isLarge ({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > UNCOUNTED_BYTES
}

/**
 * Lets a body through as far as there is room for it.
 * @param grow asks for room for a piece, in bytes
 */
function countedBody (body: Readable, grow: (bytes: number, ready: (hasRoom: boolean) => void) => void): Readable {
  const counted = new Transform({
    transform (piece: Buffer, _encoding, next) {
      grow(piece.length, (hasRoom) => { if (hasRoom) next(null, piece); else next(overloadError.full()) })
    }
  })
  // Nobody listens any more once the body is refused.
  counted.on('error', () => {})
  // `pipeline` would destroy the request with its connection, before the answer.
  body.once('error', (error) => { counted.destroy(error) })
  return body.pipe(counted)
}

/** What is injected has no client that could be slow. */
function hasClient ({ raw: { socket } }: FastifyRequest): boolean {
  return socket instanceof Socket
}

function sizeOf (payload: unknown): number {
  return typeof payload === 'string' || Buffer.isBuffer(payload) ? payload.length : 0
}

function discard (payload: unknown): void {
  if (payload instanceof Readable) payload.destroy()
  else if (payload instanceof Response) void payload.body?.cancel()
  else if (payload instanceof ReadableStream) void payload.cancel()
}
