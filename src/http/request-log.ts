import { LogController, type FastifyReply, type FastifyRequest } from 'fastify'
import { maskSecrets } from '../core/shared/text.ts'
import { NEVER_ANSWERED, type Observer } from './observer.ts'
import { problemCodeOf, refusedStatusOf } from './problem.ts'
import { clientOf } from './request/client-address.ts'
import { traceOf } from './request/traceparent.ts'

/** Longest URL in a line, in characters. */
const MAX_LOGGED_URL_CHARACTERS = 256

export interface RequestLogOptions {
  readonly observer?: Observer | undefined
}

interface RequestLine {
  readonly reqId: string
  readonly method: string
  readonly url: string
  readonly status: number
  readonly code: string | undefined
  readonly ms: number
  readonly bytes: number | undefined
  readonly client: string
  readonly route: string | undefined
  principal?: string
  trace_id?: string
  span_id?: string
  trace_flags?: string
}

/**
 * Logs one line for each request when its response has closed, complete or not. The fields are numbers, constants and
 * texts without control characters: the encoded URL, the checked request id, the route and the address of the client.
 */
export class RequestLogController extends LogController {
  readonly #observer: Observer | undefined

  constructor ({ observer }: RequestLogOptions = {}) {
    super()
    this.#observer = observer
  }

  override incomingRequest (request: FastifyRequest, reply: FastifyReply): void {
    const start = performance.now()
    const observer = this.#observer
    observer?.onRequest(request, reply)
    // Now, because a socket forgets its address when it closes.
    const client = clientOf(request)
    // A request that is destroyed with its answer has none any more.
    const { socket } = request.raw
    // `close` comes after every response, and once; `finish` only after a complete one.
    reply.raw.on('close', () => { logRequest(request, reply, performance.now() - start, socket.destroyed, observer, client) })
  }

  override requestCompleted (): void {}

  override streamError (error: Error & { code?: string }, request: FastifyRequest): void {
    if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') request.log.error({ reqId: request.id, err: error }, 'response stream failed')
  }
}

function logRequest (request: FastifyRequest, reply: FastifyReply, milliseconds: number, isCut: boolean, observer: Observer | undefined, client: string): void {
  const { raw } = reply
  const { method } = request
  const url = maskSecrets(request.url)
  // A destroyed socket counts what it still held as finished. A complete response closes before its socket is destroyed.
  const isComplete = raw.writableFinished && !isCut
  // Until its head is out, a response says 200, or what nobody was told.
  const status = raw.headersSent ? raw.statusCode : refusedStatusOf(raw) ?? NEVER_ANSWERED
  const length = method === 'HEAD' ? undefined : reply.getHeader('content-length')
  const bytes = length === undefined ? undefined : Number(length)
  // Flat fields, because Fastify's serialisers of `req` and `res` would build two more objects; those that most lines lack are added.
  const line: RequestLine = {
    reqId: request.id,
    method,
    url: url.length > MAX_LOGGED_URL_CHARACTERS ? url.slice(0, MAX_LOGGED_URL_CHARACTERS) : url,
    status,
    code: status < 400 || status === NEVER_ANSWERED ? undefined : problemCodeOf(request),
    ms: Math.round(milliseconds * 1000) / 1000,
    bytes,
    client,
    route: request.routeOptions.url
  }
  if (request.principal !== undefined) line.principal = request.principal.name
  const trace = traceOf(request)
  if (trace !== undefined) {
    line.trace_id = trace.traceId
    line.span_id = trace.spanId
    line.trace_flags = trace.flags
  }
  request.log.info(line, isComplete ? 'request completed' : 'request aborted')
  observer?.onResponse(request, reply, { milliseconds, status, isComplete, bytes })
}
