import type { FastifyReply } from 'fastify'
import { sha256 } from '../../core/ground/digest.ts'
import type { ToolOutcome } from '../../tools/tool.ts'
import { strongEtag } from '../etag.ts'
import type { RevisionCondition } from '../revision.ts'

export const JSON_MEDIA_TYPE = 'application/json; charset=utf-8'

/** The answer for a value: made once, since unchanged content is one and the same object. */
export interface Rendered {
  readonly body: Buffer
  readonly etag: string
}

const rendered = new WeakMap<object, Rendered>()

/** Sends a tool's own result object as JSON: the same object as through a tool call. */
export function sendOutcome (reply: FastifyReply, outcome: ToolOutcome, condition: RevisionCondition): FastifyReply {
  return sendConditional(reply, renderOnce(outcome, () => outcome.json), condition)
}

/** Sends the JSON text that `render` makes of a value that never changes. */
export function sendJson (reply: FastifyReply, value: object, render: () => string, condition?: RevisionCondition): FastifyReply {
  return sendConditional(reply, renderOnce(value, render), condition)
}

/** Sends the text, of JSON unless `type` says otherwise, that `render` makes of a value that never changes. */
export function sendRendered (reply: FastifyReply, value: object, render: () => string, type = JSON_MEDIA_TYPE): FastifyReply {
  return sendBody(reply, renderOnce(value, render), type)
}

/** The body for a value that never changes, and its ETag. */
function renderOnce (value: object, render: () => string): Rendered {
  let known = rendered.get(value)
  if (known === undefined) {
    const body = Buffer.from(render())
    known = { body, etag: strongEtag(sha256(body)) }
    rendered.set(value, known)
  }
  return known
}

function sendConditional (reply: FastifyReply, answer: Rendered, condition: RevisionCondition | undefined): FastifyReply {
  condition?.confirm(reply, answer.etag)
  return sendBody(reply, answer, JSON_MEDIA_TYPE)
}

function sendBody (reply: FastifyReply, { body, etag }: Rendered, type: string): FastifyReply {
  return reply.header('content-type', type).header('etag', etag).send(body)
}
