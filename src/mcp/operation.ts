import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from '@modelcontextprotocol/server'
import type { FastifyRequest } from 'fastify'
import { SkillError, type SkillErrorKind } from '../core/shared/errors.ts'
import { own } from '../core/shared/json.ts'
import type { Observer } from '../http/observer.ts'

/** Kinds of errors that are the service's fault and not that of the request. */
const INTERNAL: ReadonlySet<SkillErrorKind> = new Set(['broken', 'unavailable'])

/** A `SkillError` as a JSON-RPC error, with its kind for observers. */
export class McpFault extends ProtocolError {
  readonly kind: SkillErrorKind

  constructor (kind: SkillErrorKind, message: string) {
    super(INTERNAL.has(kind) ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams, message)
    this.kind = kind
  }
}

/** A JSON-RPC request that is being answered. */
export type Operation = NonNullable<ReturnType<typeof observeOperation>>

/** Starts to observe a message; returns undefined if it is not a request. */
export function observeOperation (observer: Observer, message: unknown, origin: FastifyRequest) {
  const [method, id] = [own(message, 'method'), own(message, 'id')]
  if (typeof method !== 'string' || (typeof id !== 'string' && typeof id !== 'number')) return undefined
  const notify = observer.onOperation({ method, params: own(message, 'params'), id, origin })
  let isHandled = false
  return {
    origin,
    /** A handler of ours begins, and calls what this returns at its end. */
    begin () {
      isHandled = true
      return notify
    },
    /** The response begins, which ends an operation that no handler of ours runs. */
    answered (error: number | undefined): void {
      if (!isHandled) notify?.({ error: error?.toString() })
    }
  }
}

/**
 * Runs a handler. Every error becomes a `ProtocolError`, since the SDK sends any error's message to the client.
 * @param onError receives the errors that the client does not see
 */
export async function runHandler<Result> (
  run: () => Promise<Result>, operation: Operation | undefined, onError: (error: unknown) => void
): Promise<Result> {
  const end = operation?.begin()
  try {
    const result = await run()
    end?.({ error: own(result, 'isError') === true ? 'tool_error' : undefined })
    return result
  } catch (error) {
    const isExpected = error instanceof ProtocolError || (error instanceof SkillError && error.cause === undefined)
    if (!isExpected) onError(error)
    const fault = toProtocolError(error)
    const kind = fault instanceof ResourceNotFoundError ? 'missing' : undefined
    end?.({ error: String(fault.code), kind: fault instanceof McpFault ? fault.kind : kind })
    throw fault
  }
}

function toProtocolError (error: unknown): ProtocolError {
  if (error instanceof ProtocolError) return error
  if (error instanceof SkillError) return new McpFault(error.kind, error.message)
  return new McpFault('broken', 'Internal error; the log of the service has the cause')
}
