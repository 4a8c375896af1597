import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import underPressure from '@fastify/under-pressure'
import fp from 'fastify-plugin'
import { overloadError } from '../core/shared/errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the route is under load: `costly` ones are refused first. A `probe` is never refused, has no limit and no span. */
    load?: 'costly' | 'probe'
  }
}

/** From when on the process has too much to do or to hold. */
export type OverloadOptions = Pick<underPressure.FastifyUnderPressureOptions, 'maxEventLoopDelay' | 'maxHeapUsedBytes' | 'maxRssBytes' | 'sampleInterval'>

/** Of the memory that the process may have. */
const MAX_MEMORY_SHARE = 0.9

/** The limits of this process: every client waits for the event loop, and a deployment that rewrites 1,000 skills delays it by less than 50 ms. */
export function overloadLimits (): OverloadOptions {
  const constrained = process.constrainedMemory()
  const memory = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem()
  return {
    maxEventLoopDelay: 250,
    maxHeapUsedBytes: getHeapStatistics().heap_size_limit * MAX_MEMORY_SHARE,
    maxRssBytes: memory * MAX_MEMORY_SHARE
  }
}

/** Milliseconds over which the delay is averaged: one long task is no overload. */
const SAMPLE_MS = 5_000

/** Beyond so many times the maximum, everything but probes is refused. */
const SHED_ALL = 4

/**
 * Refuses requests with 503 while the process is overloaded. Archives, searches and cold indexes go first, and probes never, so that a
 * platform does not restart a busy process.
 */
export const overload = fp<{ readonly overload?: OverloadOptions | undefined }>(async function overload (app, options) {
  const { sampleInterval = SAMPLE_MS, maxEventLoopDelay = 0 } = options.overload ?? {}
  let listeningSince = performance.now()
  app.addHook('onListen', async () => { listeningSince = performance.now() })
  await app.register(underPressure, {
    ...options.overload,
    sampleInterval,
    pressureHandler: async ({ routeOptions: { config: { load } } }, _reply, type, value) => {
      const isDelayed = type === underPressure.TYPE_EVENT_LOOP_DELAY
      // The start itself delays the event loop: reading modules and compiling schemas.
      if (isDelayed && performance.now() - listeningSince < 2 * sampleInterval) return
      const isWorst = isDelayed && Number(value) > SHED_ALL * maxEventLoopDelay
      if (load === 'costly' || (load !== 'probe' && isWorst)) throw overloadError.busy()
    }
  })
}, { name: 'overload' })
