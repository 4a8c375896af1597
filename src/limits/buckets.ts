interface BucketsOptions {
  /** Units that come back each second. */
  readonly rate: number
  /** Units that a full bucket has. */
  readonly burst: () => number
  /** Callers that are remembered. Default 50,000. */
  readonly maxKeys?: number
  /** In milliseconds, of a monotone clock. Default `performance.now`. */
  readonly now?: () => number
}

/** What one caller has used. */
export interface Bucket {
  readonly key: string
  /** When the bucket will be full again, in milliseconds: all that it needs to know. */
  fullAt: number
  /** Last log line about the caller. */
  loggedAt: number
}

const DEFAULT_MAX_KEYS = 50_000

/** Buckets that are checked for room when a new caller comes. */
const SWEEP = 8

/** The largest debt of a bucket, as a multiple of what it holds. */
const MAX_DEBT = 2

/**
 * Token buckets in the form of GCRA: one number for each caller, no timers, any cost, an exact time to come back. Full buckets
 * carry no information and are forgotten first, so that many new callers do not clear the buckets of others.
 */
export class Buckets {
  readonly #intervalMs: number
  readonly #burst: () => number
  readonly #maxKeys: number
  readonly #now: () => number
  readonly #buckets = new Map<string, Bucket>()
  /** Units that were used since the last call of `takeUsed`, for a store that several replicas share. */
  #used: Map<string, number> | undefined

  constructor ({ rate, burst, maxKeys = DEFAULT_MAX_KEYS, now = () => performance.now() }: BucketsOptions) {
    this.#intervalMs = 1000 / rate
    this.#burst = burst
    this.#maxKeys = maxKeys
    this.#now = now
  }

  get size (): number {
    return this.#buckets.size
  }

  /** The most that a caller may owe: how long its bucket takes to be full again, in milliseconds. */
  get maxDebtMs (): number {
    return MAX_DEBT * this.#burst() * this.#intervalMs
  }

  of (key: string): Bucket {
    let bucket = this.#buckets.get(key)
    if (bucket === undefined) {
      if (this.#buckets.size >= this.#maxKeys) this.#makeRoom()
      this.#buckets.set(key, bucket = { key, fullAt: 0, loggedAt: Number.NEGATIVE_INFINITY })
    }
    return bucket
  }

  /** Milliseconds until there are so many units, 0 for now. */
  wait (bucket: Bucket, cost: number): number {
    const now = this.#now()
    return Math.max(0, Math.max(now, bucket.fullAt) - now + (cost - this.#burst()) * this.#intervalMs)
  }

  /** Takes units. Returns 0, or the milliseconds until there are enough, in which case none were taken. */
  take (bucket: Bucket, cost: number): number {
    const wait = this.wait(bucket, cost)
    if (wait === 0) {
      bucket.fullAt = Math.max(this.#now(), bucket.fullAt) + cost * this.#intervalMs
      this.#note(bucket.key, cost)
    }
    return wait
  }

  /** Takes units of work that is done, or that nobody could foresee: the next requests wait for them. */
  charge (bucket: Bucket, cost: number): void {
    const now = this.#now()
    const before = Math.max(now, bucket.fullAt)
    bucket.fullAt = Math.max(before, Math.min(before + cost * this.#intervalMs, now + this.maxDebtMs))
    // What a shared store adds comes back to this bucket: it must not be more.
    this.#note(bucket.key, (bucket.fullAt - before) / this.#intervalMs)
  }

  /** From now on used units are collected for `takeUsed`. */
  share (): void {
    this.#used = new Map()
  }

  /** Units by caller since the last call. */
  takeUsed (): ReadonlyMap<string, number> {
    const used = this.#used ?? new Map<string, number>()
    if (used.size > 0) this.#used = new Map()
    return used
  }

  /** A shared store knows of more units that a caller has used elsewhere: the bucket is full in so many milliseconds at the earliest. */
  addUsedElsewhere (key: string, untilFullMs: number): void {
    // A store may answer anything: a caller would wait for ever for what is no number.
    if (!(untilFullMs > 0)) return
    const since = (this.#used?.get(key) ?? 0) * this.#intervalMs
    const bucket = this.#buckets.get(key)
    if (bucket !== undefined) bucket.fullAt = Math.max(bucket.fullAt, this.#now() + untilFullMs + since)
  }

  #note (key: string, cost: number): void {
    const used = this.#used
    if (used !== undefined && (used.has(key) || used.size < this.#maxKeys)) used.set(key, (used.get(key) ?? 0) + cost)
  }

  /** Forgets full buckets among the oldest, or the very oldest. */
  #makeRoom (): void {
    const now = this.#now()
    let checked = 0
    let oldest: string | undefined
    for (const [key, bucket] of this.#buckets) {
      if (checked++ >= SWEEP) break
      oldest ??= key
      this.#buckets.delete(key)
      if (bucket.fullAt > now) this.#buckets.set(key, bucket)
    }
    if (this.#buckets.size >= this.#maxKeys && oldest !== undefined) this.#buckets.delete(oldest)
  }
}
