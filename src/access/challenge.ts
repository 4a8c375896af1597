import type { FastifyInstance } from 'fastify'
import { READ_SCOPE } from '../http/callers.ts'
import { HttpProblem } from '../http/problem.ts'
import type { IssuerEntry } from './policy.ts'

const METADATA_PATH = '/.well-known/oauth-protected-resource'

const INVALID = ', error="invalid_token", error_description='
const UNUSABLE = `${INVALID}"The token is unknown, damaged or no longer valid"`

/**
 * Refusals of requests: code of the problem, label in the metrics, and parameters after `realm` in the challenge (RFC
 * 6750 §3). A caller without credentials gets no `error`.
 */
export const REFUSALS = {
  unauthenticated: { code: 'unauthenticated', reason: 'missing', error: '' },
  invalid_credentials: { code: 'invalid_credentials', reason: 'invalid', error: ', error="invalid_request"' },
  invalid_token: { code: 'invalid_token', reason: 'invalid', error: UNUSABLE },
  token_expired: { code: 'token_expired', reason: 'expired', error: `${INVALID}"The token has expired"` },
  // The answer does not name the audience that the service expects.
  wrong_audience: { code: 'invalid_token', reason: 'audience', error: UNUSABLE },
  insufficient_scope: { code: 'insufficient_scope', reason: 'scope', error: ', error="insufficient_scope"' },
  issuer_unavailable: { code: 'issuer_unavailable', reason: 'issuer', error: undefined }
} as const

export type Refusal = keyof typeof REFUSALS
export type RefusalReason = typeof REFUSALS[Refusal]['reason']

/**
 * Makes the answer to a refused caller.
 * @param metadata address of the protected resource metadata; undefined without issuers
 * @param scope that the route needs
 */
export function refuse (refusal: Refusal, metadata: string | undefined, scope: string): HttpProblem {
  const { code, error } = REFUSALS[refusal]
  if (error === undefined) return new HttpProblem(code)
  const lacksScope = code === 'insufficient_scope'
  const detail = lacksScope ? `This route needs the scope ${scope}; ask for a token with that scope` : undefined
  const resource = metadata === undefined ? '' : `, resource_metadata="${metadata}"`
  const wanted = lacksScope || metadata !== undefined ? `, scope="${scope}"` : ''
  return new HttpProblem(code, detail, { 'www-authenticate': `Bearer realm="skillserve"${resource}${error}${wanted}` })
}

/** The address of the metadata of `/mcp`: the path of the resource follows that of the document (RFC 9728 §3.1). */
export function metadataUrl (publicUrl: string): string {
  const { origin, pathname } = new URL(`${publicUrl}/mcp`)
  return `${origin}${METADATA_PATH}${pathname}`
}

/** Adds routes for the protected resource metadata (RFC 9728) at each address that clients try. */
export function addMetadata (
  app: FastifyInstance, basePath: string, publicUrl: string, issuers: () => readonly IssuerEntry[]
): void {
  const resource = `${publicUrl}/mcp`
  const { pathname } = new URL(metadataUrl(publicUrl))
  const below = `${basePath}${METADATA_PATH}`
  for (const path of new Set([METADATA_PATH, pathname, below, `${below}/mcp`])) {
    // Open: clients read it before they can log in.
    app.get(path, { config: { isOpen: true }, schema: { hide: true } }, async (_request, reply) => {
      const servers = issuers().map(({ issuer }) => issuer)
      if (servers.length === 0) throw new HttpProblem('route_not_found')
      reply.headers({ 'cache-control': 'public, max-age=300', 'access-control-allow-origin': '*' })
      return {
        resource,
        authorization_servers: servers,
        scopes_supported: [READ_SCOPE],
        bearer_methods_supported: ['header'],
        resource_name: 'skillserve'
      }
    })
  }
}
