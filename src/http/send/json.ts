import type { FastifyReply } from 'fastify'
import { sha256 } from '../../core/shared/digest.ts'
import type { ToolOutcome } from '../../tools/tool.ts'
import { strongEtag } from '../etag.ts'
import type { RevisionCondition } from '../revision.ts'

export const JSON_MEDIA_TYPE = 'application/json; charset=utf-8'

/** The answer for a value: made once, since unchanged content is one and the same object. */
interface Rendered {
  readonly body: Buffer
  readonly etag: string
}

const rendered = new WeakMap<object, Rendered>()

/** Texts that are being made in slices. */
const beingMade = new WeakMap<object, Promise<string>>()

/** The body for a tool's own result object as JSON: the same object as through a tool call. Sets the headers, as all of these do. */
export function answerOutcome (reply: FastifyReply, outcome: ToolOutcome, condition: RevisionCondition): Buffer {
  return answerJson(reply, outcome, () => outcome.json, condition)
}

/** The body is the JSON text that `render` makes of a value that never changes. */
export function answerJson (reply: FastifyReply, value: object, render: () => string, condition?: RevisionCondition): Buffer {
  const answer = renderOnce(value, render)
  condition?.confirm(reply, answer.etag)
  return answerBody(reply, answer, JSON_MEDIA_TYPE)
}

/** The body is the text, of JSON unless `type` says otherwise, that `render` makes of a value that never changes. */
export function answerRendered (reply: FastifyReply, value: object, render: () => string, type = JSON_MEDIA_TYPE): Buffer {
  return answerBody(reply, renderOnce(value, render), type)
}

/** The same for a long text, which `render` makes in slices. Those who ask meanwhile wait for the same text. */
export async function answerLong (reply: FastifyReply, value: object, render: () => Promise<string>): Promise<Buffer> {
  let text = ''
  if (!rendered.has(value)) {
    const making = beingMade.get(value) ?? render().finally(() => { beingMade.delete(value) })
    beingMade.set(value, making)
    text = await making
  }
  return answerRendered(reply, value, () => text)
}

function answerBody (reply: FastifyReply, { body, etag }: Rendered, type: string): Buffer {
  reply.header('content-type', type).header('etag', etag)
  return body
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
