import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import underPressure, { type FastifyUnderPressureOptions } from '@fastify/under-pressure'
import fp from 'fastify-plugin'
import { overloadError } from '../core/shared/errors.ts'

/** Limits of event loop delay and memory from which on the process is overloaded. */
export type OverloadOptions = Pick<FastifyUnderPressureOptions,
  'maxEventLoopDelay' | 'maxHeapUsedBytes' | 'maxRssBytes' | 'sampleInterval'>

const MAX_MEMORY_SHARE = 0.9

/** Multiple of the maximum delay from which on all requests but probes are refused. */
const SHED_ALL = 4

export function overloadLimits (): OverloadOptions {
  const memory = Math.min(process.constrainedMemory() || totalmem(), totalmem())
  return {
    maxEventLoopDelay: 1_000,
    // Longer than SHED_ALL delays: else one long turn of the event loop, as at the start, leaves no samples for a mean.
    sampleInterval: 5_000,
    maxHeapUsedBytes: getHeapStatistics().heap_size_limit * MAX_MEMORY_SHARE,
    maxRssBytes: memory * MAX_MEMORY_SHARE
  }
}

/** Refuses requests while the process is overloaded: costly ones first, never probes, which could cause a restart. */
export const overload = fp<{ readonly overload?: OverloadOptions | undefined }>(async (app, { overload = {} }) => {
  const { maxEventLoopDelay = 0 } = overload
  await app.register(underPressure, {
    ...overload,
    pressureHandler: async ({ routeOptions: { config: { load } } }, _reply, type, value) => {
      const isWorst = type === underPressure.TYPE_EVENT_LOOP_DELAY && Number(value) > SHED_ALL * maxEventLoopDelay
      if (load === 'costly' || (load !== 'probe' && isWorst)) throw overloadError.busy()
    }
  })
}, { name: 'overload' })
