import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from '@modelcontextprotocol/server'
import type { FastifyRequest } from 'fastify'
import type { Observer, OperationEnd } from '../http/observer.ts'
import { own } from '../core/shared/json.ts'
import { McpFault } from './faults.ts'

/** A JSON-RPC request that is being answered. */
export interface Operation {
  readonly origin: FastifyRequest
  /** Runs its handler, which decides on what came of it. */
  run<Result> (handler: () => Promise<Result>): Promise<Result>
  /** The response begins, which ends an operation without a handler here. `error` is what is wrong with its parameters. */
  answered (response: Response, error: string | undefined): void
}

/** Reports a message that is a request; undefined for every other one. */
export function observeOperation (observer: Observer, message: unknown, origin: FastifyRequest): Operation | undefined {
  const [method, id] = [own(message, 'method'), own(message, 'id')]
  if (typeof method !== 'string' || (typeof id !== 'string' && typeof id !== 'number')) return undefined
  const notify = observer.onOperation({ method, params: own(message, 'params'), id, origin })
  let isHandled = false
  let hasEnded = false
  const end = (result: OperationEnd): void => {
    if (!hasEnded) notify?.(result)
    hasEnded = true
  }
  return {
    origin,
    async run (handler) {
      isHandled = true
      try {
        const result = await handler()
        end({ error: own(result, 'isError') === true ? 'tool_error' : undefined })
        return result
      } catch (error) {
        const kind = error instanceof McpFault ? error.kind : error instanceof ResourceNotFoundError ? 'missing' : undefined
        end({ error: String(error instanceof ProtocolError ? error.code : ProtocolErrorCode.InternalError), kind })
        throw error
      }
    },
    answered ({ ok, status }, error) {
      if (!isHandled) end({ error: error ?? (ok ? undefined : String(status)) })
    }
  }
}
