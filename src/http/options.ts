import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { FastifyBaseLogger, FastifyHttpOptions, FastifyReply } from 'fastify'
import { maskSecrets } from '../secrets.ts'
import { answerClientError } from './connections.ts'
import { corsHeaders, securityHeaders } from './headers.ts'
import { MAX_BODY_BYTES } from './limits.ts'
import { renderProblem } from './problem.ts'
import type { Observer } from './observer.ts'
import { createSubnets, withoutPort } from './request/client-address.ts'
import { RequestLogController } from './request-log.ts'

interface HttpServerOptions {
  readonly observer: Required<Observer>
  readonly logger: FastifyBaseLogger
  /** Addresses and networks whose `X-Forwarded-*` headers are trusted. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Origins of web pages that may read answers. */
  readonly allowedOrigins?: readonly string[] | undefined
  /** Returns the target of a request without its secrets. */
  readonly rewriteUrl?: ((request: IncomingMessage) => string) | undefined
}

/** Values of a caller's `X-Request-Id` that may appear in log lines and headers. */
const REQUEST_ID = /^[\w.-]{1,64}$/

export function httpServerOptions (options: HttpServerOptions): FastifyHttpOptions<Server> {
  const { logger, trustedProxies = [], allowedOrigins = [], rewriteUrl, observer } = options
  const isTrusted = createSubnets(trustedProxies)
  return {
    loggerInstance: logger,
    logController: new RequestLogController(observer),
    ...rewriteUrl && { rewriteUrl },
    ...trustedProxies.length > 0 && { trustProxy: (hop: string) => isTrusted(withoutPort(hop)) },
    genReqId: ({ headers: { 'x-request-id': id } }) =>
      typeof id === 'string' && REQUEST_ID.test(id) && maskSecrets(id) === id ? id : randomUUID(),
    // Node would refuse a missing Host without a body; `security` answers with a problem.
    http: { headersTimeout: 15_000, connectionsCheckingInterval: 1_000, requireHostHeader: false },
    requestTimeout: 30_000,
    // Node cuts a connection that takes no bytes at the second expiry: before the first, the kernel buffered a part.
    connectionTimeout: 30_000,
    // Longer than load balancers keep idle connections.
    keepAliveTimeout: 72_000,
    bodyLimit: MAX_BODY_BYTES,
    // In decoded characters: four times the longest folder name.
    routerOptions: { maxParamLength: 1_024 },
    // Keys such as `__proto__` are plain data here.
    onProtoPoisoning: 'ignore',
    onConstructorPoisoning: 'ignore',
    // Requests that arrive on open connections during the drain are still answered.
    return503OnClosing: false,
    // Errors of the router (bad percent-encoding, an overlong parameter) run no hooks.
    frameworkErrors (error, request, reply: FastifyReply) {
      reply.headers({ ...securityHeaders, ...corsHeaders(request.headers.origin, allowedOrigins) })
      reply.header('x-request-id', request.id)
      reply.send(renderProblem(error, request, reply))
    },
    clientErrorHandler: answerClientError
  }
}
