import { LogController, type FastifyReply, type FastifyRequest } from 'fastify'

/** Longest URL in a line, in characters. */
const MAX_LOGGED_URL_CHARACTERS = 256

/**
 * One line for each request, written when the request is over, whatever became of it. The values are numbers, constants,
 * and text without control characters: the encoded URL, the checked request id. pino escapes the rest.
 */
export class RequestLogController extends LogController {
  override incomingRequest (request: FastifyRequest, reply: FastifyReply): void {
    const start = performance.now()
    // `close` comes after every response, and once; `finish` only after a complete one.
    reply.raw.on('close', () => { logRequest(request, reply, performance.now() - start) })
  }

  override requestCompleted (): void {}

  override streamError (error: Error & { code?: string }, request: FastifyRequest): void {
    if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') request.log.error({ reqId: request.id, err: error }, 'response stream failed')
  }
}

function logRequest (request: FastifyRequest, reply: FastifyReply, milliseconds: number): void {
  const { raw } = reply
  const { url, method } = request
  // A destroyed socket "finishes" what it still held; a whole answer is reported before its socket goes.
  const complete = raw.writableFinished && !request.raw.socket.destroyed
  const bytes = method === 'HEAD' ? undefined : reply.getHeader('content-length')
  // Plain fields: Fastify's `req` and `res` serialisers would build and walk two more objects.
  request.log.info({
    reqId: request.id,
    method,
    url: url.length > MAX_LOGGED_URL_CHARACTERS ? url.slice(0, MAX_LOGGED_URL_CHARACTERS) : url,
    status: raw.statusCode,
    ms: Math.round(milliseconds * 1000) / 1000,
    bytes: bytes === undefined ? undefined : Number(bytes)
  }, complete ? 'request completed' : 'request aborted')
}
