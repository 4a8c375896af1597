import type { FastifyReply, FastifyRequest } from 'fastify'
import { sha256 } from '../core/digest.ts'
import type { Awaitable } from '../core/async.ts'
import { strongEtag } from './etag.ts'
import type { ToolOutcome } from '../tools/tool.ts'
import { stampRevision } from './revision.ts'

export const JSON_MEDIA_TYPE = 'application/json; charset=utf-8'

/** What goes out for a value: made once, since unchanged content is one and the same object. */
export interface Rendered {
  readonly body: Buffer
  readonly etag: string
}

const rendered = new WeakMap<object, Rendered>()

/** Sends a tool's own result object as JSON: the same object as through a tool call. */
export function sendOutcome (request: FastifyRequest, reply: FastifyReply, outcome: ToolOutcome): FastifyReply {
  const answer = renderOnce(outcome, () => outcome.json)
  stampRevision(request, reply, undefined, answer.etag)
  return sendAnswer(reply, answer, JSON_MEDIA_TYPE)
}

/** Answers with what `send` makes of a value: in the same turn when the value is there. */
export function answer<T> (value: Awaitable<T>, send: (value: T) => unknown): Promise<unknown> | undefined {
  if (value instanceof Promise) return value.then(send)
  send(value)
  return undefined
}

/** Sends the text, of JSON unless `type` says otherwise, that `render` makes of a value that never changes. */
export function sendRendered (reply: FastifyReply, value: object, render: () => string, type = JSON_MEDIA_TYPE): FastifyReply {
  return sendAnswer(reply, renderOnce(value, render), type)
}

/** The body for a value that never changes, and its ETag. */
export function renderOnce (value: object, render: () => string): Rendered {
  let known = rendered.get(value)
  if (known === undefined) {
    const body = Buffer.from(render())
    known = { body, etag: strongEtag(sha256(body)) }
    rendered.set(value, known)
  }
  return known
}

function sendAnswer (reply: FastifyReply, { body, etag }: Rendered, type: string): FastifyReply {
  return reply.header('content-type', type).header('etag', etag).send(body)
}
