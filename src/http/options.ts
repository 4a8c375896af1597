import { randomBytes } from 'node:crypto'
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import type { FastifyBaseLogger, FastifyError, FastifyHttpOptions, FastifyReply, FastifyRequest } from 'fastify'
import { maskSecrets } from '../core/shared/text.ts'
import { MAX_BODY_BYTES } from './limits.ts'
import { answerClientErrors, answerConnect, answerTimeouts } from './connections/client-errors.ts'
import { type Connections, GracefulServer } from './connections/connections.ts'
import { type CorsHeaders, createCorsHeaders } from './cors.ts'
import { sendProblem } from './problem.ts'
import type { Observer } from './observer.ts'
import { RequestLogController } from './request-log.ts'
import { securityHeaders } from './headers.ts'

/** All in milliseconds. */
export interface HttpTimeouts {
  /** The head of a request, from the first byte or the start of the connection. Default 15 s. */
  readonly headers: number
  /** The whole request, body included. Default 30 s. */
  readonly request: number
  /** Interval at which the two above are checked. Default 1 s. */
  readonly check: number
  /** A connection without traffic. Default 60 s. */
  readonly connection: number
  /** An idle connection between two requests; longer than load balancers keep theirs. Default 72 s. */
  readonly keepAlive: number
}

interface HttpServerOptions {
  readonly observer?: Observer | undefined
  /** Addresses and subnets whose `X-Forwarded-For` names the client. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Filled by the server; `draining` and `stalledResponses` read it. */
  readonly connections: Connections
  readonly logger?: FastifyBaseLogger
  readonly timeouts?: Partial<HttpTimeouts>
  /** Origins of web pages that may read what no hook sees. */
  readonly allowedOrigins?: readonly string[]
  /** The target of a request as everything but the connection sees it. */
  readonly rewriteUrl?: ((request: IncomingMessage) => string) | undefined
  /** Answers what the router refuses, or throws what is a problem for the client. Default: each is one. */
  readonly answerBadUrl?: ((error: FastifyError, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>) | undefined
}

/** Longest path parameter, in decoded characters: four times the longest folder name, so that it gets its own answer. */
const MAX_PARAM_CHARACTERS = 1024

/** What may pass from a caller's `X-Request-Id` into log lines and headers. */
const REQUEST_ID = /^[\w.-]{1,64}$/

/** Makes no stream for the body of a request without one: 5 to 6 % of the CPU time of a read. Node 24.12 and later know the option. */
const WITHOUT_EMPTY_BODIES = { optimizeEmptyRequests: true }

/** Fastify's options for this service; `buildApp` adds the plugins that they rely on. */
export function httpServerOptions ({ connections, logger, timeouts = {}, allowedOrigins, rewriteUrl, answerBadUrl = throwOn, observer, trustedProxies = [] }: HttpServerOptions): FastifyHttpOptions<Server> {
  const corsHeaders = createCorsHeaders(allowedOrigins)
  return {
    serverFactory: (handler: RequestListener) => createServer(handler, connections, timeouts, corsHeaders, logger),
    ...(logger === undefined ? undefined : { loggerInstance: logger }),
    ...rewriteUrl && { rewriteUrl },
    // Fastify then leaves its own compilers unloaded, a tenth of the start.
    schemaController: { compilersFactory: { buildValidator: refuseToCompile, buildSerializer: refuseToCompile } },
    trustProxy: trustedProxies.length > 0 ? [...trustedProxies] : false,
    logController: new RequestLogController(observer),
    // One logger for all requests, and the request id in each line: every request would pay for a child logger that few use.
    childLoggerFactory: (parent) => parent,
    genReqId: createRequestIds(),
    bodyLimit: MAX_BODY_BYTES,
    routerOptions: { maxParamLength: MAX_PARAM_CHARACTERS },
    // `jsonBody` has its own parser: such keys are data.
    onProtoPoisoning: 'ignore',
    onConstructorPoisoning: 'ignore',
    // A request that was sent on an open connection before the drain is answered, by `draining` as its last.
    return503OnClosing: false,
    // What the router refuses (bad percent-encoding, an endless parameter) reaches no hook, and so gets its headers here.
    frameworkErrors (error, request, reply) {
      reply.headers({ ...securityHeaders, ...corsHeaders(request) }).header('x-request-id', request.id)
      answerBadUrl(error, request, reply).catch((problem: unknown) => { sendProblem(problem, request, reply) })
    },
    clientErrorHandler: answerClientErrors(connections, corsHeaders)
  }
}

/** The plugin `schemas` has the compilers of the service. */
function refuseToCompile (): never {
  throw new Error('a route with a schema comes after the plugin schemas')
}

function createServer (handler: RequestListener, connections: Connections, timeouts: Partial<HttpTimeouts>, corsHeaders: CorsHeaders, logger: FastifyBaseLogger | undefined): Server {
  const server = new GracefulServer({
    headersTimeout: timeouts.headers ?? 15_000,
    requestTimeout: timeouts.request ?? 30_000,
    keepAliveTimeout: timeouts.keepAlive ?? 72_000,
    connectionsCheckingInterval: timeouts.check ?? 1000,
    // Node's own refusal has no body; `security` makes it a problem.
    requireHostHeader: false,
    ...WITHOUT_EMPTY_BODIES
  }, connections, handler)
  server.on('connect', answerConnect(connections, logger))
  const connectionMs = timeouts.connection ?? 60_000
  return server.setTimeout(connectionMs, answerTimeouts(connections, connectionMs, corsHeaders))
}

async function throwOn (error: FastifyError): Promise<never> {
  throw error
}

/** Ids that do not repeat after a restart or on another replica. */
function createRequestIds (): (request: IncomingMessage) => string {
  const prefix = randomBytes(6).toString('hex')
  let count = 0
  return (request) => {
    const id = request.headers['x-request-id']
    // An id is in every line of the log.
    return typeof id === 'string' && REQUEST_ID.test(id) && maskSecrets(id) === id ? id : `${prefix}-${(++count).toString(36)}`
  }
}
