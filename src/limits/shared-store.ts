import { ConfigError } from '../config/setting.ts'
import type { Buckets } from './buckets.ts'
import type { CoreLog } from '../core/shared/log.ts'

/** Interval at which used units go to the store, in milliseconds: replicas may differ by what is used in it. */
const EXCHANGE_MS = 100

/** How long the store may take for a connection or an answer, in milliseconds. Nobody waits for it. */
const TIMEOUT_MS = 500

/** Callers in one command, so that the store serves others in between. */
const MAX_KEYS = 500

/**
 * Adds used units to the time at which each bucket is full, by the store's clock, and returns how far that is away. A key
 * ends with its bucket being full. KEYS: callers; ARGV: milliseconds that the used units take to come back, and at the end the most that a
 * caller may owe. A clock that was put back, or that of another machine after a failover, would have callers wait for the difference.
 */
const SCRIPT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local latest = now + tonumber(ARGV[#ARGV])
local left = {}
for i, key in ipairs(KEYS) do
  local full = math.min(latest, math.max(now, tonumber(redis.call('GET', key) or 0)) + tonumber(ARGV[i]))
  redis.call('SET', key, string.format('%.0f', full), 'PX', math.ceil(full - now) + 1)
  left[i] = math.ceil(full - now)
end
return left
`

/** The part of a Redis client that is needed. */
interface RedisLike {
  eval (script: string, keyCount: number, ...args: Array<string | number>): Promise<unknown>
  disconnect (): void
}

interface SharedStoreOptions {
  readonly redis: RedisLike
  readonly buckets: Readonly<Record<string, Buckets>>
  /** Units that come back per second. */
  readonly rate: number
  readonly log: CoreLog
}

/**
 * Buckets that several replicas share. The memory of a replica alone decides on its requests. What they used goes to the store
 * in the background, and what the others used comes back. While the store is down, each replica counts for itself.
 */
export class SharedStore {
  readonly #options: SharedStoreOptions
  readonly #timer: NodeJS.Timeout
  #isExchanging = false
  #isDown = false
  failures = 0
  /** Exchanges that succeeded. */
  exchanges = 0

  constructor (options: SharedStoreOptions) {
    this.#options = options
    for (const buckets of Object.values(options.buckets)) buckets.share()
    this.#timer = setInterval(() => { void this.exchange() }, EXCHANGE_MS).unref()
  }

  /** Exchanges what was used since the last time. Never throws. */
  async exchange (): Promise<void> {
    if (this.#isExchanging) return
    this.#isExchanging = true
    try {
      // All at once: what is left behind by a failure would count as that of a moment later on.
      const kinds = Object.entries(this.#options.buckets).map(([kind, buckets]) => ({ kind, buckets, used: [...buckets.takeUsed()] }))
      for (const { kind, buckets, used } of kinds) {
        for (let start = 0; start < used.length; start += MAX_KEYS) await this.#exchangeSome(kind, buckets, used.slice(start, start + MAX_KEYS))
      }
    } catch (error) {
      this.failures++
      // Of the error of a command nothing but its sentence: it has the command, with the names and addresses of callers.
      if (!this.#isDown) this.#options.log.warn({ reason: error instanceof Error ? error.message : String(error) }, 'the store of limits does not answer; this replica counts for itself')
      this.#isDown = true
    } finally {
      this.#isExchanging = false
    }
  }

  close (): void {
    clearInterval(this.#timer)
    this.#options.redis.disconnect()
  }

  async #exchangeSome (kind: string, buckets: Buckets, used: ReadonlyArray<readonly [key: string, units: number]>): Promise<void> {
    const { redis, rate, log } = this.#options
    const keys = used.map(([key]) => `skillserve:limit:${kind}:${key}`)
    const left = await redis.eval(SCRIPT, keys.length, ...keys, ...used.map(([, units]) => Math.ceil(units * 1000 / rate)), Math.ceil(buckets.maxDebtMs))
    if (Array.isArray(left)) for (const [i, [key]] of used.entries()) buckets.addUsedElsewhere(key, Number(left[i]))
    this.exchanges++
    if (this.#isDown) log.info({}, 'the store of limits answers again')
    this.#isDown = false
  }
}

/**
 * Connects to Redis or Valkey. Resolves at once, whether the store is there or not.
 * @throws {ConfigError} without the package `ioredis`
 */
export async function connectRedis (url: string): Promise<RedisLike> {
  const { Redis } = await import('ioredis').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new ConfigError('LIMITS_STORE needs the package ioredis, which is not installed: npm install ioredis', { cause: error })
  })
  const redis = new Redis(url, {
    connectTimeout: TIMEOUT_MS,
    commandTimeout: TIMEOUT_MS,
    // A store that hangs would run all waiting calls at once when it goes on. Hours of use would count as that of a moment.
    socketTimeout: TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    // A command that cannot be sent now is dropped.
    enableOfflineQueue: false,
    retryStrategy: (attempt) => Math.min(attempt * EXCHANGE_MS, 2_000)
  })
  // The next exchange reports the error of the connection: its own would only say that there is none.
  let reason: unknown
  redis.on('error', (error) => { reason = error }).on('ready', () => { reason = undefined })
  return {
    eval: (...args) => redis.eval(...args).catch((error: unknown) => { throw reason ?? error }),
    disconnect: () => { redis.disconnect() }
  }
}
