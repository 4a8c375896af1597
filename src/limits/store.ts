import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible'
import type { CoreLog } from '../core/shared/log.ts'
import { ConfigError } from '../config/setting.ts'

/** How long the store may take for a connection or an answer, in milliseconds. */
const TIMEOUT_MS = 200

/** The longest pause between two attempts to connect, in milliseconds. */
const MAX_RECONNECT_MS = 2_000

export interface LimiterOptions {
  readonly keyPrefix: string
  readonly points: number
  /** In whole seconds. */
  readonly duration: number
}

/** Where points are counted. */
export interface LimitsStore {
  limiter (options: LimiterOptions): RateLimiterAbstract
  /** How often the store did not answer, and this process counted for itself. */
  readonly failures: number
  close (): void
}

export const MEMORY: LimitsStore = {
  limiter: (options) => new RateLimiterMemory(options),
  failures: 0,
  close () {}
}

/** Counts in this process while the store does not answer. */
class InsuranceLimiter extends RateLimiterMemory {
  readonly #onUse: () => void

  constructor (options: LimiterOptions, onUse: () => void) {
    super(options)
    this.#onUse = onUse
  }

  override consume (key: string | number, points?: number): ReturnType<RateLimiterMemory['consume']> {
    this.#onUse()
    return super.consume(key, points)
  }
}

/**
 * Connects to Redis or Valkey. Resolves without waiting for the connection.
 * @throws {ConfigError} without the package `ioredis`
 */
export async function connectStore (url: string, log: CoreLog): Promise<LimitsStore> {
  const { Redis } = await import('ioredis').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new ConfigError('LIMITS_STORE needs the package ioredis: npm install ioredis', { cause: error })
  })
  const client = new Redis(url, {
    connectTimeout: TIMEOUT_MS,
    commandTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    retryStrategy: (attempt) => Math.min(attempt * 100, MAX_RECONNECT_MS)
  })
  let reason = 'not connected'
  let failures = 0
  let isDown = false
  // Not the error of a command: it holds the command with the keys of callers.
  client.on('error', (error: Error) => { reason = error.message })
  client.on('ready', () => {
    if (isDown) log.info({}, 'the store of limits answers again')
    isDown = false
    reason = 'its commands fail'
  })
  const onFailure = (): void => {
    failures++
    if (!isDown) log.warn({ reason }, 'the store of limits does not answer; this replica counts for itself')
    isDown = true
  }
  return {
    limiter: (options) => new RateLimiterRedis({
      ...options,
      storeClient: client,
      rejectIfRedisNotReady: true,
      insuranceLimiter: new InsuranceLimiter(options, onFailure)
    }),
    get failures () { return failures },
    close: () => { client.disconnect() }
  }
}
