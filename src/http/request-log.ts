import { LogController, type FastifyReply, type FastifyRequest } from 'fastify'

/** Longest URL in a line, in characters. */
const MAX_LOGGED_URL_CHARACTERS = 256

/**
 * Logs one line for each request when its response has closed, complete or not. The fields are numbers, constants and
 * two texts without control characters: the encoded URL and the checked request id.
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
  // A destroyed socket counts what it still held as finished. A complete response closes before its socket is destroyed.
  const isComplete = raw.writableFinished && !request.raw.socket.destroyed
  const bytes = method === 'HEAD' ? undefined : reply.getHeader('content-length')
  // Flat fields, because Fastify's serialisers of `req` and `res` would build two more objects.
  request.log.info({
    reqId: request.id,
    method,
    url: url.length > MAX_LOGGED_URL_CHARACTERS ? url.slice(0, MAX_LOGGED_URL_CHARACTERS) : url,
    status: raw.statusCode,
    ms: Math.round(milliseconds * 1000) / 1000,
    bytes: bytes === undefined ? undefined : Number(bytes)
  }, isComplete ? 'request completed' : 'request aborted')
}
