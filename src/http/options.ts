import { randomBytes } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { FastifyBaseLogger, FastifyError, FastifyHttpOptions, FastifyReply, FastifyRequest } from 'fastify'
import { maskSecrets } from '../core/shared/text.ts'
import { answerClientError } from './client-errors.ts'
import { securityHeaders } from './headers.ts'
import { MAX_BODY_BYTES } from './limits.ts'
import { sendProblem } from './problem.ts'
import type { Observer } from './observer.ts'
import { RequestLogController } from './request-log.ts'

/** All in milliseconds. */
export interface HttpTimeouts {
  /** The head of a request. Default 15 s. */
  readonly headers: number
  /** The whole request, body included. Default 30 s. */
  readonly request: number
  /** Interval at which the two above are checked. Default 1 s. */
  readonly check: number
  /**
   * A connection without traffic. Node cuts one that takes nothing of its answer at the second expiry: when the first
   * one comes, the system has taken a part. Default 30 s.
   */
  readonly connection: number
  /** An idle connection between two requests, longer than load balancers keep theirs. Default 72 s. */
  readonly keepAlive: number
}

export interface HttpServerOptions {
  readonly observer?: Observer | undefined
  readonly logger: FastifyBaseLogger
  readonly timeouts?: Partial<HttpTimeouts>
  /** Addresses and networks whose `X-Forwarded-*` headers count. */
  readonly trustedProxies?: readonly string[]
  /** The target of a request without what nobody may log. */
  readonly rewriteUrl?: ((request: IncomingMessage) => string) | undefined
  /** Answers what the router refuses, or throws what is a problem for the client. Default: each is one. */
  readonly answerBadUrl?:
    ((error: FastifyError, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>) | undefined
}

/**
 * Longest path parameter, in decoded characters: four times the longest folder name, so that each gets its own answer.
 */
const MAX_PARAM_CHARACTERS = 1024

/** What may pass from a caller's `X-Request-Id` into log lines and headers. */
const REQUEST_ID = /^[\w.-]{1,64}$/

/** Fastify's options for this service. */
export function httpServerOptions (options: HttpServerOptions): FastifyHttpOptions<Server> {
  const { logger, timeouts = {}, trustedProxies = [], rewriteUrl, answerBadUrl = rethrow, observer } = options
  return {
    loggerInstance: logger,
    logController: new RequestLogController(observer),
    // One logger for all requests, and the request id in each line: every request would pay for a child logger that few
    // use.
    childLoggerFactory: (parent) => parent,
    ...rewriteUrl && { rewriteUrl },
    ...trustedProxies.length > 0 && { trustProxy: [...trustedProxies] },
    genReqId: createRequestIds(),
    http: {
      headersTimeout: timeouts.headers ?? 15_000,
      connectionsCheckingInterval: timeouts.check ?? 1_000,
      // Node's own refusal has no body; `security` makes it a problem.
      requireHostHeader: false
    },
    requestTimeout: timeouts.request ?? 30_000,
    connectionTimeout: timeouts.connection ?? 30_000,
    keepAliveTimeout: timeouts.keepAlive ?? 72_000,
    bodyLimit: MAX_BODY_BYTES,
    routerOptions: { maxParamLength: MAX_PARAM_CHARACTERS },
    // Such keys are data.
    onProtoPoisoning: 'ignore',
    onConstructorPoisoning: 'ignore',
    // A request that was sent on an open connection before the drain is answered, as the last one.
    return503OnClosing: false,
    // What the router refuses (bad percent-encoding, an endless parameter) reaches no hook, and so gets its headers
    // here.
    frameworkErrors (error, request, reply) {
      reply.headers(securityHeaders).header('x-request-id', request.id)
      answerBadUrl(error, request, reply).catch((problem: unknown) => { sendProblem(problem, request, reply) })
    },
    clientErrorHandler: answerClientError
  }
}

async function rethrow (error: FastifyError): Promise<never> {
  throw error
}

/** Ids that do not repeat after a restart or on another replica. */
function createRequestIds (): (request: IncomingMessage) => string {
  const prefix = randomBytes(6).toString('hex')
  let count = 0
  return ({ headers: { 'x-request-id': id } }) =>
    typeof id === 'string' && REQUEST_ID.test(id) && maskSecrets(id) === id ? id : `${prefix}-${(++count).toString(36)}`
}
