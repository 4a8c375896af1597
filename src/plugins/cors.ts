import fastifyCors from '@fastify/cors'
import fp from 'fastify-plugin'
import { CATALOG_REVISION_HEADER, REVISION_HEADER } from '../http/headers.ts'

interface CorsOptions {
  /** As browsers send them, in lower case. Empty: no page of another origin may read anything. */
  readonly allowedOrigins: readonly string[]
}

/** What a page may read of an answer besides the headers that browsers always show. */
const EXPOSED_HEADERS = [
  'Accept-Ranges', 'Allow', CATALOG_REVISION_HEADER, 'Content-Disposition', 'Content-Encoding', 'Content-Range',
  'ETag', 'Mcp-Session-Id', 'Retry-After', REVISION_HEADER, 'WWW-Authenticate', 'X-Request-Id'
]

/** How long a browser may keep the answer to a preflight, in seconds. Browsers allow two hours at most. */
const MAX_AGE_SECONDS = 7200

/**
 * Opens every route to the web pages of some origins (Fetch, "CORS protocol"). Registered after `security`, which
 * decides on the host first, and after `errors`, whose handler an `OPTIONS` route gets only if it is there before.
 */
export const cors = fp<CorsOptions>(async function cors (app, { allowedOrigins }) {
  if (allowedOrigins.length === 0) return
  const allowed = new Set(allowedOrigins)
  await app.register(fastifyCors, {
    // With a list the plugin would answer the preflight of any page.
    origin: (origin, done) => { done(null, origin !== undefined && allowed.has(origin.toLowerCase()) && origin) },
    methods: ['GET', 'HEAD', 'POST'],
    exposedHeaders: EXPOSED_HEADERS,
    maxAge: MAX_AGE_SECONDS,
    // The plugin's own refusal of an OPTIONS that is not a preflight is plain text.
    strictPreflight: false
  })
}, { name: 'cors' })
