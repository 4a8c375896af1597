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
  /** Addresses and networks whose `X-Forwarded-*` headers count. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Origins of web pages that may read answers. */
  readonly allowedOrigins?: readonly string[] | undefined
  /** Returns the target of a request without its secrets. */
  readonly rewriteUrl?: ((request: IncomingMessage) => string) | undefined
}

/** Values of a caller's `X-Request-Id` that may appear in log lines and headers. */
const REQUEST_ID = /^[\w.-]{1,64}$/

/** Fastify's options for this service. */
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
    // Node's own refusal of a missing Host has no body; `security` makes it a problem.
    http: { headersTimeout: 15_000, connectionsCheckingInterval: 1_000, requireHostHeader: false },
    requestTimeout: 30_000,
    // Node cuts an answer of which nothing is taken at the second expiry: at the first, the system has taken a part.
    connectionTimeout: 30_000,
    // Longer than load balancers keep idle connections.
    keepAliveTimeout: 72_000,
    bodyLimit: MAX_BODY_BYTES,
    // In decoded characters: four times the longest folder name.
    routerOptions: { maxParamLength: 1_024 },
    // Such keys are data.
    onProtoPoisoning: 'ignore',
    onConstructorPoisoning: 'ignore',
    // A request that was sent on an open connection before the drain is answered, as the last one.
    return503OnClosing: false,
    // What the router refuses (bad percent-encoding, an endless parameter) reaches no hook.
    frameworkErrors (error, request, reply: FastifyReply) {
      reply.headers({ ...securityHeaders, ...corsHeaders(request.headers.origin, allowedOrigins) })
      reply.header('x-request-id', request.id)
      reply.send(renderProblem(error, request, reply))
    },
    clientErrorHandler: answerClientError
  }
}
