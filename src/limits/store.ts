import { type IRateLimiterOptions, RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible'
import type { CoreLog } from '../core/shared/log.ts'
import { ConfigError } from '../operator/setting.ts'

/** Timeouts of one command and of a connection attempt, in milliseconds. */
const COMMAND_MS = 200
const CONNECT_MS = 5_000

/** Pause before the next attempt to connect, in milliseconds. */
const RETRY_MS = 1_000

/** Failures in a row before the log reports the store as unreachable: one alone may be a busy machine. */
const REPORTED_FAILURES = 2

export type LimitsStore = Awaited<ReturnType<typeof connectStore>>

/**
 * Connects to Redis or Valkey. Resolves without waiting for the connection. An answer that is an error (READONLY after
 * a failover, OOM, NOPERM, a database that does not exist) closes the connection and counts as a failure.
 * @throws {ConfigError} without the package `ioredis`
 */
export async function connectStore (url: string, log: CoreLog) {
  const { Redis } = await import('ioredis').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new ConfigError('LIMITS_STORE needs the package ioredis: npm install ioredis', { cause: error })
  })
  const storeClient = new Redis(url.replace(/^valkey/, 'redis'), {
    connectTimeout: CONNECT_MS,
    commandTimeout: COMMAND_MS,
    socketTimeout: COMMAND_MS,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    // The user may lack permission for INFO and CLIENT; the write below checks the connection instead.
    enableReadyCheck: false,
    disableClientInfo: true,
    retryStrategy: () => RETRY_MS,
    reconnectOnError: ({ message }) => {
      // The store has not cached the script yet; ioredis sends it.
      if (message.startsWith('NOSCRIPT')) return false
      reason = message
      return true
    }
  })
  let failures = 0
  let failuresInRow = 0
  let isClosed = false
  let isReported = true
  let reason = ''
  storeClient.on('error', (error: Error & { readonly command?: { readonly name?: string } }) => {
    reason = error.message
    // Otherwise ioredis would go on with database 0.
    if (error.command?.name === 'select') storeClient.disconnect(true)
  })
  storeClient.on('close', () => {
    failures++
    if (isClosed || ++failuresInRow !== REPORTED_FAILURES) return
    log.warn({ reason }, 'rate-limit store unreachable; each replica counts for itself')
    isReported = true
  })
  storeClient.on('ready', () => {
    storeClient.set('skillserve:check', '', 'EX', 1).then(() => {
      failuresInRow = 0
      reason = 'the connection was closed'
      if (isReported) log.info({}, 'rate-limit store connected')
      isReported = false
    }, () => {})
  })
  return {
    limiter: (options: IRateLimiterOptions) => new RateLimiterRedis({
      ...options, storeClient, rejectIfRedisNotReady: true, insuranceLimiter: new RateLimiterMemory(options)
    }),
    /** Returns how often connections to the store have failed. */
    failures: () => failures,
    close: (): void => {
      isClosed = true
      storeClient.disconnect()
    }
  }
}
