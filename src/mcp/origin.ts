import { HttpProblem } from '../http/problem.ts'
import { isLoopbackOrigin } from '../http/hosts.ts'

export interface OriginOptions {
  /** The service is bound to a loopback address: pages of this machine may use it. */
  readonly loopbackOnly: boolean
  /** As browsers send them, in lower case. */
  readonly allowedOrigins: readonly string[]
}

/** What is wrong with an `Origin`, if anything is. */
export type OriginCheck = (origin: string | undefined) => HttpProblem | undefined

/**
 * Keeps web pages away (MCP, "Streamable HTTP", security warning): programs send no `Origin`, browsers always do. Unlike
 * the SDK's hook it compares scheme and port too, and does not load the SDK when the service starts.
 */
export function createOriginCheck ({ loopbackOnly, allowedOrigins }: OriginOptions): OriginCheck {
  const allowed = new Set(allowedOrigins)
  return (origin) => {
    if (origin === undefined || allowed.has(origin.toLowerCase())) return undefined
    return loopbackOnly && isLoopbackOrigin(origin) ? undefined : new HttpProblem('origin_not_allowed')
  }
}
