import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError } from '@modelcontextprotocol/server'
import type { FastifyRequest } from 'fastify'
import { LISTEN, type Observer, type OperationEnd } from '../http/observer.ts'
import { own } from '../core/shared/json.ts'
import { McpFault } from './faults.ts'

/** A JSON-RPC request that is being answered. */
export interface Operation {
  readonly origin: FastifyRequest
  /** Runs its handler, which decides on what came of it. */
  run<Result> (handler: () => Promise<Result>): Promise<Result>
  /** The response begins, which ends an operation that no handler of ours ran: the SDK answered it. */
  answered (response: Response): Promise<void>
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
        const isMissing = error instanceof ResourceNotFoundError
        const kind = error instanceof McpFault ? error.kind : isMissing ? 'missing' : undefined
        end({ error: String(error instanceof ProtocolError ? error.code : ProtocolErrorCode.InternalError), kind })
        throw error
      }
    },
    async answered (response) {
      if (isHandled) return
      if (!response.ok) end({ error: String(response.status) })
      else end({ error: method === LISTEN ? undefined : await errorCodeIn(response.clone()) })
    }
  }
}

/** The JSON-RPC error code of an answer with status 200: one message, as JSON or as a stream of events. */
async function errorCodeIn (response: Response): Promise<string | undefined> {
  const text = await response.text()
  const [, message = text] = /^data: (.*)$/m.exec(text) ?? []
  const code = message === '' ? undefined : own(own(JSON.parse(message), 'error'), 'code')
  return code === undefined ? undefined : String(code)
}
