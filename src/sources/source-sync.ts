import type { Listing } from '../core/roots/list-root.ts'
import type { RootOptions } from '../core/roots/root.ts'
import { coalesce } from '../core/shared/async.ts'
import type { CoreLog } from '../core/shared/log.ts'
import type { SourceStatus } from '../schemas/health.ts'
import { asSourceError, type SourceError } from './source-error.ts'

const JITTER = 0.1
const FIRST_RETRY_MS = 2_000
const MAX_RETRY_MS = 900_000

/** Pause after a webhook or an event, in milliseconds, since they come in bursts. */
const COLLECT_MS = 50

export interface SourceRoot extends RootOptions {
  readonly name: string
  readonly listed: Listing
}

/** Where the skills of a root come from. Times in milliseconds. */
export interface Origin {
  readonly root: SourceRoot
  /** The status, without name, state and times. */
  readonly report: Pick<SourceStatus, 'kind'> & Partial<SourceStatus>
  /** Time between two checks. */
  readonly intervalMs: number
  /** Longest pause before a failed check is repeated. Default: MAX_RETRY_MS. */
  readonly maxRetryMs?: number
  /** Shortest time between two requested checks. */
  readonly spacingMs: number
  /** Lists what was published before. Absent: the first check does. */
  open? (): Promise<void>
  /** Updates the listing of the root. */
  check (signal: AbortSignal): Promise<void>
  close? (): Promise<void>
}

/** Checks one origin: at intervals, with longer pauses after failures, and soon on request. */
export class SourceSync {
  readonly #origin: Origin
  readonly #log: CoreLog
  readonly #closing = new AbortController()
  /** Checks now. Calls during a check share one that begins afterwards. */
  readonly checkNow = coalesce(() => this.#check())
  /** The last failure, and how many checks have failed in a row. */
  #failure: { readonly error: SourceError, readonly since: Date, readonly count: number } | undefined
  #startedAt = -Infinity
  #checkedAt: Date | undefined
  #nextAt: Date | undefined
  /** Whether a check was requested since the last one began. */
  #isAsked = false
  #timer: NodeJS.Timeout | undefined

  constructor (origin: Origin, log: CoreLog) {
    this.#origin = origin
    this.#log = log
  }

  get status (): SourceStatus {
    const { report, root: { name, listed: { folders } } } = this.#origin
    const { error, since } = this.#failure ?? {}
    const [good, bad] = folders === undefined ? ['waiting', 'failed'] as const : ['ok', 'stale'] as const
    return {
      name,
      state: error === undefined ? good : bad,
      skills: folders?.size ?? 0,
      ...this.#checkedAt !== undefined && { checked_at: this.#checkedAt.toISOString() },
      ...this.#nextAt !== undefined && { next_at: this.#nextAt.toISOString() },
      ...error !== undefined && { error: { code: error.code, message: error.message } },
      ...since !== undefined && { failing_since: since.toISOString() },
      ...report
    }
  }

  async open (): Promise<void> {
    await (this.#origin.open?.() ?? this.checkNow())
  }

  start (): void {
    this.#checkIn(0)
  }

  checkSoon (): void {
    if (this.#isAsked) return
    this.#isAsked = true
    this.#checkIn(this.#pause())
  }

  async close (): Promise<void> {
    this.#closing.abort()
    clearTimeout(this.#timer)
    // Waits for a running check; the next one returns immediately.
    await this.checkNow()
    await this.#origin.close?.()
  }

  #checkIn (pause: number): void {
    if (this.#closing.signal.aborted) return
    clearTimeout(this.#timer)
    this.#nextAt = new Date(Date.now() + pause)
    this.#timer = setTimeout(() => { void this.checkNow() }, pause).unref()
  }

  async #check (): Promise<void> {
    const { signal } = this.#closing
    if (signal.aborted) return
    clearTimeout(this.#timer)
    this.#isAsked = false
    this.#startedAt = performance.now()
    let error: SourceError | undefined
    try {
      await this.#origin.check(signal)
      this.#checkedAt = new Date()
    } catch (cause) {
      if (signal.aborted) return
      error = asSourceError(cause)
    }
    this.#note(error)
    this.#checkIn(this.#pause())
  }

  /** Returns the time until the next check. */
  #pause (): number {
    const { intervalMs, maxRetryMs = MAX_RETRY_MS, spacingMs } = this.#origin
    if (this.#isAsked) return Math.max(COLLECT_MS, this.#startedAt + spacingMs - performance.now())
    if (this.#failure === undefined) return jittered(intervalMs)
    const { error: { retryAfterMs = 0 }, count } = this.#failure
    const pause = Math.min(FIRST_RETRY_MS * 2 ** (count - 1), maxRetryMs)
    return Math.max(jittered(pause), Math.min(retryAfterMs, maxRetryMs))
  }

  /** Logs a new failure, and its end; repeated ones are not logged. */
  #note (error: SourceError | undefined): void {
    const { root: { name: source, listed: { folders } }, report: { revision } } = this.#origin
    const before = this.#failure
    this.#failure = error && { error, since: before?.since ?? new Date(), count: (before?.count ?? 0) + 1 }
    if (error === undefined) {
      if (before === undefined) return
      this.#log.info({ source, failingSince: before.since }, `source "${source}" is reachable again`)
      return
    }
    const { code, message, details, cause } = error
    if (before?.error.code === code && before.error.message === message) return
    const last = revision === undefined ? 'its last state' : `revision ${revision}`
    const served = folders === undefined ? 'there is no state of it yet' : `still serving ${last}`
    const fields = { source, code, ...details && { details }, ...code === 'internal' && { err: cause } }
    this.#log.warn(fields, `cannot update source "${source}": ${message}; ${served}`)
  }
}

/** Varies a pause, so that replicas which started together drift apart. */
function jittered (pause: number): number {
  return Math.round(pause * (1 + JITTER * (2 * Math.random() - 1)))
}
