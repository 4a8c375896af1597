import type { FastifyRequest } from 'fastify'

/** W3C Trace Context, level 1: `00-<32 hex>-<16 hex>-<2 hex>`; of later versions the first 55 characters count. */
const TRACEPARENT = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:$|-)/

export interface TraceContext {
  readonly traceId: string
  readonly spanId: string
  readonly flags: string
}

/** Parses a `traceparent` header; returns undefined if it is invalid. */
export function parseTraceparent (text: unknown): TraceContext | undefined {
  if (typeof text !== 'string') return undefined
  const [, version, traceId, spanId, flags] = TRACEPARENT.exec(text) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  return version === '00' && text.length !== 55 ? undefined : { traceId, spanId, flags }
}

/** Returns the trace context of a request: its own span if tracing is on, else the client's. */
export function traceOf (request: FastifyRequest): TraceContext | undefined {
  return request.trace ?? parseTraceparent(request.headers['traceparent'])
}
