import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { SkillError, type SkillErrorKind } from '../core/shared/errors.ts'

const { InvalidParams, InternalError } = ProtocolErrorCode

/** The domain's errors as JSON-RPC: InvalidParams where another request can succeed, InternalError where none can. */
const CODES = {
  invalid: InvalidParams,
  forbidden: InvalidParams,
  missing: InvalidParams,
  outdated: InvalidParams,
  too_large: InvalidParams,
  unprocessable: InvalidParams,
  broken: InternalError,
  unavailable: InternalError
} as const satisfies Record<SkillErrorKind, ProtocolErrorCode>

/** An error of the domain, with its kind for observers. */
export class McpFault extends ProtocolError {
  readonly kind: SkillErrorKind

  constructor (kind: SkillErrorKind, message: string) {
    super(CODES[kind], message)
    this.kind = kind
  }
}

/**
 * Runs a handler. Every failure becomes a `ProtocolError`: the SDK sends the message of any error to the caller.
 * @param onError receives what the caller does not see
 */
export async function withFaults<Result> (
  run: () => Promise<Result>, onError: (error: unknown) => void
): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof ProtocolError) throw error
    if (!(error instanceof SkillError)) {
      onError(error)
      throw new McpFault('broken', 'Internal error; the log of the service has the cause')
    }
    if (error.cause !== undefined) onError(error)
    throw new McpFault(error.kind, error.message)
  }
}
