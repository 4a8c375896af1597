import type { FastifyReply } from 'fastify'
import { sha256 } from '../core/file-content.ts'
import { strongEtag } from '../plugins/conditional.ts'
import type { ToolOutcome } from '../tools/tool.ts'

export const JSON_MEDIA_TYPE = 'application/json; charset=utf-8'

/** What goes out for an outcome: made once, since an unchanged document has one and the same outcome. */
interface Rendered {
  readonly body: Buffer
  readonly etag: string
}

const rendered = new WeakMap<ToolOutcome, Rendered>()

/** Sends a tool's own result object as JSON: the same object as through a tool call (K31). */
export function sendOutcome (reply: FastifyReply, outcome: ToolOutcome): FastifyReply {
  let answer = rendered.get(outcome)
  if (answer === undefined) {
    const body = Buffer.from(outcome.json)
    answer = { body, etag: strongEtag(sha256(body)) }
    rendered.set(outcome, answer)
  }
  return reply.header('content-type', JSON_MEDIA_TYPE).header('etag', answer.etag).send(answer.body)
}
