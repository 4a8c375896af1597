import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { ChangeFeed, FeedEvent } from '../core/events/change-feed.ts'
import { EVENT_HEARTBEAT_MS, EVENT_RETRY_MS, MAX_EVENT_STREAM_BYTES, MAX_EVENT_STREAMS } from '../http/limits.ts'
import { accepts } from '../http/accept.ts'
import { HttpProblem } from '../http/problem.ts'
import { EventsHeadersSchema, EventsQuerySchema } from '../schemas/events.ts'
import { EVENTS_EXAMPLE } from '../openapi/examples.ts'
import { eventStreamAnswer, problemAnswers } from '../openapi/responses.ts'

export interface EventRoutesOptions {
  readonly feed: Pick<ChangeFeed, 'position' | 'subscribe'>
  /** Whether the process has received a signal to stop. */
  readonly isDraining: () => boolean
  /** Defaults: those of `limits.ts`. */
  readonly maxStreams?: number
  readonly maxStreamBytes?: number
  readonly heartbeatMs?: number
}

const MEDIA_TYPE = 'text/event-stream'
const RETRY = Buffer.from(`retry: ${EVENT_RETRY_MS}\n\n`)
const HEARTBEAT = Buffer.from(': still here\n\n')

/** An event is the same bytes for all clients: what waits for slow ones is in memory once. */
const frames = new WeakMap<FeedEvent, Buffer>()

/**
 * Changes of skills as server-sent events. A plain stream passes through the hooks like every other answer, shows its
 * back-pressure, and ends with its connection. @fastify/sse 0.4 and 0.6 and fastify-sse-v2 4.2 write past the hooks and keep
 * 54 MB for a client that reads nothing. They also delay `app.close()`, and open a stream for HEAD.
 */
export const eventRoutes: FastifyPluginAsyncTypebox<EventRoutesOptions> = async function eventRoutes (app, options) {
  const { feed, isDraining, maxStreams = MAX_EVENT_STREAMS, maxStreamBytes = MAX_EVENT_STREAM_BYTES, heartbeatMs = EVENT_HEARTBEAT_MS } = options
  const streams = new Map<Readable, ServerResponse>()
  let closing = false

  /** What a client does not take waits, up to a bound. Then the client is dropped, and comes back with the last id it has. */
  function send (stream: Readable, frame: Buffer): void {
    if (stream.destroyed) return
    if (stream.readableLength + frame.length <= maxStreamBytes) stream.push(frame)
    else {
      stream.destroy()
      app.log.info({ bytes: stream.readableLength }, 'a client that does not read its events was dropped')
    }
  }

  const heartbeat = setInterval(() => {
    for (const stream of streams.keys()) send(stream, HEARTBEAT)
  }, heartbeatMs).unref()

  // Not `onClose`, which waits for the answers that are under way.
  app.addHook('preClose', async () => {
    closing = true
    clearInterval(heartbeat)
    const open = [...streams]
    for (const [stream] of open) stream.push(null)
    await nextTurn()
    // The end of a stream waits behind what the client has not read.
    for (const [, response] of open) if (!response.writableEnded || response.writableLength > 0) response.destroy()
  })

  app.get('/events', {
    schema: {
      operationId: 'followEvents',
      summary: 'Follow changes of skills',
      description: 'Server-sent events `added`, `changed` and `removed`, each with the name of a skill and, while it is there, the revision of its manifest. An edit of any of its files is a change. `reset` says that events were missed: read the catalog again.',
      tags: ['skills'],
      headers: EventsHeadersSchema,
      querystring: EventsQuerySchema,
      response: { 200: eventStreamAnswer('The events, without an end', EVENTS_EXAMPLE), ...problemAnswers('not_acceptable', 'too_many_streams', 'not_ready') }
    }
  }, async (request, reply) => {
    if (!accepts(request.headers.accept, MEDIA_TYPE)) throw new HttpProblem('not_acceptable')
    if (closing || isDraining()) throw new HttpProblem('not_ready', 'The service is stopping')
    if (streams.size >= maxStreams) throw new HttpProblem('too_many_streams')
    reply.headers({ 'content-type': MEDIA_TYPE, 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
    if (request.method === 'HEAD') return reply.send(Readable.from([]))

    const stream = new Readable({ read () {} })
    streams.set(stream, reply.raw)
    stream.push(RETRY)
    const lastId = request.headers['last-event-id'] || request.query.last_event_id || undefined
    const unsubscribe = feed.subscribe((event) => { send(stream, frameOf(event)) }, lastId)
    stream.once('close', () => {
      unsubscribe()
      streams.delete(stream)
    })
    // Without an event: a client that is cut off before the first one resumes from here.
    if (lastId === undefined) send(stream, Buffer.from(`id: ${feed.position}\n\n`))
    return reply.send(stream)
  })
}

function frameOf (event: FeedEvent): Buffer {
  let frame = frames.get(event)
  if (frame === undefined) {
    const { id, type, ...change } = event
    const data = type === 'reset' ? { message: 'Events were missed: read the skills that you need again' } : change
    frame = Buffer.from(`id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`)
    frames.set(event, frame)
  }
  return frame
}
