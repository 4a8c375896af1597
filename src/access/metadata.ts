import type { FastifyInstance } from 'fastify'
import { HttpProblem } from '../http/problem.ts'
import { type IssuerEntry, READ_SCOPE } from './policy.ts'

const PATH = '/.well-known/oauth-protected-resource'

/** Where clients find the metadata of `/mcp`: the path of the resource behind that of the document (RFC 9728 §3.1). */
export function metadataUrl (publicUrl: string): string {
  const { origin, pathname } = new URL(`${publicUrl}/mcp`)
  return `${origin}${PATH}${pathname}`
}

/** Protected resource metadata (RFC 9728), at each address that clients try. 404 without issuers. */
export function addMetadata (
  app: FastifyInstance, basePath: string, publicUrl: string, issuers: () => readonly IssuerEntry[]
): void {
  const resource = `${publicUrl}/mcp`
  const { pathname } = new URL(metadataUrl(publicUrl))
  for (const path of new Set([PATH, pathname, `${basePath}${PATH}`, `${basePath}${PATH}/mcp`])) {
    // No client can log in without it.
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
