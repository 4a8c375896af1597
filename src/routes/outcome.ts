import type { FastifyReply } from 'fastify'
import { sha256 } from '../core/file-content.ts'
import { strongEtag } from '../plugins/conditional.ts'
import type { ToolOutcome } from '../tools/tool.ts'

export const JSON_MEDIA_TYPE = 'application/json; charset=utf-8'

/** What goes out for a value: made once, since unchanged content is one and the same object. */
interface Rendered {
  readonly body: Buffer
  readonly etag: string
}

const rendered = new WeakMap<object, Rendered>()

/** Sends a tool's own result object as JSON: the same object as through a tool call (K31). */
export function sendOutcome (reply: FastifyReply, outcome: ToolOutcome): FastifyReply {
  return sendRendered(reply, outcome, () => outcome.json)
}

/** Sends the text, of JSON unless `type` says otherwise, that `render` makes of a value that never changes. */
export function sendRendered (reply: FastifyReply, value: object, render: () => string, type = JSON_MEDIA_TYPE): FastifyReply {
  let answer = rendered.get(value)
  if (answer === undefined) {
    const body = Buffer.from(render())
    answer = { body, etag: strongEtag(sha256(body)) }
    rendered.set(value, answer)
  }
  return reply.header('content-type', type).header('etag', answer.etag).send(answer.body)
}
