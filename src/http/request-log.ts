import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { LogController, type FastifyBaseLogger, type FastifyReply, type FastifyRequest } from 'fastify'
import { maskSecrets } from '../core/shared/text.ts'
import { NEVER_ANSWERED, type Observer } from './observer.ts'
import { problemCodeOf, refusedStatusOf } from './problem.ts'
import { peerOf } from './request/client-address.ts'
import { traceOf } from './request/traceparent.ts'

/** Longest URL in a line, in characters. */
const MAX_LOGGED_URL_CHARACTERS = 256

export interface RequestLogOptions {
  readonly observer?: Observer | undefined
  /** The address of a client behind trusted proxies. Default: that of the peer. */
  readonly clientOf?: ((request: IncomingMessage) => string) | undefined
}

interface RequestLine {
  readonly reqId: string
  readonly method: string
  readonly url: string
  readonly status: number
  readonly code: string | undefined
  readonly ms: number
  readonly bytes: number | undefined
  client?: string
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
  /** By connection and route: pino renders the fields of a child once, and two fields of each line would cost 0.3 µs. */
  readonly #loggers = new WeakMap<Socket, Map<string | undefined, FastifyBaseLogger>>()
  readonly #observer: Observer | undefined
  readonly #clientOf: RequestLogOptions['clientOf']

  constructor ({ observer, clientOf }: RequestLogOptions = {}) {
    super()
    this.#observer = observer
    this.#clientOf = clientOf
  }

  override incomingRequest (request: FastifyRequest, reply: FastifyReply): void {
    const start = performance.now()
    const observer = this.#observer
    observer?.onRequest(request, reply)
    // Now, because a socket forgets its address when it closes.
    const log = this.#loggerOf(request)
    const client = this.#clientOf?.(request.raw)
    // A request that is destroyed with its answer has none any more.
    const { socket } = request.raw
    // `close` comes after every response, and once; `finish` only after a complete one.
    reply.raw.on('close', () => { logRequest(log, request, reply, performance.now() - start, socket.destroyed, observer, client) })
  }

  override requestCompleted (): void {}

  override streamError (error: Error & { code?: string }, request: FastifyRequest): void {
    if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') request.log.error({ reqId: request.id, err: error }, 'response stream failed')
  }

  #loggerOf ({ log, raw, routeOptions: { url: route } }: FastifyRequest): FastifyBaseLogger {
    let ofSocket = this.#loggers.get(raw.socket)
    if (ofSocket === undefined) this.#loggers.set(raw.socket, ofSocket = new Map())
    let logger = ofSocket.get(route)
    if (logger === undefined) ofSocket.set(route, logger = log.child(this.#clientOf === undefined ? { client: peerOf(raw), route } : { route }))
    return logger
  }
}

function logRequest (log: FastifyBaseLogger, request: FastifyRequest, reply: FastifyReply, milliseconds: number, isCut: boolean, observer: Observer | undefined, client: string | undefined): void {
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
    bytes
  }
  if (client !== undefined) line.client = client
  if (request.principal !== undefined) line.principal = request.principal.name
  const trace = traceOf(request)
  if (trace !== undefined) {
    line.trace_id = trace.traceId
    line.span_id = trace.spanId
    line.trace_flags = trace.flags
  }
  log.info(line, isComplete ? 'request completed' : 'request aborted')
  observer?.onResponse(request, reply, { milliseconds, status, isComplete, bytes })
}
