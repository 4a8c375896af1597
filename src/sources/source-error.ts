import { reasonOf } from '../operator/files.ts'
import { ConfigError } from '../operator/setting.ts'
import { errorCode } from '../core/shared/system-errors.ts'

/** Why a source could not deliver: a closed set, for status and metrics. */
export type SourceErrorCode =
  | 'auth_failed' | 'not_found' | 'ref_not_found' | 'path_not_found' | 'redirected' | 'rate_limited' | 'unreachable'
  | 'tls' | 'host_key' | 'timeout' | 'too_large' | 'refused_tree' | 'bad_archive' | 'bad_answer' | 'digest_mismatch'
  | 'changing' | 'verification_failed' | 'git_missing' | 'secret_missing' | 'disk' | 'internal'

/** A failure of a source. The message may be shown to anybody: it holds no address, no local path, no secret. */
export class SourceError extends Error {
  override readonly name = 'SourceError'
  readonly code: SourceErrorCode
  /** For the log: what a program or a server said, without secrets. */
  readonly details: string | undefined
  /** How long the other side asks to be left alone, in milliseconds. */
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

/** What an operator wrote of a source and cannot be used. The message is one sentence without secrets. */
export class AddressError extends ConfigError {
  override readonly name = 'AddressError'
  /** The setting next to the address that is wrong, such as `ref`. Default: the address itself. */
  readonly setting: string | undefined

  constructor (message: string, { setting, ...options }: ErrorOptions & { readonly setting?: string } = {}) {
    super(message, options)
    this.setting = setting
  }
}

/** Which source has not delivered, and why. */
export function failureOf (name: string, error: { readonly code: string, readonly message: string }): string {
  return `the source ${name} cannot be read: ${error.message} (${error.code})`
}

/** Errors of the operating system that an operator can fix. No connection ends with one of them. */
export const DISK_CODES: ReadonlySet<string> =
  new Set(['ENOSPC', 'EDQUOT', 'EACCES', 'EPERM', 'EROFS', 'EIO', 'EMFILE'])

/** What an error of a check is to those who read the status. */
export function asSourceError (error: unknown): SourceError {
  if (error instanceof SourceError) return error
  if (error instanceof AddressError) {
    const sentence = 'the state folder cannot be used; --state-dir chooses another'
    return new SourceError('disk', sentence, { details: error.message, cause: error })
  }
  if (DISK_CODES.has(errorCode(error))) {
    const sentence = `the state folder cannot be written (${reasonOf(error)})`
    return new SourceError('disk', sentence, { cause: error })
  }
  return new SourceError('internal', 'an unexpected error, which the log has', { cause: error })
}
