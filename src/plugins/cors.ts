import fastifyCors from '@fastify/cors'
import fp from 'fastify-plugin'
import { CATALOG_REVISION_HEADER, REVISION_HEADER } from '../http/headers.ts'

/** What a page may read of an answer besides the headers that browsers always show. */
const EXPOSED_HEADERS = [
  'Accept-Ranges', 'Allow', CATALOG_REVISION_HEADER, 'Content-Disposition', 'Content-Encoding', 'Content-Range',
  'ETag', 'Mcp-Session-Id', 'Retry-After', REVISION_HEADER, 'WWW-Authenticate', 'X-Request-Id'
]

/** The headers of an answer that reaches no hook, for the page that has sent the request. */
export function corsHeaders (origin: string | undefined, allowedOrigins: readonly string[]): Record<string, string> {
  if (allowedOrigins.length === 0) return {}
  const vary = { vary: 'Origin' }
  if (origin === undefined || !allowedOrigins.includes(origin.toLowerCase())) return vary
  return {
    ...vary, 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED_HEADERS.join(', ')
  }
}

/** Opens every route to the web pages of some origins. After `errors`, whose handler its `OPTIONS` route gets then. */
export const cors = fp<{ readonly allowedOrigins: readonly string[] }>(async function cors (app, { allowedOrigins }) {
  if (allowedOrigins.length === 0) return
  await app.register(fastifyCors, {
    // With a list the plugin would answer the preflight of any page.
    origin: async (origin = '') => allowedOrigins.includes(origin.toLowerCase()) && origin,
    methods: ['GET', 'HEAD', 'POST'],
    exposedHeaders: EXPOSED_HEADERS,
    // In seconds, for preflights: browsers keep them for two hours at most.
    maxAge: 7_200,
    // The plugin's own refusal of an OPTIONS that is not a preflight is plain text.
    strictPreflight: false
  })
}, { name: 'cors' })
