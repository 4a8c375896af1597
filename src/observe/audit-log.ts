import { hash, randomBytes } from 'node:crypto'
import { close, constants, createReadStream, fstat, open, write } from 'node:fs'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { reasonOf } from '../operator/files.ts'
import type { Config } from '../config/settings.ts'
import { coalesce } from '../core/shared/async.ts'
import type { CoreLog } from '../core/shared/log.ts'
import { errorCode } from '../core/shared/system-errors.ts'
import type { AuditState } from '../http/readiness.ts'
import { type LineOutput, openLineOutput } from '../log.ts'
import type { AuditEvent } from './reads.ts'

export type Outcome = 'success' | 'not_modified' | 'denied' | 'not_found' | 'failure' | 'error'

export interface AuditLogOptions extends Pick<Config, 'auditRequired'> {
  /** Path of a file, or `stdout`. */
  readonly path: string
  /** The output of the service's log, for the path `stdout`. */
  readonly stdout: LineOutput
  readonly log: CoreLog
}

/** Interval at which the output is checked, and a failed opening is tried again, in milliseconds. */
const CHECK_MS = 1_000

/** Not for other users: who reads what is personal data. */
const MODE = 0o640

/** With O_NONBLOCK, opening a pipe without a reader fails instead of waiting. */
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK

/**
 * Writes the lines of the audit log. Each has the SHA-256 of the line before it, from the start of the process on.
 * While the file cannot be opened, lines are counted as dropped and opening is tried again each second.
 */
export class AuditLog {
  /** The number of lines that were lost since the start. */
  dropped = 0
  readonly #options: AuditLogOptions
  readonly #processId = randomBytes(4).toString('hex')
  readonly #timer: NodeJS.Timeout
  /** Undefined while the file cannot be opened. */
  #output: LineOutput | undefined
  /** Error code if the file could not be opened. */
  #failure: string | undefined
  #reported: string | undefined
  #isClosed = false
  #count = 0
  #prev: string | null = null

  /** @throws the system's error if the file cannot be opened */
  static async open (options: AuditLogOptions): Promise<AuditLog> {
    const { path, stdout } = options
    return new AuditLog(options, path === 'stdout' ? stdout : await openOutput(path))
  }

  private constructor (options: AuditLogOptions, output: LineOutput) {
    this.#options = options
    this.#output = output
    this.#timer = setInterval(() => {
      if (this.#output === undefined) void this.reopen()
      this.#report()
    }, CHECK_MS).unref()
  }

  get state (): AuditState {
    if (this.#problem === undefined) return 'working'
    return this.#options.auditRequired ? 'refusing' : 'failing'
  }

  append (event: AuditEvent, outcome: Outcome, target: object, fields: object = {}): void {
    const time = Date.now()
    const id = `${time.toString(36)}-${this.#processId}-${(++this.#count).toString(36).padStart(6, '0')}`
    const members = { time: new Date(time).toISOString(), id, event, outcome, ...fields, target, prev: this.#prev }
    const line = JSON.stringify(members)
    this.#prev = hash('sha256', line)
    const output = this.#output
    if (output === undefined) {
      this.dropped++
      return
    }
    // The service's log shares the output, and may have dropped lines of its own.
    const before = output.dropped
    output.write(`${line}\n`)
    this.dropped += output.dropped - before
  }

  /**
   * Opens the file again, after a rotation. Lines go to the old file until the new one is open. Calls while the file is
   * being opened share one more opening.
   */
  readonly reopen = coalesce(() => this.#open())

  /** Writes waiting lines and closes the file. */
  close (): void {
    this.#isClosed = true
    clearInterval(this.#timer)
    if (this.#options.path !== 'stdout') void this.#output?.end()
  }

  get #problem (): string | undefined {
    return this.#failure ?? this.#output?.problem
  }

  async #open (): Promise<void> {
    if (this.#options.path === 'stdout' || this.#isClosed) return
    const old = this.#output
    try {
      this.#output = await openOutput(this.#options.path)
      this.#failure = undefined
    } catch (error) {
      this.#output = undefined
      this.#failure = errorCode(error) || reasonOf(error)
    }
    void old?.end().then((lost) => { this.dropped += lost })
    if (this.#isClosed) void this.#output?.end()
    this.#report()
  }

  /** Logs when lines can no longer be written, and when they can again. */
  #report (): void {
    const { path, auditRequired, log } = this.#options
    const problem = this.#problem
    if (problem === this.#reported) return
    this.#reported = problem
    if (problem === undefined) {
      log.info({ path, dropped: this.dropped }, 'audit log is written again')
    } else {
      const effect = auditRequired
        ? 'reads are refused until then'
        : 'lines are dropped, or wait in up to 8 MiB of memory'
      log.warn({ path, problem }, `audit log cannot be written, trying again each second; ${effect}`)
    }
  }
}

/** Opens or makes a file for lines, and ends a half line that a crash may have left. */
async function openOutput (path: string): Promise<LineOutput> {
  const fd = await promisify(open)(path, APPEND, MODE)
  try {
    const { size } = await promisify(fstat)(fd)
    const end = size === 0 ? '\n' : await text(createReadStream(path, { start: size - 1 }))
    if (!end.endsWith('\n')) await promisify(write)(fd, '\n')
    return openLineOutput({ fd, onDropped: () => {} })
  } catch (error) {
    await promisify(close)(fd)
    throw error
  }
}
