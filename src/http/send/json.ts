import type { FastifyReply } from 'fastify'
import { sha256 } from '../../core/shared/digest.ts'
import { strongEtag } from '../etag.ts'

export const JSON_MEDIA_TYPE = 'application/json; charset=utf-8'

/** By the identity of values that never change: unchanged content is one and the same object. */
const rendered = new WeakMap<object, Promise<{ readonly body: Buffer, readonly etag: string }>>()

/** The body is the text that `render` makes of a value that never changes, once for all requests. */
export async function answerRendered (
  reply: FastifyReply, value: object, render: () => string | Promise<string>, type = JSON_MEDIA_TYPE
): Promise<Buffer> {
  let making = rendered.get(value)
  if (making === undefined) {
    making = renderBody(render)
    rendered.set(value, making)
    making.catch(() => { rendered.delete(value) })
  }
  const { body, etag } = await making
  reply.header('content-type', type).header('etag', etag)
  return body
}

async function renderBody (render: () => string | Promise<string>) {
  const body = Buffer.from(await render())
  return { body, etag: strongEtag(sha256(body)) }
}
