import type { FastifyPluginAsync, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
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
  admitCall (request: FastifyRequest, tool: Tool | undefined): string | undefined
  /** Refusals since the start. */
  readonly refusals: ReadonlyMap<LimitRule, number>
  /** Buckets that replicas may share, by a name for each kind. */
  readonly shared: Readonly<Record<string, Buckets>>
}

/** What a caller is past: its units, its open streams, or the refused requests of its network. */
export type LimitRule = 'units' | 'streams' | 'failures'

const COSTLY_UNITS = 3
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

/** What the answer to a refused caller says. */
interface Refusal extends Pick<Caller, 'bucket' | 'who'> {
  readonly rule: LimitRule
  /** The limit in words. */
  readonly limit: string
  /** The limit as `RateLimit-Policy` writes it, without the name. */
  readonly policy: string
  /** Until the next request of this kind is served, in milliseconds. */
  readonly wait: number
}

/** Bounds what one caller may ask for: by principal, else by address. Against accidents and abuse, not to sell quotas. */
export function createLimits ({ rate, burst, hasCallers, clientOf, hasProxies, log, now = () => performance.now() }: LimitsOptions): Limits {
  // Apart, so that a crowd of addresses never displaces the bucket of a principal.
  const principals = new Buckets({ rate, burst, now })
  const networks = new Buckets({ rate, burst, now })
  const failures = new Buckets({ ...FAILURES, burst: () => FAILURES.burst, now })
  const streams = new Map<string, number>()
  const refusals = new Map<LimitRule, number>([['units', 0], ['streams', 0], ['failures', 0]])
  /** Requests whose first tool call the request itself has paid for. */
  const paid = new WeakSet<FastifyRequest>()
  let hasWarned = false

  function callerOf (request: FastifyRequest): Caller {
    const { principal } = request
    if (principal !== undefined && principal.kind !== 'anonymous') return { bucket: principals.of(principal.id), buckets: principals, who: `${principal.kind} ${principal.name}` }
    const network = networkOf(clientOf(request.raw))
    return { bucket: networks.of(network), buckets: networks, who: `address ${network}` }
  }

  function countRefusal (rule: LimitRule): void {
    refusals.set(rule, (refusals.get(rule) ?? 0) + 1)
  }

  function refuse (request: FastifyRequest, { bucket, who, rule, limit, policy, wait }: Refusal): HttpProblem {
    const seconds = retryAfter(wait)
    countRefusal(rule)
    if (now() - bucket.loggedAt >= LOG_PAUSE_MS) {
      bucket.loggedAt = now()
      log.info({ reqId: request.id, client: clientOf(request.raw), principal: request.principal?.name, rule: limit }, 'a caller is past its limit; further refusals of the next minute have no line')
    }
    return new HttpProblem('rate_limited', `The limit is ${limit} for ${who}; try again in ${seconds} s`, {
      'retry-after': String(seconds),
      'ratelimit-policy': `"${rule}";${policy}`,
      ratelimit: `"${rule}";r=0;t=${seconds}`
    })
  }

  /** @throws {HttpProblem} when the caller has too few units */
  function take (request: FastifyRequest, caller: Caller, units: number): void {
    const { bucket, who } = caller
    const wait = caller.buckets.take(bucket, units)
    if (wait === 0) return
    throw refuse(request, { bucket, who, rule: 'units', limit: `${rate} units a second, ${burst()} at once`, policy: `q=${burst()};w=${Math.ceil(burst() / rate)}`, wait })
  }

  /** A header that is ignored is most often a proxy that nobody has named: all its clients share one bucket. */
  function warnOnce (request: FastifyRequest): void {
    if (hasWarned || request.headers['x-forwarded-for'] === undefined) return
    const peer = peerOf(request.raw)
    if (hasProxies && clientOf(request.raw) !== peer) return
    hasWarned = true
    log.warn({ peer }, 'X-Forwarded-For is ignored, since its sender is not in TRUSTED_PROXIES: all clients behind one proxy share one limit')
  }

  /** @throws {HttpProblem} when the caller has as many streams as it may */
  function countStream (request: FastifyRequest, reply: FastifyReply, { bucket, who }: Caller): void {
    const { key } = bucket
    const open = streams.get(key) ?? 0
    if (open >= MAX_STREAMS) throw refuse(request, { bucket, who, rule: 'streams', limit: `${MAX_STREAMS} streams of events`, policy: `q=${MAX_STREAMS};qu="concurrent-requests"`, wait: 1000 })
    streams.set(key, open + 1)
    reply.raw.once('close', () => {
      const left = (streams.get(key) ?? 1) - 1
      if (left > 0) streams.set(key, left)
      else streams.delete(key)
    })
  }

  /** What a body costs beyond its request. */
  function countBody (request: FastifyRequest, reply: FastifyReply, next: (error?: Error) => void): void {
    const weight = request.routeOptions.config.bodyWeight?.(request)
    if (weight === undefined) return next()
    attempt(next, () => {
      const caller = callerOf(request)
      take(request, caller, (weight === 'costly' ? COSTLY_UNITS : STREAM_UNITS) - 1)
      if (weight === 'stream') countStream(request, reply, caller)
    })
  }

  const plugin = fp(async function limits (app) {
    app.addHook('onRoute', (route: RouteOptions) => {
      if (route.config?.bodyWeight !== undefined) route.preHandler = [...[route.preHandler ?? []].flat(), countBody]
    })

    app.addHook('onRequest', (request, reply, next) => {
      const { config } = request.routeOptions
      // A platform that gets no answer from a probe restarts the service.
      if (config.load === 'probe' || config.isUnlimited === true) return next()
      warnOnce(request)
      attempt(next, () => {
        const caller = callerOf(request)
        const weight = config.weight?.(request)
        const isStream = weight === 'stream' && request.method === 'GET'
        take(request, caller, isStream ? STREAM_UNITS : weight === 'costly' ? COSTLY_UNITS : 1)
        if (isStream) countStream(request, reply, caller)
      })
    })

    app.addHook('onSend', (request, reply, payload, next) => {
      const status = reply.statusCode
      if (status === 401 || (status === 404 && hasCallers && (request.principal === undefined || request.principal.kind === 'anonymous'))) {
        const network = networkOf(clientOf(request.raw))
        const bucket = failures.of(network)
        const wait = failures.take(bucket, 1)
        if (wait > 0) {
          const { rate, burst } = FAILURES
          const problem = refuse(request, { bucket, who: `address ${network}`, rule: 'failures', limit: `${burst} refused requests at once, one more each ${1 / rate} s,`, policy: `q=${burst};w=${burst / rate}`, wait })
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
    refusals,
    admitCall (request, tool) {
      const units = (tool?.isCostly === true ? COSTLY_UNITS : 1) - (paid.has(request) ? 0 : 1)
      paid.add(request)
      if (units === 0) return undefined
      const { bucket, buckets } = callerOf(request)
      const wait = buckets.take(bucket, units)
      if (wait === 0) return undefined
      countRefusal('units')
      return `Rate limit: try again in ${retryAfter(wait)} s`
    },
    shared: { principal: principals, network: networks }
  }
}

function attempt (next: (error?: Error) => void, check: () => void): void {
  try {
    check()
  } catch (error) {
    next(error instanceof Error ? error : new Error(String(error)))
    return
  }
  next()
}

/** Whole seconds after which the request is served, and a little more, so that not all come back at once. */
function retryAfter (wait: number): number {
  return Math.max(1, Math.ceil(wait / 1000 * (1 + Math.random() / 10)))
}
