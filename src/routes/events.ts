import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import type { OnAccessEnd } from '../http/callers.ts'
import type { ChangeFeed, FeedEvent } from '../core/events/change-feed.ts'
import type { Observer } from '../http/observer.ts'
import { EVENT_RETRY_MS, EVENT_RETRY_SPREAD_MS, MAX_EVENT_STREAMS } from '../http/limits.ts'
import { accepts } from '../http/request/accept.ts'
import { HttpProblem } from '../http/problem.ts'
import { createEventStreams, EVENT_STREAM_MEDIA_TYPE } from '../http/send/event-streams.ts'
import { uncachedAnswer, text } from '../openapi/responses.ts'

export interface EventRoutesOptions {
  readonly feedOf: (request: FastifyRequest) => Pick<ChangeFeed, 'position' | 'subscribe'>
  readonly onAccessEnd: OnAccessEnd
  readonly observer?: Pick<Observer, 'onStream'> | undefined
  /** Default: MAX_EVENT_STREAMS. */
  readonly maxStreams?: number
}

const HeadersSchema = Type.Object({
  'last-event-id': Type.Optional(Type.String({
    description: 'Id of the last event that is known, as EventSource sends it: those after it come first'
  }))
})

const QuerySchema = Type.Object({
  last_event_id: Type.Optional(Type.String({
    description: 'The same, for clients that cannot set headers; the header wins'
  }))
})

const EVENTS_EXAMPLE = `retry: 3000

id: 8f3a51c09d2e-16

id: 8f3a51c09d2e-17
event: changed
data: {"name":"calculator","revision":"sha256:${'0123456789abcdef'.repeat(4)}"}

: still here

id: 8f3a51c09d2e-18
event: removed
data: {"name":"weather"}

`

/** Streams changes of skills as server-sent events. */
export const eventRoutes: FastifyPluginAsyncTypebox<EventRoutesOptions> = async function eventRoutes (app, options) {
  const { feedOf } = options
  const openStream = createEventStreams(app, { maxStreams: MAX_EVENT_STREAMS, ...options })

  app.get('/events', {
    config: {
      reads: { event: 'events.open', api: 'rest' },
      weight: ({ headers }) => accepts(headers.accept, EVENT_STREAM_MEDIA_TYPE) ? 'stream' : undefined
    },
    schema: {
      operationId: 'followEvents',
      summary: 'Follow changes of skills',
      description: 'Server-sent events `added`, `changed` and `removed`, each with the name of a skill and, while it ' +
        'is there, the revision of its manifest. An edit of any of its files is a change. `reset` says that events ' +
        'were missed: read the catalog again. The id of an event is the `Catalog-Revision` after it, so that a ' +
        'stream resumes at any replica.',
      tags: ['skills'],
      headers: HeadersSchema,
      querystring: QuerySchema,
      response: { 200: uncachedAnswer('The events, without an end', text(EVENT_STREAM_MEDIA_TYPE, EVENTS_EXAMPLE)) }
    }
  }, async (request, reply) => {
    if (!accepts(request.headers.accept, EVENT_STREAM_MEDIA_TYPE)) throw new HttpProblem('not_acceptable')
    const lastId = request.headers['last-event-id'] || request.query.last_event_id || undefined
    return openStream(request, reply, (send) => {
      const feed = feedOf(request)
      send(Buffer.from(`retry: ${EVENT_RETRY_MS + Math.floor(Math.random() * EVENT_RETRY_SPREAD_MS)}\n\n`))
      const unsubscribe = feed.subscribe((event) => { send(frameOf(event)) }, lastId)
      // An id without an event: a client that is disconnected before the first event resumes from here.
      if (lastId === undefined) send(Buffer.from(`id: ${feed.position}\n\n`))
      return unsubscribe
    })
  })
}

function frameOf (event: FeedEvent): Buffer {
  const { id, type, ...change } = event
  const data = type === 'reset' ? { message: 'Events were missed: read the skills that you need again' } : change
  // A position has only an id, so that clients remember it without an event.
  const text = type === 'position' ? '' : `event: ${type}\ndata: ${JSON.stringify(data)}\n`
  return Buffer.from(`id: ${id}\n${text}\n`)
}
