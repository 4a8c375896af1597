import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import type { CoreLog } from '../core/shared/log.ts'
import { HttpProblem, problemCodeOf, replaceProblem } from '../http/problem.ts'
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
  /** Whether `clientOf` trusts this address. */
  readonly isProxy: (address: string) => boolean
  readonly log: CoreLog
  readonly now?: () => number
}

/** The limit that a caller has exceeded: its units, its open streams, or the refused requests of its network. */
export type LimitRule = 'units' | 'streams' | 'failures'

const COSTLY_UNITS = 3
const STREAM_UNITS = 10
const UNIT_BYTES = 1_048_576

/** Open streams of events of one caller. */
const MAX_STREAMS = 16

/** Refused requests of one network: guesses of tokens, links, names and the secrets of hooks. */
const FAILURES = { rate: 0.5, burst: 60 }

/** Access refuses these before they are counted, and they are no guesses. */
const UNCOUNTED: ReadonlySet<string | undefined> = new Set<ReturnType<typeof problemCodeOf>>(['invalid_credentials', 'insufficient_scope', 'issuer_unavailable'])

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
export class Limits {
  /** Refusals since the start. */
  readonly refusals = new Map<LimitRule, number>([['units', 0], ['streams', 0], ['failures', 0]])
  /** Registered after whatever sets `request.principal`. */
  readonly plugin: FastifyPluginAsync
  readonly #options: LimitsOptions
  readonly #now: () => number
  // Kept apart, so that many addresses never displace the bucket of a principal.
  readonly #principals: Buckets
  readonly #networks: Buckets
  readonly #failures: Buckets
  /** Open streams by the key of their caller. */
  readonly #streams = new Map<string, number>()
  /** Requests whose first tool call the request itself has paid for. */
  readonly #paid = new WeakSet<FastifyRequest>()
  #hasWarned = false

  constructor (options: LimitsOptions) {
    const { rate, burst, now = () => performance.now() } = options
    this.#options = options
    this.#now = now
    this.#principals = new Buckets({ rate, burst, now })
    this.#networks = new Buckets({ rate, burst, now })
    this.#failures = new Buckets({ ...FAILURES, burst: () => FAILURES.burst, now })
    this.plugin = fp(async (app) => { this.#addHooks(app) }, { name: 'limits' })
  }

  /** Buckets that replicas may share, by a name for each kind. */
  get shared (): Readonly<Record<string, Buckets>> {
    return { principal: this.#principals, network: this.#networks }
  }

  /** Counts one tool call. Returns the sentence for a model whose caller is past the limit. */
  admitCall (request: FastifyRequest, tool: Tool | undefined): string | undefined {
    const units = (tool?.isCostly === true ? COSTLY_UNITS : 1) - (this.#paid.has(request) ? 0 : 1)
    this.#paid.add(request)
    if (units === 0) return undefined
    const { bucket, buckets } = this.#callerOf(request)
    const wait = buckets.take(bucket, units)
    if (wait === 0) return undefined
    this.#countRefusal('units')
    return `Rate limit: try again in ${retryAfter(wait)} s`
  }

  #addHooks (app: FastifyInstance): void {
    app.addHook('onRoute', (route: RouteOptions) => {
      if (route.config?.bodyWeight === undefined) return
      route.preHandler = [...[route.preHandler ?? []].flat(), (request, reply, next) => { attempt(next, () => { this.#takeForBody(request, reply) }) }]
    })
    app.addHook('onRequest', (request, reply, next) => { attempt(next, () => { this.#takeForRequest(request, reply) }) })
    app.addHook('onSend', (request, reply, payload, next) => {
      const problem = this.#chargeForAnswer(request, reply, payload)
      next(null, problem === undefined ? payload : replaceProblem(problem, request, reply))
    })
  }

  /** @throws {HttpProblem} when the caller has too few units, or too many streams */
  #takeForRequest (request: FastifyRequest, reply: FastifyReply): void {
    const { config } = request.routeOptions
    // A platform that gets no answer from a probe restarts the service.
    if (config.load === 'probe' || config.isUnlimited === true) return
    this.#warnOnce(request)
    const caller = this.#callerOf(request)
    const weight = config.weight?.(request)
    const isStream = weight === 'stream' && request.method === 'GET'
    this.#take(request, caller, isStream ? STREAM_UNITS : weight === 'costly' ? COSTLY_UNITS : 1)
    if (isStream) this.#countStream(request, reply, caller)
  }

  /**
   * What a body costs beyond its request.
   * @throws {HttpProblem} as `#takeForRequest`
   */
  #takeForBody (request: FastifyRequest, reply: FastifyReply): void {
    const weight = request.routeOptions.config.bodyWeight?.(request)
    if (weight === undefined) return
    const caller = this.#callerOf(request)
    this.#take(request, caller, (weight === 'costly' ? COSTLY_UNITS : STREAM_UNITS) - 1)
    if (weight === 'stream') this.#countStream(request, reply, caller)
  }

  /** A refused request counts as a guess, a long answer as several. Returns the problem to answer instead to one who is past a limit. */
  #chargeForAnswer (request: FastifyRequest, reply: FastifyReply, payload: unknown): HttpProblem | undefined {
    const status = reply.statusCode
    const isAnonymous = request.principal === undefined || request.principal.kind === 'anonymous'
    // An address of no route guesses nothing: clients of MCP look for an authorization server at several of them.
    const isMiss = status === 404 && problemCodeOf(request) !== 'route_not_found'
    if (status === 401 || (isMiss && this.#options.hasCallers && isAnonymous)) return this.#countFailure(request)
    if (status === 403 && problemCodeOf(request) === 'hook_refused') return this.#countFailure(request)
    if (status === 400 || status === 403 || status === 503) return UNCOUNTED.has(problemCodeOf(request)) ? this.#pastUnits(request, this.#callerOf(request), 1) : undefined
    // The answer to a HEAD says how long another one would be.
    if (status >= 300 || request.method === 'HEAD') return undefined
    const bytes = Buffer.isBuffer(payload) || typeof payload === 'string' ? payload.length : Number(reply.getHeader('content-length') ?? 0)
    if (bytes <= UNIT_BYTES) return undefined
    const { buckets, bucket } = this.#callerOf(request)
    buckets.charge(bucket, Math.floor(bytes / UNIT_BYTES))
    return undefined
  }

  #countFailure (request: FastifyRequest): HttpProblem | undefined {
    const { rate, burst } = FAILURES
    const network = networkOf(this.#options.clientOf(request.raw))
    const bucket = this.#failures.of(network)
    const wait = this.#failures.take(bucket, 1)
    if (wait === 0) return undefined
    return this.#refuse(request, { bucket, who: `address ${network}`, rule: 'failures', limit: `${burst} refused requests at once, one more each ${1 / rate} s,`, policy: `q=${burst};w=${burst / rate}`, wait })
  }

  #callerOf (request: FastifyRequest): Caller {
    const { principal } = request
    if (principal !== undefined && principal.kind !== 'anonymous') {
      return { bucket: this.#principals.of(principal.id), buckets: this.#principals, who: `${principal.kind} ${principal.name}` }
    }
    const network = networkOf(this.#options.clientOf(request.raw))
    return { bucket: this.#networks.of(network), buckets: this.#networks, who: `address ${network}` }
  }

  #take (request: FastifyRequest, caller: Caller, units: number): void {
    const problem = this.#pastUnits(request, caller, units)
    if (problem !== undefined) throw problem
  }

  /** Takes units. Returns the problem of a caller who has too few. */
  #pastUnits (request: FastifyRequest, { bucket, buckets, who }: Caller, units: number): HttpProblem | undefined {
    const wait = buckets.take(bucket, units)
    if (wait === 0) return undefined
    const { rate } = this.#options
    const burst = this.#options.burst()
    return this.#refuse(request, { bucket, who, rule: 'units', limit: `${rate} units a second, ${burst} at once`, policy: `q=${burst};w=${Math.ceil(burst / rate)}`, wait })
  }

  #countStream (request: FastifyRequest, reply: FastifyReply, { bucket, who }: Caller): void {
    const { key } = bucket
    const open = this.#streams.get(key) ?? 0
    if (open >= MAX_STREAMS) throw this.#refuse(request, { bucket, who, rule: 'streams', limit: `${MAX_STREAMS} streams of events`, policy: `q=${MAX_STREAMS};qu="concurrent-requests"`, wait: 1000 })
    this.#streams.set(key, open + 1)
    reply.raw.once('close', () => {
      const left = (this.#streams.get(key) ?? 1) - 1
      if (left > 0) this.#streams.set(key, left)
      else this.#streams.delete(key)
    })
  }

  #refuse (request: FastifyRequest, { bucket, who, rule, limit, policy, wait }: Refusal): HttpProblem {
    const { log, clientOf } = this.#options
    const seconds = retryAfter(wait)
    this.#countRefusal(rule)
    if (this.#now() - bucket.loggedAt >= LOG_PAUSE_MS) {
      bucket.loggedAt = this.#now()
      log.info({ reqId: request.id, client: clientOf(request.raw), principal: request.principal?.name, rule: limit }, 'a caller is past its limit; further refusals of the next minute have no line')
    }
    return new HttpProblem('rate_limited', `The limit is ${limit} for ${who}; try again in ${seconds} s`, {
      'retry-after': String(seconds),
      'ratelimit-policy': `"${rule}";${policy}`,
      ratelimit: `"${rule}";r=0;t=${seconds}`
    })
  }

  #countRefusal (rule: LimitRule): void {
    this.refusals.set(rule, (this.refusals.get(rule) ?? 0) + 1)
  }

  /** A header that is ignored is most often a proxy that nobody has named: all its clients share one bucket. */
  #warnOnce (request: FastifyRequest): void {
    const { isProxy, log } = this.#options
    if (this.#hasWarned || request.headers['x-forwarded-for'] === undefined) return
    const peer = peerOf(request.raw)
    if (isProxy(peer)) return
    this.#hasWarned = true
    log.warn({ peer }, 'X-Forwarded-For is ignored, since its sender is not in TRUSTED_PROXIES: all clients behind one proxy share one limit')
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
