import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { OnAccessEnd } from '../callers.ts'
import { EVENT_HEARTBEAT_MS, MAX_EVENT_STREAM_BYTES } from '../limits.ts'
import type { Observer } from '../observer.ts'
import { HttpProblem } from '../problem.ts'

interface EventStreamsOptions {
  readonly maxStreams: number
  readonly onAccessEnd: OnAccessEnd
  readonly observer?: Pick<Observer, 'onStream'> | undefined
}

/** Starts sending server-sent events with `send`, and returns a function that stops. */
type Begin = (send: (frame: Buffer) => void) => () => void

export const EVENT_STREAM_MEDIA_TYPE = 'text/event-stream'
const HEARTBEAT = Buffer.from(': still here\n\n')

/**
 * Returns a function that answers with a stream of server-sent events, which ends when the caller loses access. The
 * plugins @fastify/sse and fastify-sse-v2 write past Fastify's hooks, and buffer for slow clients without limit.
 */
export function createEventStreams (
  app: FastifyInstance, { maxStreams, onAccessEnd, observer }: EventStreamsOptions
) {
  const streams = new Map<Readable, ServerResponse>()
  let isClosing = false

  /** Buffers what a client does not read, up to a bound. Then it is disconnected, and resumes after its last id. */
  function send (stream: Readable, frame: Buffer): void {
    if (stream.destroyed) return
    if (stream.readableLength + frame.length > MAX_EVENT_STREAM_BYTES) {
      stream.destroy()
      app.log.info('slow event-stream client disconnected')
    } else stream.push(frame)
  }

  function end (stream: Readable): void {
    if (streams.delete(stream)) stream.push(null)
  }

  const heartbeat = setInterval(() => {
    for (const stream of streams.keys()) send(stream, HEARTBEAT)
  }, EVENT_HEARTBEAT_MS).unref()

  // `onClose` would be too late: it waits for open answers.
  app.addHook('preClose', async () => {
    isClosing = true
    clearInterval(heartbeat)
    for (const [stream, response] of streams) {
      // The end of the stream would wait until the client has read all queued bytes.
      if (response.writableLength > 0) response.destroy()
      else end(stream)
    }
  })

  return function openStream (request: FastifyRequest, reply: FastifyReply, begin: Begin): FastifyReply {
    if (isClosing) throw new HttpProblem('not_ready', 'The service is stopping')
    if (streams.size >= maxStreams) throw new HttpProblem('too_many_streams')
    reply.headers({ 'content-type': EVENT_STREAM_MEDIA_TYPE, 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
    if (request.method === 'HEAD') return reply.send(Readable.from([]))

    const stream = new Readable({ read () {} })
    streams.set(stream, reply.raw)
    const stop = begin((frame) => { if (streams.has(stream)) send(stream, frame) })
    const stopWatch = onAccessEnd(request, () => { end(stream) })
    stream.once('close', () => {
      stop()
      stopWatch()
      streams.delete(stream)
    })
    // Fastify sends the head when it begins to read the stream.
    stream.once('resume', () => { observer?.onStream?.(request) })
    return reply.send(stream)
  }
}
