import { type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import { maskSecrets } from '../secrets.ts'
import { CLIENT_CLOSED_REQUEST, type Observer } from './observer.ts'
import { clientOf } from './request/client-address.ts'
import { traceOf } from './request/traceparent.ts'

/** Longest URL in a line, in characters. */
const MAX_LOGGED_URL_CHARACTERS = 256

/** An access token in the query, where it does not belong (RFC 6750 §2.3). */
const TOKEN_IN_QUERY = /(access_token=)[^&]+/gi

/** Logs one line for each request once its response has closed, complete or not. No header is logged. */
export class RequestLogController extends LogController {
  readonly #observer: Required<Observer>
  #hasWarned = false

  constructor (observer: Required<Observer>) {
    super()
    this.#observer = observer
  }

  override incomingRequest (request: FastifyRequest, reply: FastifyReply): void {
    const start = performance.now()
    this.#warnOnce(request)
    this.#observer.onRequest(request)
    // The address is read now, since a socket forgets it when it closes.
    const client = clientOf(request)
    const { method, url, log, raw: { socket } } = request
    // Fastify's onResponse is not called for a response that its client has cut.
    reply.raw.once('close', () => {
      const { headersSent, statusCode, writableFinished } = reply.raw
      const { principal, problemCode, routeOptions: { url: route, config } } = request
      const status = headersSent ? statusCode : CLIENT_CLOSED_REQUEST
      const milliseconds = performance.now() - start
      // A destroyed socket also reports bytes as finished that it never sent.
      const isComplete = writableFinished && !socket.destroyed
      const length = method === 'HEAD' ? undefined : reply.getHeader('content-length')
      const bytes = length === undefined ? undefined : Number(length)
      const trace = traceOf(request)
      log[status === 304 || config.load === 'probe' ? 'debug' : 'info']({
        client,
        route,
        method,
        url: maskSecrets(url).replace(TOKEN_IN_QUERY, '$1***').slice(0, MAX_LOGGED_URL_CHARACTERS),
        status,
        code: status < 400 || status === CLIENT_CLOSED_REQUEST ? undefined : problemCode,
        ms: Math.round(milliseconds * 1000) / 1000,
        bytes,
        ...principal !== undefined && { principal: principal.name },
        ...trace !== undefined && { trace_id: trace.traceId, span_id: trace.spanId, trace_flags: trace.flags }
      }, isComplete ? 'request completed' : 'request aborted')
      this.#observer.onResponse(request, reply, { milliseconds, status, isComplete, bytes })
    })
  }

  override requestCompleted (): void {}

  override streamError (error: Error & { code?: string }, request: FastifyRequest): void {
    if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') request.log.error({ err: error }, 'response stream failed')
  }

  /** An ignored header usually comes from a proxy that is missing in TRUSTED_PROXIES. */
  #warnOnce ({ raw, ips = [], log }: FastifyRequest): void {
    if (this.#hasWarned || raw.headers['x-forwarded-for'] === undefined || ips.length > 1) return
    this.#hasWarned = true
    log.warn({ peer: raw.socket.remoteAddress }, 'X-Forwarded-For is ignored, since its sender is not in ' +
      'TRUSTED_PROXIES: all clients behind one proxy count as one')
  }
}
