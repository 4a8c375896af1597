import type { IncomingMessage } from 'node:http'
import { CATALOG_REVISION_HEADER, REVISION_HEADER } from './headers.ts'

/** What a page may read of an answer besides the headers that browsers always show (Fetch, "CORS-safelisted response-header name"). */
export const EXPOSED_HEADERS: string[] = [
  'Accept-Ranges', 'Allow', CATALOG_REVISION_HEADER, 'Content-Disposition', 'Content-Encoding', 'Content-Range', 'ETag', 'Mcp-Session-Id', 'RateLimit', 'RateLimit-Policy',
  'Retry-After', REVISION_HEADER, 'WWW-Authenticate', 'X-Request-Id'
]

/** @param allowedOrigins as browsers send them, in lower case */
export function allowsOrigin (allowedOrigins: readonly string[]): (origin: string | undefined) => origin is string {
  const allowed = new Set(allowedOrigins)
  return (origin): origin is string => origin !== undefined && allowed.has(origin.toLowerCase())
}

/** What lets a page read an answer to its request. */
export type CorsHeaders = (request: Pick<IncomingMessage, 'headers'>) => Readonly<Record<string, string>>

/** For answers that pass no hook, and so not the plugin `cors`. */
export function createCorsHeaders (allowedOrigins: readonly string[] = []): CorsHeaders {
  const allows = allowsOrigin(allowedOrigins)
  return ({ headers: { origin } }) => allows(origin) ? { 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED_HEADERS.join(', '), vary: 'Origin' } : {}
}
