import type { FastifyReply } from 'fastify'
import { sha256 } from '../../core/shared/digest.ts'
import { strongEtag } from '../headers.ts'

export const JSON_MEDIA_TYPE = 'application/json; charset=utf-8'

/** Rendered answers, by the value that they render. */
const rendered = new WeakMap<object, { readonly body: Buffer, readonly etag: string }>()

/** Returns JSON text for a handler to return, which Fastify does not serialize again. */
export function jsonText (reply: FastifyReply, text: string): string {
  reply.header('content-type', JSON_MEDIA_TYPE)
  return text
}

/**
 * Returns JSON of a value that many answers share, with its ETag; both are computed once.
 * @param serialize default: by the schema of the route
 */
export function keptJson (
  reply: FastifyReply, value: object,
  serialize = (value: object) => String(reply.serializeInput({ ...value }, '200', 'application/json'))
): Buffer {
  const known = rendered.get(value) ?? render(serialize(value))
  rendered.set(value, known)
  reply.headers({ 'content-type': JSON_MEDIA_TYPE, etag: known.etag })
  return known.body
}

function render (text: string) {
  return { body: Buffer.from(text), etag: strongEtag(sha256(text)) }
}
