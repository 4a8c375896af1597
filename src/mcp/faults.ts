import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { SkillError, type SkillErrorCode } from '../core/errors.ts'

const { InvalidParams, InternalError } = ProtocolErrorCode

/** The domain's errors as JSON-RPC: what the caller can mend by asking for something else, and what it cannot. */
const CODES = {
  invalid_skill_name: InvalidParams,
  skill_not_found: InvalidParams,
  archive_too_large: InvalidParams,
  main_file_not_found: InvalidParams,
  main_file_too_large: InvalidParams,
  main_file_permission_denied: InvalidParams,
  main_file_not_utf8: InvalidParams,
  main_file_unreadable: InternalError,
  invalid_file_path: InvalidParams,
  path_traversal: InvalidParams,
  file_not_found: InvalidParams,
  file_permission_denied: InvalidParams,
  file_is_directory: InvalidParams,
  file_not_regular: InvalidParams,
  file_not_text: InvalidParams,
  file_too_large: InvalidParams,
  file_io_error: InternalError,
  skill_changing: InternalError,
  revision_changed: InvalidParams,
  skills_folder_not_found: InternalError,
  skills_folder_permission_denied: InternalError
} as const satisfies Record<SkillErrorCode, ProtocolErrorCode>

/**
 * Runs a handler so that nothing but a `ProtocolError` leaves it: the SDK would send the message of any other error.
 * @param onError told what the caller is not
 */
export async function withFaults<Result> (run: () => Promise<Result>, onError: (error: unknown) => void): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof ProtocolError) throw error
    if (!(error instanceof SkillError)) {
      onError(error)
      throw new ProtocolError(InternalError, 'Internal error; the log of the service has the cause')
    }
    if (error.cause !== undefined) onError(error)
    throw new ProtocolError(CODES[error.code], error.message)
  }
}
