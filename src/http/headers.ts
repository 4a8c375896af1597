import type { IncomingMessage } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { ChangeFeed } from '../core/events/change-feed.ts'

/** Headers of every answer. */
export const securityHeaders = { 'x-content-type-options': 'nosniff' } as const

/** Headers of files of skills, which others have written: as pages they run no scripts, and have no origin. */
export const contentHeaders = {
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; sandbox"
} as const

/** Names the revision of the skill in an answer, if the answer always has one or the request has asked for one. */
export const REVISION_HEADER = 'skill-revision'

/** Header with the revision of the whole catalog, on lists. Absent while the revision is unknown. */
export const CATALOG_REVISION_HEADER = 'catalog-revision'

/** Headers that web pages may read, in addition to those that browsers always expose. */
export const EXPOSED_HEADERS = [
  'Accept-Ranges', 'Allow', CATALOG_REVISION_HEADER, 'Content-Disposition', 'Content-Encoding', 'Content-Range',
  'ETag', 'Mcp-Session-Id', 'Retry-After', REVISION_HEADER, 'WWW-Authenticate', 'X-Request-Id'
]

/** For @fastify/cors: opens every route to the web pages of some origins. */
export function corsOptions (allowedOrigins: readonly string[]) {
  return {
    // With a list, @fastify/cors would allow the preflight of any page.
    origin: async (origin = '') => allowedOrigins.includes(origin.toLowerCase()) && origin,
    methods: ['GET', 'HEAD', 'POST'],
    exposedHeaders: EXPOSED_HEADERS,
    // Seconds for which browsers keep a preflight: two hours are their maximum.
    maxAge: 7_200,
    // Otherwise the plugin answers an OPTIONS that is not a preflight with plain text.
    strictPreflight: false
  }
}

/** Returns the CORS headers of an answer that runs no hooks. */
export function corsHeaders (origin: string | undefined, allowedOrigins: readonly string[]): Record<string, string> {
  if (allowedOrigins.length === 0) return {}
  const vary = { vary: 'Origin' }
  if (origin === undefined || !allowedOrigins.includes(origin.toLowerCase())) return vary
  return {
    ...vary, 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED_HEADERS.join(', ')
  }
}

/**
 * Returns what `make` makes. Names the revision of the catalog, or has caches ask again if it changed meanwhile.
 * @param feed of the skills that the request may see
 */
export async function withCatalogRevision<T> (
  reply: FastifyReply, feed: Pick<ChangeFeed, 'revision'>, make: () => Promise<T>
): Promise<T> {
  const { revision } = feed
  const made = await make()
  if (revision !== undefined && feed.revision === revision) reply.header(CATALOG_REVISION_HEADER, revision)
  else reply.header('cache-control', 'no-cache')
  return made
}

/** Adds a request header to `Vary` (RFC 9110 §12.5.5). */
export function addVary (reply: FastifyReply, name: string): void {
  const others = reply.getHeader('vary')
  if (others === undefined) reply.header('vary', name)
  else if (!String(others).split(', ').includes(name)) reply.header('vary', `${String(others)}, ${name}`)
}

/** Whether a header has several lines, of which Node keeps the first or joins all. @param name in lower case */
export function hasSeveral ({ rawHeaders }: IncomingMessage, name: string): boolean {
  let lines = 0
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]?.toLowerCase() === name) lines++
  return lines > 1
}

/** @param digest `sha256:<hex>` @param variant names the representation when one content has several: `json` */
export function strongEtag (digest: string, variant?: string): string {
  const opaque = digest.slice(digest.indexOf(':') + 1)
  return variant === undefined ? `"${opaque}"` : `"${opaque}-${variant}"`
}

/** Whether `If-Match` or `If-None-Match` contains one of these ETags, or its weak form, as compressed bytes have. */
export function matchesEtag (header: string, ...etags: readonly string[]): boolean {
  // Our ETags contain no comma or space, so a plain search for one with its quotes finds only whole list members.
  return header.trim() === '*' || etags.some((etag) => header.includes(etag.replace('W/', '')))
}
