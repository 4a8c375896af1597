import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { SkillError, type SkillErrorKind } from '../core/shared/errors.ts'

/** Errors after which no other request can succeed either. */
const INTERNAL: ReadonlySet<SkillErrorKind> = new Set(['broken', 'unavailable'])

/** An error of the domain, with its kind for observers. */
export class McpFault extends ProtocolError {
  readonly kind: SkillErrorKind

  constructor (kind: SkillErrorKind, message: string) {
    super(INTERNAL.has(kind) ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams, message)
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
