import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { WhileAllowed } from '../callers.ts'
import { EVENT_HEARTBEAT_MS, MAX_EVENT_STREAM_BYTES } from '../limits.ts'
import type { Shutdown } from '../connections/shutdown.ts'
import type { Observer } from '../observer.ts'
import { HttpProblem } from '../problem.ts'
import { cutUnread, pushBounded } from './unread.ts'

interface EventStreamsOptions {
  readonly maxStreams: number
  readonly shutdown: Shutdown
  readonly whileAllowed: WhileAllowed
  readonly observer?: Pick<Observer, 'onStream'> | undefined
  /** Default MAX_EVENT_STREAM_BYTES. */
  readonly maxStreamBytes?: number | undefined
  /** Default EVENT_HEARTBEAT_MS. */
  readonly heartbeatMs?: number | undefined
}

/** Sends one frame of server-sent events. The same buffer may go to many clients: what waits for slow ones is in memory once. */
export type SendFrame = (frame: Buffer) => void

/** The open answers of one route. */
interface EventStreams {
  /**
   * Answers with a stream that ends with its connection, or when its caller may no longer have it.
   * @param begin sends the first frames, and returns a function that stops the others. It is called again, with `isMoved`, when the
   * caller follows other skills from now on.
   * @throws {HttpProblem} `too_many_streams`, `not_ready` while the service is stopping
   */
  open (request: FastifyRequest, reply: FastifyReply, begin: (send: SendFrame, isMoved: boolean) => () => void): FastifyReply
}

export const EVENT_STREAM_MEDIA_TYPE = 'text/event-stream'
const HEARTBEAT = Buffer.from(': still here\n\n')

/**
 * Streams of server-sent events, for the routes of `app`. A plain stream passes through the hooks like every other answer, shows
 * its back-pressure, and ends with its connection. The plugins @fastify/sse 0.4 and 0.6 and fastify-sse-v2 4.2 write past the hooks and keep
 * 54 MB for a client that reads nothing. They also delay `app.close()`, and open a stream for HEAD.
 */
export function createEventStreams (app: FastifyInstance, options: EventStreamsOptions): EventStreams {
  const { maxStreams, shutdown, whileAllowed, observer, maxStreamBytes = MAX_EVENT_STREAM_BYTES, heartbeatMs = EVENT_HEARTBEAT_MS } = options
  const streams = new Map<Readable, ServerResponse>()
  const ended = new WeakSet<Readable>()
  let closing = false

  /** What a client does not take waits, up to a bound. Then the client is dropped, and comes back with the last id it has. */
  function send (stream: Readable, frame: Buffer): void {
    if (ended.has(stream)) return
    pushBounded(stream, frame, maxStreamBytes, (bytes) => { app.log.info({ bytes }, 'a client that does not read its events was dropped') })
  }

  function end (stream: Readable): void {
    if (ended.has(stream) || stream.destroyed) return
    ended.add(stream)
    stream.push(null)
  }

  const heartbeat = setInterval(() => {
    for (const stream of streams.keys()) send(stream, HEARTBEAT)
  }, heartbeatMs).unref()

  const stopLeaving = shutdown.endWhileLeaving(() => [...streams.keys()], end)

  // Not `onClose`, which waits for the answers that are under way.
  app.addHook('preClose', async () => {
    closing = true
    stopLeaving()
    clearInterval(heartbeat)
    const open = [...streams]
    for (const [stream] of open) end(stream)
    await cutUnread(open.map(([, response]) => response))
  })

  return {
    open (request, reply, begin) {
      if (closing || shutdown.isDraining) throw new HttpProblem('not_ready', 'The service is stopping')
      if (streams.size >= maxStreams) throw new HttpProblem('too_many_streams')
      reply.headers({ 'content-type': EVENT_STREAM_MEDIA_TYPE, 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
      if (request.method === 'HEAD') return reply.send(Readable.from([]))

      const stream = new Readable({ read () {} })
      streams.set(stream, reply.raw)
      const follow = (isMoved: boolean): () => void => begin((frame) => { send(stream, frame) }, isMoved)
      let stop = follow(false)
      const stopWatch = whileAllowed(request, () => { end(stream) }, () => {
        stop()
        stop = follow(true)
      })
      stream.once('close', () => {
        stop()
        stopWatch()
        streams.delete(stream)
      })
      // Whoever reads the stream first sends the head.
      stream.once('resume', () => { observer?.onStream?.(request) })
      return reply.send(stream)
    }
  }
}
