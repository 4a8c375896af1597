import { HttpProblem } from '../http/problem.ts'
import { isLoopbackOrigin } from '../http/request/hosts.ts'

interface OriginOptions {
  /** The service is bound to a loopback address: pages of this machine may use the API. */
  readonly loopbackOnly: boolean
  /** As browsers send them, in lower case. */
  readonly allowedOrigins: readonly string[]
}

/** The refusal of an `Origin`, or undefined. */
export type OriginCheck = (origin: string | undefined) => HttpProblem | undefined

/**
 * Refuses web pages (MCP, "Streamable HTTP", security warning): programs send no `Origin`, browsers always do. Unlike
 * the SDK's hook, the check compares scheme and port too, and does not load the SDK when the service starts.
 */
export function createOriginCheck ({ loopbackOnly, allowedOrigins }: OriginOptions): OriginCheck {
  const allowed = new Set(allowedOrigins)
  return (origin) => {
    if (origin === undefined || allowed.has(origin.toLowerCase())) return undefined
    return loopbackOnly && isLoopbackOrigin(origin) ? undefined : new HttpProblem('origin_not_allowed')
  }
}
