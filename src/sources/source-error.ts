import type { IncomingHttpHeaders } from 'node:http'
import { reasonOf } from '../operator/files.ts'
import { ConfigError } from '../operator/setting.ts'
import { errorCode } from '../core/shared/system-errors.ts'

/** Why a source could not be fetched: a closed set, for status and metrics. */
export type SourceErrorCode =
  | 'auth_failed' | 'not_found' | 'ref_not_found' | 'path_not_found' | 'redirected' | 'rate_limited' | 'unreachable'
  | 'tls' | 'host_key' | 'timeout' | 'too_large' | 'refused_tree' | 'bad_archive' | 'bad_answer' | 'digest_mismatch'
  | 'changing' | 'verification_failed' | 'git_missing' | 'secret_missing' | 'disk' | 'internal'

/** An error of a source. Everybody may see the message: it contains no address, local path or secret. */
export class SourceError extends Error {
  override readonly name = 'SourceError'
  readonly code: SourceErrorCode
  /** Output of a program or server for the log, without secrets. */
  readonly details: string | undefined
  /** Pause that the host asks for, in milliseconds. */
  readonly retryAfterMs: number | undefined

  constructor (
    code: SourceErrorCode, message: string,
    { details, retryAfterMs, cause }: { details?: string, retryAfterMs?: number | undefined, cause?: unknown } = {}
  ) {
    super(message, { cause })
    this.code = code
    this.details = details
    this.retryAfterMs = retryAfterMs
  }
}

/** An error in the operator's configuration of a source. The message is one sentence without secrets. */
export class AddressError extends ConfigError {
  override readonly name = 'AddressError'
  /** The setting next to the address that is wrong, such as `ref`. Default: the address itself. */
  readonly setting: string | undefined

  constructor (message: string, { setting, ...options }: ErrorOptions & { readonly setting?: string } = {}) {
    super(message, options)
    this.setting = setting
  }
}

/** Says which source has failed, and why. */
export function failureOf (name: string, error: { readonly code: string, readonly message: string }): string {
  return `source "${name}" cannot be read: ${error.message} (${error.code})`
}

/** Error codes of the operating system that an operator can fix. Connections never fail with one of them. */
const DISK_CODES: ReadonlySet<string> =
  new Set(['ENOSPC', 'EDQUOT', 'EACCES', 'EPERM', 'EROFS', 'EIO', 'EMFILE'])

/** Explains the error of a check to readers of the status. */
export function asSourceError (error: unknown): SourceError {
  if (error instanceof SourceError) return error
  if (error instanceof AddressError) {
    const sentence = 'the state folder cannot be used; choose another with --state-dir or STATE_DIR'
    return new SourceError('disk', sentence, { details: error.message, cause: error })
  }
  if (DISK_CODES.has(errorCode(error))) {
    const sentence = `the state folder cannot be written (${reasonOf(error)})`
    return new SourceError('disk', sentence, { cause: error })
  }
  return new SourceError('internal', 'unexpected error; the log has it', { cause: error })
}

/** Meanings of connection errors, by error code. */
const FAILURES: ReadonlyArray<readonly [codes: RegExp, code: SourceErrorCode, sentence: string]> = [
  [/^(?:ENOTFOUND|EAI_AGAIN)$/, 'unreachable', 'the name of the host cannot be resolved: check how it is written'],
  [/^ECONNREFUSED$/, 'unreachable', 'connection refused by the host: check its port, and whether it runs'],
  [/CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO/, 'tls', 'the certificate of the host is not accepted'],
  [/^HPE_|^EPROTO$/, 'bad_answer', 'the host answers in another protocol: check its port'],
  [/^Z_/, 'bad_answer', 'the host sends a compressed body that is damaged']
]

export function isAbortError (error: unknown): boolean {
  return error instanceof Error && ['AbortError', 'TimeoutError'].includes(error.name)
}

/** Converts a connection error into a SourceError. Disk errors and aborts are returned unchanged. */
export function connectionError (error: unknown): unknown {
  const details = errorCode(error)
  if (error instanceof SourceError || isAbortError(error) || DISK_CODES.has(details)) return error
  const [, code, sentence] = FAILURES.find(([codes]) => codes.test(details)) ??
    [details, 'unreachable', 'the host cannot be reached, or closed the connection'] as const
  return new SourceError(code, sentence, { details })
}

/** Explains the status of a refusal. */
export function statusError (status: number, headers: IncomingHttpHeaders, hasCredentials: boolean): SourceError {
  const error = (code: SourceErrorCode, sentence: string): SourceError =>
    new SourceError(code, sentence, { retryAfterMs: retryAfter(headers['retry-after'] ?? '') })
  if (status === 401 || status === 403) {
    return error('auth_failed', hasCredentials
      ? 'the host refuses the credentials'
      : `the host refuses the request (${status}), and no credentials are configured`)
  }
  if (status === 404 || status === 410) {
    return error('not_found', 'nothing found at this address, or no permission to read it')
  }
  if (status === 429) return error('rate_limited', 'the host limits the rate of requests')
  return error(status >= 500 ? 'unreachable' : 'bad_answer', `the host answers with status ${status}`)
}

/** Parses `Retry-After`, seconds or a date, into milliseconds. */
function retryAfter (text: string): number | undefined {
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return Number.isFinite(ms) && ms > 0 ? ms : undefined
}
