import type { FastifyReply } from 'fastify'

export const JSON_MEDIA_TYPE = 'application/json; charset=utf-8'

/** For a handler to return: JSON text that Fastify does not serialize again. */
export function jsonText (reply: FastifyReply, text: string): string {
  reply.header('content-type', JSON_MEDIA_TYPE)
  return text
}
