import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { CoreLog } from '../core/ground/log.ts'
import { HttpProblem, replaceProblem } from '../http/problem.ts'
import { networkOf, peerOf, type ClientOf } from '../http/request/client-address.ts'
import type { Tool } from '../tools/tool.ts'
import { type Bucket, Buckets } from './buckets.ts'

export interface LimitsOptions {
  /** Units that come back to each caller per second. */
  readonly rate: number
  /** Units that a caller may use at once. */
  readonly burst: () => number
  /** Whether callers are told apart: then anonymous ones may not guess names either. */
  readonly hasCallers: boolean
  readonly clientOf: ClientOf
  /** Whether `clientOf` trusts any proxy. */
  readonly hasProxies: boolean
  readonly log: CoreLog
  readonly now?: () => number
}

export interface Limits {
  /** Registered after whatever sets `request.principal`. */
  readonly plugin: FastifyPluginAsync
  /** Counts one tool call. Returns the sentence for a model whose caller is past the limit. */
  admitCall (request: FastifyRequest, tool: Tool): string | undefined
  /** Buckets that replicas may share, by a name for each kind. */
  readonly shared: Readonly<Record<string, Buckets>>
}

/** Never limited: a platform that gets no answer restarts the service, and a client cannot log in without the metadata. */
const EXEMPT = /\/(?:livez|readyz|metrics)$|\/\.well-known\/oauth-/

/** Tool calls are counted one by one when they run. */
const TOOL_CALLS = /\/agent\/tool-call$/
const STREAMS = /\/(?:events|mcp)$/

const SEARCH_UNITS = 3
const STREAM_UNITS = 10
const UNIT_BYTES = 1_048_576

/** Open streams of events of one caller. */
const MAX_STREAMS = 16

/** Refused requests of one network: guesses of tokens, links and names. */
const FAILURES = { rate: 0.5, burst: 60 }

/** One log line for each caller past its limit in this time, in milliseconds. */
const LOG_PAUSE_MS = 60_000

/** The bucket of a request, and who it belongs to in words. */
interface Caller {
  readonly bucket: Bucket
  readonly buckets: Buckets
  readonly who: string
}

/** Bounds what one caller may ask for: by principal, else by address. Against accidents and abuse, not to sell quotas. */
export function createLimits ({ rate, burst, hasCallers, clientOf, hasProxies, log, now = () => performance.now() }: LimitsOptions): Limits {
  // Apart, so that a crowd of addresses never displaces the bucket of a principal.
  const principals = new Buckets({ rate, burst, now })
  const networks = new Buckets({ rate, burst, now })
  const failures = new Buckets({ ...FAILURES, burst: () => FAILURES.burst, now })
  const streams = new Map<string, number>()
  let hasWarned = false

  function callerOf (request: FastifyRequest): Caller {
    const { principal } = request
    if (principal !== undefined && principal.kind !== 'anonymous') return { bucket: principals.of(principal.id), buckets: principals, who: `${principal.kind} ${principal.name}` }
    const network = networkOf(clientOf(request.raw))
    return { bucket: networks.of(network), buckets: networks, who: `address ${network}` }
  }

  function refuse (request: FastifyRequest, { bucket, who }: Pick<Caller, 'bucket' | 'who'>, wait: number, rule: string): HttpProblem {
    const seconds = retryAfter(wait)
    if (now() - bucket.loggedAt >= LOG_PAUSE_MS) {
      bucket.loggedAt = now()
      log.info({ reqId: request.id, client: clientOf(request.raw), principal: request.principal?.name, rule }, 'a caller is past its limit; further refusals of the next minute have no line')
    }
    return new HttpProblem('rate_limited', `The limit is ${rule} for ${who}; try again in ${seconds} s`, { 'retry-after': String(seconds) })
  }

  const rule = (): string => `${rate} units a second, ${burst()} at once`

  /** A header that is ignored is most often a proxy that nobody has named: all its clients share one bucket. */
  function warnOnce (request: FastifyRequest): void {
    if (hasWarned || request.headers['x-forwarded-for'] === undefined) return
    const peer = peerOf(request.raw)
    if (hasProxies && clientOf(request.raw) !== peer) return
    hasWarned = true
    log.warn({ peer }, 'X-Forwarded-For is ignored, since its sender is not in TRUSTED_PROXIES: all clients behind one proxy share one limit')
  }

  /** @throws {HttpProblem} when the caller has as many streams as it may */
  function countStream (request: FastifyRequest, { bucket, who }: Caller, closed: (listener: () => void) => void): void {
    const { key } = bucket
    const open = streams.get(key) ?? 0
    if (open >= MAX_STREAMS) throw refuse(request, { bucket, who }, 1000, `${MAX_STREAMS} streams of events`)
    streams.set(key, open + 1)
    closed(() => {
      const left = (streams.get(key) ?? 1) - 1
      if (left > 0) streams.set(key, left)
      else streams.delete(key)
    })
  }

  const plugin = fp(async function limits (app) {
    app.addHook('onRequest', (request, reply, next) => {
      const route = request.routeOptions.url ?? ''
      if (EXEMPT.test(route)) return next()
      warnOnce(request)
      const caller = callerOf(request)
      const isStream = request.method === 'GET' && STREAMS.test(route) && request.headers.accept?.includes('text/event-stream') === true
      const { buckets, bucket } = caller
      // The calls themselves are taken one by one.
      const wait = TOOL_CALLS.test(route) ? buckets.wait(bucket, 1) : buckets.take(bucket, isStream ? STREAM_UNITS : unitsOf(request, route))
      if (wait > 0) return next(refuse(request, caller, wait, rule()))
      try {
        if (isStream) countStream(request, caller, (listener) => { reply.raw.once('close', listener) })
        next()
      } catch (error) {
        next(error instanceof Error ? error : undefined)
      }
    })

    app.addHook('onSend', (request, reply, payload, next) => {
      const status = reply.statusCode
      if (status === 401 || (status === 404 && hasCallers && (request.principal === undefined || request.principal.kind === 'anonymous'))) {
        const network = networkOf(clientOf(request.raw))
        const bucket = failures.of(network)
        const wait = failures.take(bucket, 1)
        if (wait > 0) {
          const problem = refuse(request, { bucket, who: `address ${network}` }, wait, `${FAILURES.burst} refused requests at once, one more each ${1 / FAILURES.rate} s,`)
          return next(null, replaceProblem(problem, request, reply))
        }
      } else if (status < 300 && request.method === 'GET') {
        const bytes = Buffer.isBuffer(payload) || typeof payload === 'string' ? payload.length : Number(reply.getHeader('content-length') ?? 0)
        if (bytes > UNIT_BYTES) {
          const { buckets, bucket } = callerOf(request)
          buckets.charge(bucket, Math.floor(bytes / UNIT_BYTES))
        }
      }
      next(null, payload)
    })
  }, { name: 'limits', fastify: '5.x' })

  return {
    plugin,
    admitCall (request, tool) {
      const { bucket, buckets } = callerOf(request)
      const wait = buckets.take(bucket, tool.name === 'search_skills' ? SEARCH_UNITS : 1)
      return wait === 0 ? undefined : `Rate limit: try again in ${retryAfter(wait)} s`
    },
    shared: { principal: principals, network: networks }
  }
}

/** Whole seconds after which the request is served, and a little more, so that not all come back at once. */
function retryAfter (wait: number): number {
  return Math.max(1, Math.ceil(wait / 1000 * (1 + Math.random() / 10)))
}

function unitsOf ({ query }: FastifyRequest, route: string): number {
  return route.endsWith('/catalog') && typeof query === 'object' && query !== null && 'q' in query ? SEARCH_UNITS : 1
}
