import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { HttpProblem, renderProblem } from '../http/problem.ts'
import { clientOf, networkOf } from '../http/request/client-address.ts'
import type { Weight } from '../http/route-config.ts'
import type { Tool } from '../tools/tool.ts'
import type { LimitsStore } from './store.ts'

interface LimitsOptions {
  /** Units that a caller may use per second, on average. */
  readonly rate: number
  /** Units that a caller may use at once. Default: DEFAULT_BURST. */
  readonly burst?: number | undefined
  /** Default: the memory of the process. */
  readonly store?: Pick<LimitsStore, 'limiter'> | undefined
}

/** The limit that a caller has exceeded: its units, its open streams, or the failed requests of its network. */
type LimitRule = 'units' | 'streams' | 'failures'

/** A client that installs a thousand skills sends a request for each together, and some more. */
const DEFAULT_BURST = 2_000

const UNITS = { costly: 3, stream: 10 } as const satisfies Record<Weight, number>
const UNIT_BYTES = 1_048_576

/** Open event streams of one caller. */
const MAX_STREAMS = 16

/** Failed requests of one network: guesses of tokens, links, names and the secrets of hooks. */
const FAILURES = { keyPrefix: 'skillserve:failures', points: 60, duration: 120 }

/** Failures besides 401, and 404 for anonymous callers. */
const GUESSES: ReadonlySet<string | undefined> =
  new Set(['hook_refused', 'insufficient_scope', 'invalid_credentials', 'issuer_unavailable'])

const MEMORY: Pick<LimitsStore, 'limiter'> = { limiter: (options) => new RateLimiterMemory(options) }

/** Bounds what one caller may ask for: by principal, else by address. Against accidents and abuse. */
export class Limits {
  /** Refusals since the start. */
  readonly refusals = new Map<LimitRule, number>([['units', 0], ['streams', 0], ['failures', 0]])
  readonly #limiters: Readonly<Record<'units' | 'failures', RateLimiterAbstract>>
  /** Open streams by the key of their caller. */
  readonly #streams = new Map<string, number>()
  /** Requests whose first tool call the request itself has paid for. */
  readonly #paid = new WeakSet<FastifyRequest>()

  constructor ({ rate, burst = DEFAULT_BURST, store = MEMORY }: LimitsOptions) {
    const units = { keyPrefix: 'skillserve:units', points: burst, duration: Math.ceil(burst / rate) }
    this.#limiters = { units: store.limiter(units), failures: store.limiter(FAILURES) }
  }

  /** Registered after the plugin that sets `request.principal`. */
  readonly plugin: FastifyPluginAsync = fp(async (app) => {
    app.addHook('onRequest', async (request) => {
      // A platform that gets no answer from a probe restarts the service.
      if (request.routeOptions.config.load !== 'probe') await this.#take(1, request)
    })
    // Once the body is parsed, which may say what is asked for.
    app.addHook('preValidation', async (request, reply) => {
      const weight = request.routeOptions.config.weight?.(request)
      if (weight === undefined || (weight === 'stream' && request.method === 'HEAD')) return
      await this.#take(UNITS[weight] - 1, request)
      if (weight === 'stream') this.#countStream(request, reply)
    })
    app.addHook('onSend', async (request, reply, payload) => await this.#countAnswer(request, reply, payload))
  }, { name: 'limits' })

  /** Counts one tool call. Returns the sentence for a model whose caller is past the limit. */
  readonly admitCall = async (request: FastifyRequest, tool: Tool | undefined): Promise<string | undefined> => {
    const units = (tool?.isCostly === true ? UNITS.costly : 1) - (this.#paid.has(request) ? 0 : 1)
    this.#paid.add(request)
    const seconds = units === 0 ? undefined : await this.#consume('units', callerOf(request).key, units)
    return seconds === undefined ? undefined : `Rate limit: try again in ${seconds} s`
  }

  /** @throws {HttpProblem} when the caller has too few units */
  async #take (units: number, request: FastifyRequest): Promise<void> {
    const { key, who } = callerOf(request)
    const seconds = await this.#consume('units', key, units)
    if (seconds === undefined) return
    const { points, duration } = this.#limiters.units
    throw refusal(`${points} units in ${duration} s for ${who}`, seconds)
  }

  /** @throws {HttpProblem} when the caller has too many streams */
  #countStream (request: FastifyRequest, reply: FastifyReply): void {
    // The client has left meanwhile.
    if (reply.raw.destroyed) return
    const { key, who } = callerOf(request)
    const open = this.#streams.get(key) ?? 0
    if (open >= MAX_STREAMS) {
      this.#countRefusal('streams')
      throw refusal(`${MAX_STREAMS} streams of events for ${who}`, 1)
    }
    this.#streams.set(key, open + 1)
    reply.raw.once('close', () => {
      const left = (this.#streams.get(key) ?? 1) - 1
      if (left > 0) this.#streams.set(key, left)
      else this.#streams.delete(key)
    })
  }

  /** A failure counts as a guess, a long answer as several units. Returns the body. */
  async #countAnswer (request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
    if (isGuess(request, reply.statusCode)) {
      const network = networkOf(clientOf(request))
      const seconds = await this.#consume('failures', network, 1)
      if (seconds === undefined) return payload
      const limit = `${FAILURES.points} failed requests in ${FAILURES.duration} s for address ${network}`
      return renderProblem(refusal(limit, seconds), request, reply)
    }
    const bytes = Buffer.isBuffer(payload) || typeof payload === 'string'
      ? payload.length
      : Number(reply.getHeader('content-length') ?? 0)
    if (reply.statusCode < 300 && request.method !== 'HEAD' && bytes > UNIT_BYTES) {
      await this.#limiters.units.penalty(callerOf(request).key, Math.floor(bytes / UNIT_BYTES))
    }
    return payload
  }

  /** Undefined when the points were taken, else the whole seconds until the window ends. */
  async #consume (rule: 'units' | 'failures', key: string, points: number): Promise<number | undefined> {
    try {
      await this.#limiters[rule].consume(key, points)
      return undefined
    } catch (refused) {
      if (!(refused instanceof RateLimiterRes)) throw refused
      this.#countRefusal(rule)
      return Math.max(1, Math.ceil(refused.msBeforeNext / 1_000))
    }
  }

  #countRefusal (rule: LimitRule): void {
    this.refusals.set(rule, (this.refusals.get(rule) ?? 0) + 1)
  }
}

function refusal (limit: string, seconds: number): HttpProblem {
  return new HttpProblem(
    'rate_limited', `The limit is ${limit}; try again in ${seconds} s`, { 'retry-after': String(seconds) }
  )
}

function isGuess ({ problemCode, principal }: FastifyRequest, status: number): boolean {
  if (status === 401 || GUESSES.has(problemCode)) return true
  // An address of no route guesses nothing: clients of MCP look for an authorization server at several of them.
  return status === 404 && problemCode !== 'route_not_found' && principal?.kind === 'anonymous'
}

/** Whose units a request takes: their key, and the caller in words. */
function callerOf (request: FastifyRequest): { readonly key: string, readonly who: string } {
  const { principal } = request
  if (principal !== undefined && principal.kind !== 'anonymous') {
    return { key: principal.id, who: `${principal.kind} ${principal.name}` }
  }
  const network = networkOf(clientOf(request))
  return { key: network, who: `address ${network}` }
}
