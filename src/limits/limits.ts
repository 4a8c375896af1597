import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import {
  type IRateLimiterOptions, type RateLimiterAbstract, RateLimiterMemory, RateLimiterRes
} from 'rate-limiter-flexible'
import { HttpProblem, renderProblem } from '../http/problem.ts'
import { clientOf, networkOf } from '../http/request/client-address.ts'
import type { Weight } from '../http/route-config.ts'
import type { Tool } from '../tools/tool.ts'

interface LimitsOptions {
  /** Units that a caller may use per second, on average. */
  readonly rate: number
  /** Units that a caller may use at once. Default: DEFAULT_BURST. */
  readonly burst?: number | undefined
  /** Where points are counted. Default: in the memory of the process. */
  readonly limiter?: ((options: IRateLimiterOptions) => RateLimiterAbstract) | undefined
}

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

export type Limits = ReturnType<typeof createLimits>

/** Bounds what one caller may ask for: by principal, else by address. Against accidents and abuse. */
export function createLimits ({
  rate, burst = DEFAULT_BURST, limiter = (options) => new RateLimiterMemory(options)
}: LimitsOptions) {
  const duration = Math.ceil(burst / rate)
  const limiters = {
    units: limiter({ keyPrefix: 'skillserve:units', points: burst, duration }),
    failures: limiter(FAILURES)
  }
  /** Refusals since the start, by the limit that was exceeded. */
  const refusals = { units: 0, streams: 0, failures: 0 }
  /** Open streams by the key of their caller. */
  const streams = new Map<string, number>()
  /** Requests whose first tool call the request itself has paid for. */
  const paid = new WeakSet<FastifyRequest>()

  /** Undefined when the points were taken, else the whole seconds until the window ends. */
  async function consume (rule: 'units' | 'failures', key: string, points: number): Promise<number | undefined> {
    try {
      await limiters[rule].consume(key, points)
      return undefined
    } catch (refused) {
      if (!(refused instanceof RateLimiterRes)) throw refused
      refusals[rule]++
      return Math.max(1, Math.ceil(refused.msBeforeNext / 1_000))
    }
  }

  /** @throws {HttpProblem} when the caller has too few units */
  async function take (units: number, request: FastifyRequest): Promise<void> {
    const { key, who } = callerOf(request)
    const seconds = await consume('units', key, units)
    if (seconds !== undefined) throw refusal(`${burst} units in ${duration} s for ${who}`, seconds)
  }

  /** @throws {HttpProblem} when the caller has too many streams */
  function countStream (request: FastifyRequest, reply: FastifyReply): void {
    // The client has left meanwhile.
    if (reply.raw.destroyed) return
    const { key, who } = callerOf(request)
    const open = streams.get(key) ?? 0
    if (open >= MAX_STREAMS) {
      refusals.streams++
      throw refusal(`${MAX_STREAMS} streams of events for ${who}`, 1)
    }
    streams.set(key, open + 1)
    reply.raw.once('close', () => {
      const left = (streams.get(key) ?? 1) - 1
      if (left > 0) streams.set(key, left)
      else streams.delete(key)
    })
  }

  return {
    refusals,

    /** Registered after the plugin that sets `request.principal`. */
    plugin: fp(async (app) => {
      app.addHook('onRequest', async (request) => {
        // A platform that gets no answer from a probe restarts the service.
        if (request.routeOptions.config.load !== 'probe') await take(1, request)
      })
      // Once the body is parsed, which may say what is asked for.
      app.addHook('preValidation', async (request, reply) => {
        const weight = request.routeOptions.config.weight?.(request)
        if (weight === undefined || (weight === 'stream' && request.method === 'HEAD')) return
        await take(UNITS[weight] - 1, request)
        if (weight === 'stream') countStream(request, reply)
      })
      // A failure counts as a guess, a long answer as several units.
      app.addHook('onSend', async (request, reply, payload) => {
        if (isGuess(request, reply.statusCode)) {
          const network = networkOf(clientOf(request))
          const seconds = await consume('failures', network, 1)
          if (seconds === undefined) return payload
          const limit = `${FAILURES.points} failed requests in ${FAILURES.duration} s for address ${network}`
          return renderProblem(refusal(limit, seconds), request, reply)
        }
        const bytes = Buffer.isBuffer(payload) || typeof payload === 'string'
          ? payload.length
          : Number(reply.getHeader('content-length') ?? 0)
        if (reply.statusCode < 300 && request.method !== 'HEAD' && bytes > UNIT_BYTES) {
          await limiters.units.penalty(callerOf(request).key, Math.floor(bytes / UNIT_BYTES))
        }
        return payload
      })
    }, { name: 'limits' }) satisfies FastifyPluginAsync,

    /** Counts one tool call. Returns the sentence for a model whose caller is past the limit. */
    async admitCall (request: FastifyRequest, tool: Tool | undefined): Promise<string | undefined> {
      const units = (tool?.isCostly === true ? UNITS.costly : 1) - (paid.has(request) ? 0 : 1)
      paid.add(request)
      const seconds = units === 0 ? undefined : await consume('units', callerOf(request).key, units)
      return seconds === undefined ? undefined : `Rate limit: try again in ${seconds} s`
    }
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
