import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import {
  type IRateLimiterOptions, type RateLimiterAbstract, RateLimiterMemory, RateLimiterRes
} from 'rate-limiter-flexible'
import { HttpProblem } from '../http/problem.ts'
import { clientOf, networkOf } from '../http/request/client-address.ts'
import type { Weight } from '../http/route-config.ts'
import type { Tool } from '../tools/tool.ts'

interface LimitsOptions {
  /** Units that a caller may use per second, on average. */
  readonly limitRate: number
  /** Units that a caller may use at once. Default: DEFAULT_BURST. */
  readonly limitBurst?: number | undefined
  /** Makes the counter of units. Default: in the memory of this process. */
  readonly limiter?: ((options: IRateLimiterOptions) => RateLimiterAbstract) | undefined
}

/** Enough for a client that installs a thousand skills at once, with a request for each. */
const DEFAULT_BURST = 2_000

const UNITS = { costly: 3, stream: 10 } as const satisfies Record<Weight, number>
const UNIT_BYTES = 1_048_576

/** Most open event streams of one caller. */
const MAX_STREAMS = 16

export type Limits = ReturnType<typeof createLimits>

/** Limits what each caller may ask for, by principal or else by address, against accidents and abuse. */
export function createLimits ({
  limitRate: rate, limitBurst: burst = DEFAULT_BURST, limiter = (options) => new RateLimiterMemory(options)
}: LimitsOptions) {
  const duration = Math.ceil(burst / rate)
  const units = limiter({ keyPrefix: 'skillserve:units', points: burst, duration })
  /** Refusals since the start, by the limit that was exceeded. */
  const refusals = { units: 0, streams: 0 }
  /** Number of open streams, by the key of the caller. */
  const streams = new Map<string, number>()
  /** Requests whose first tool call is already counted: a request is one unit. */
  const paid = new WeakSet<FastifyRequest>()

  /** Takes units from a caller. Returns undefined, or the seconds until there are enough again. */
  async function consume (key: string, count: number): Promise<number | undefined> {
    try {
      await units.consume(key, count)
      return undefined
    } catch (refused) {
      if (!(refused instanceof RateLimiterRes)) throw refused
      refusals.units++
      return Math.max(1, Math.ceil(refused.msBeforeNext / 1_000))
    }
  }

  /** @throws {HttpProblem} when the caller has too few units */
  async function take (count: number, request: FastifyRequest): Promise<void> {
    const { key, who } = callerOf(request)
    const seconds = await consume(key, count)
    if (seconds !== undefined) throw refusal(`${burst} units in ${duration} s for ${who}`, seconds)
  }

  /** @throws {HttpProblem} when the caller has too many streams */
  function countStream (request: FastifyRequest, reply: FastifyReply): void {
    // The client has disconnected, and the event 'close' is past.
    if (reply.raw.destroyed) return
    const { key, who } = callerOf(request)
    const open = streams.get(key) ?? 0
    if (open >= MAX_STREAMS) {
      refusals.streams++
      throw refusal(`${MAX_STREAMS} event streams for ${who}`, 1)
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

    /** Must be registered after the plugin that sets `request.principal`. */
    plugin: fp(async (app) => {
      app.addHook('onRequest', (request, _reply, next) => {
        // Probes are not counted: a platform restarts a service whose probes fail.
        if (request.routeOptions.config.load === 'probe') next()
        else take(1, request).then(() => { next() }, next)
      })
      // After the body is parsed: the weight may depend on it.
      app.addHook('preValidation', async (request, reply) => {
        const weight = request.routeOptions.config.weight?.(request)
        if (weight === undefined || (weight === 'stream' && request.method === 'HEAD')) return
        await take(UNITS[weight] - 1, request)
        if (weight === 'stream') countStream(request, reply)
      })
      // Each MiB of an answer is one more unit.
      app.addHook('onSend', (request, reply, payload, next) => {
        const bytes = Buffer.isBuffer(payload) || typeof payload === 'string'
          ? payload.length
          : Number(reply.getHeader('content-length') ?? 0)
        const isLarge = bytes > UNIT_BYTES && reply.statusCode < 300 && request.method !== 'HEAD'
        if (!isLarge) return next(null, payload)
        const count = Math.floor(bytes / UNIT_BYTES)
        units.penalty(callerOf(request).key, count).then(() => { next(null, payload) }, next)
      })
    }, { name: 'limits' }) satisfies FastifyPluginAsync,

    /** Takes the units of one tool call. Returns a message for the model if the caller has too few. */
    async admitCall (request: FastifyRequest, tool: Tool | undefined): Promise<string | undefined> {
      const count = (tool?.isCostly === true ? UNITS.costly : 1) - (paid.has(request) ? 0 : 1)
      paid.add(request)
      const seconds = count === 0 ? undefined : await consume(callerOf(request).key, count)
      return seconds === undefined ? undefined : `Rate limit: try again in ${seconds} s`
    }
  }
}

function refusal (limit: string, seconds: number): HttpProblem {
  return new HttpProblem(
    'rate_limited', `The limit is ${limit}; try again in ${seconds} s`, { 'retry-after': String(seconds) }
  )
}

/** Returns the key under which a request's units are counted, and the name of its caller for messages. */
function callerOf (request: FastifyRequest): { readonly key: string, readonly who: string } {
  const { principal } = request
  if (principal !== undefined && principal.kind !== 'anonymous') {
    return { key: principal.id, who: `${principal.kind} ${principal.name}` }
  }
  const network = networkOf(clientOf(request))
  return { key: network, who: `address ${network}` }
}
