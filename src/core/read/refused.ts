import type { SkillLimit } from '../shared/errors.ts'
import { errorCode } from '../shared/system-errors.ts'

/**
 * Why a file was not opened or read. Each API has its own message for it. `changed`: the file kept changing.
 * `no_answer`: its disk does not answer.
 */
export type Refusal = SkillLimit | 'not_found' | 'outside' | 'permission_denied' | 'is_directory' | 'not_regular' |
  'too_large' | 'changed' | 'no_answer' | 'io_error'

/** Refusals for error codes of the operating system. Other errors are `io_error`. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  ENOENT: 'not_found',
  ENOTDIR: 'not_found',
  ENAMETOOLONG: 'not_found',
  ELOOP: 'not_found',
  ERR_INVALID_ARG_VALUE: 'not_found',
  EACCES: 'permission_denied',
  EPERM: 'permission_denied',
  ETIMEDOUT: 'no_answer',
  EISDIR: 'is_directory',
  ENXIO: 'not_regular',
  ENODEV: 'not_regular'
}

export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  readonly refusal: Refusal
  /** Size in bytes, for `too_large`. */
  readonly size: bigint

  constructor (refusal: Refusal, cause?: unknown, size = 0n) {
    super(refusal, { cause })
    this.refusal = refusal
    this.size = size
  }
}

/** Turns an error of the operating system into a refusal. Its text goes to the log only. */
export function asRefused (error: unknown): RefusedError {
  return error instanceof RefusedError ? error : new RefusedError(REFUSALS[errorCode(error)] ?? 'io_error', error)
}

/** Whether the disk failed, so that the error says nothing about what is at a path. */
export function isInconclusive (error: unknown): boolean {
  const { refusal } = asRefused(error)
  return refusal === 'io_error' || refusal === 'no_answer'
}

/** Whether the next main file is tried instead, since this one is not a regular file of the skill. */
export function isPassedOver (refusal: Refusal): boolean {
  return ['not_found', 'outside', 'is_directory', 'not_regular'].includes(refusal)
}

export function changed (what: string): RefusedError {
  return new RefusedError('changed', new Error(what))
}
