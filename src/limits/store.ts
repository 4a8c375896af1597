import { type IRateLimiterOptions, RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible'
import type { CoreLog } from '../core/shared/log.ts'
import { ConfigError } from '../config/setting.ts'

/** How long the store may take for a connection or an answer, in milliseconds. */
const TIMEOUT_MS = 200

export type LimitsStore = Awaited<ReturnType<typeof connectStore>>

/**
 * Connects to Redis or Valkey. Resolves without waiting for the connection.
 * @throws {ConfigError} without the package `ioredis`
 */
export async function connectStore (url: string, log: CoreLog) {
  const { Redis } = await import('ioredis').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new ConfigError('LIMITS_STORE needs the package ioredis: npm install ioredis', { cause: error })
  })
  const storeClient = new Redis(url, {
    connectTimeout: TIMEOUT_MS,
    commandTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    // The pause before the next attempt to connect, in milliseconds.
    retryStrategy: (attempt) => Math.min(attempt * 100, 2_000)
  })
  let failures = 0
  let isDown = false
  let reason = 'the connection was closed'
  storeClient.on('error', ({ message }: Error) => { reason = message })
  storeClient.on('close', () => {
    failures++
    if (!isDown) log.warn({ reason }, 'the store of limits does not answer; this replica counts for itself')
    isDown = true
  })
  storeClient.on('ready', () => {
    isDown = false
    log.info({}, 'the store of limits answers')
  })
  return {
    limiter: (options: IRateLimiterOptions) => new RateLimiterRedis({
      ...options, storeClient, rejectIfRedisNotReady: true, insuranceLimiter: new RateLimiterMemory(options)
    }),
    /** How often the connection to the store has failed: each replica counts for itself meanwhile. */
    failures: () => failures,
    close: (): void => {
      isDown = true
      storeClient.disconnect()
    }
  }
}
