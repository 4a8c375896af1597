import { type JSONRPCRequest, ProtocolError, ProtocolErrorCode, type Result, Server, type ServerContext } from '@modelcontextprotocol/server'
import { MAX_LOG_LINE_CHARACTERS } from '../tools/limits.ts'

type Handler = (request: JSONRPCRequest, context: ServerContext) => Promise<Result>

/**
 * The SDK's server, but for parameters that do not fit: it throws the validator's list of issues as an internal error, for
 * its own methods too. Here they are -32602 with a sentence on the first issue, as JSON-RPC 2.0 (5.1) has it.
 */
export class StrictServer extends Server {
  // The SDK's hook for this. It is called by the constructor: no field is there yet.
  protected override _wrapHandler (method: string, handler: Handler): Handler {
    const wrapped = super._wrapHandler(method, handler)
    return async (request, context) => {
      try {
        return await wrapped(request, context)
      } catch (error) {
        const issue = firstIssue(error)
        if (issue !== undefined) {
          throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Invalid params for ${method}: ${issue}`.slice(0, MAX_LOG_LINE_CHARACTERS))
        }
        if (error instanceof ProtocolError) throw error
        throw new ProtocolError(ProtocolErrorCode.InternalError, 'Internal error')
      }
    }
  }
}

/** What the validator says first; undefined for an error that is none of its own. */
function firstIssue (error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const list = /^(?:Invalid tools\/call request: )?(\[\s*\{[^]*)$/.exec(error.message)?.[1]
  if (list === undefined) return undefined
  try {
    const [{ path, message }] = JSON.parse(list) as [{ readonly path: readonly string[], readonly message: string }]
    return `${path.join('.')}: ${message}`
  } catch {
    return undefined
  }
}
