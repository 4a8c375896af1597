import { errorCode } from '../core/shared/system-errors.ts'
import { whyUnwritable } from '../config/files/files.ts'
import { SourceError } from './source-error.ts'

/** Errors of the operating system that an operator can fix. No connection ends with one of them. */
export const DISK_CODES: ReadonlySet<string> =
  new Set(['ENOSPC', 'EDQUOT', 'EACCES', 'EPERM', 'EROFS', 'EIO', 'EMFILE'])

/** What an error of a check is to those who read the status. */
export function asSourceError (error: unknown): SourceError {
  if (error instanceof SourceError) return error
  if (DISK_CODES.has(errorCode(error))) {
    const sentence = `the state folder cannot be written (${whyUnwritable(error)})`
    return new SourceError('disk', sentence, { cause: error })
  }
  return new SourceError('internal', 'an unexpected error, which the log has', { cause: error })
}
