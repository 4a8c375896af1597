import type { FastifyRequest } from 'fastify'

/** W3C Trace Context, level 1: `00-<32 hex>-<16 hex>-<2 hex>`; of later versions the first 55 characters count. */
const TRACEPARENT = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:$|-)/

export interface TraceContext {
  readonly traceId: string
  readonly spanId: string
  readonly flags: string
}

/** The caller's place in a trace; undefined for a text that is none. */
export function parseTraceparent (text: unknown): TraceContext | undefined {
  if (typeof text !== 'string') return undefined
  const [, version, traceId, spanId, flags] = TRACEPARENT.exec(text) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  return version === '00' && text.length !== 55 ? undefined : { traceId, spanId, flags }
}

/** Where a request is in a trace: its own span where spans are made, else its caller's. */
export function traceOf (request: FastifyRequest): TraceContext | undefined {
  return request.trace ?? parseTraceparent(request.headers['traceparent'])
}
