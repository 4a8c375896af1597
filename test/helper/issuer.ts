import type { RequestListener } from 'node:http'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { Test } from 'tap'
import { Provider } from 'oidc-provider'
import { startServer } from './fault-server.ts'

export const AUDIENCE = 'https://skills.example/mcp'

export interface TestIssuer {
  readonly url: string
  /** Paths of the requests that it received. */
  requests: number
  /** Replaces its answers. */
  answer: RequestListener | undefined
  /** Signs claims; `null` removes a claim, and `undefined` a field of the header. */
  sign (claims?: Readonly<Record<string, unknown>>,
    header?: Readonly<Record<string, string | undefined>>): Promise<string>
  /** Signs with another key from now on, and publishes only that one. */
  rotate (kid: string): Promise<void>
  /** Closes its port. */
  stop (): void
}

/** Starts an issuer of tokens with one key; the teardown of the test closes it. */
export async function startIssuer (t: Test): Promise<TestIssuer> {
  const makeKey = async (kid: string) => {
    const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
    return { kid, privateKey, jwk: { ...await exportJWK(publicKey), kid, alg: 'ES256', use: 'sig' } }
  }
  let key = await makeKey('k1')
  const server = await startServer(t, (request, response) => {
    issuer.requests++
    if (issuer.answer !== undefined) return issuer.answer(request, response)
    response.setHeader('content-type', 'application/json')
    if (request.url === '/keys') response.end(JSON.stringify({ keys: [key.jwk] }))
    else if (request.url === '/.well-known/openid-configuration') {
      response.end(
        JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/keys` }))
    } else response.writeHead(404).end()
  })
  const issuer: TestIssuer = {
    url: server.url,
    requests: 0,
    answer: undefined,
    async sign (claims = {}, header = {}) {
      const now = Math.floor(Date.now() / 1_000)
      const all = {
        iss: issuer.url,
        aud: AUDIENCE,
        sub: 'ann',
        exp: now + 600,
        iat: now,
        scope: 'openid skills:read',
        groups: ['docs'],
        ...claims
      }
      return await new SignJWT(Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null)))
        .setProtectedHeader({ alg: 'ES256', kid: key.kid, typ: 'at+jwt', ...header }).sign(key.privateKey)
    },
    async rotate (kid) { key = await makeKey(kid) },
    stop: server.close
  }
  return issuer
}

const MAX_HOPS = 12

/**
 * `oidc-provider` with dynamic registration, PKCE, resource indicators (RFC 8707) and JWT access tokens; the test's
 * teardown closes it.
 */
export async function startAuthorizationServer (t: Test, { resource, groups }: {
  readonly resource: () => string
  readonly groups: readonly string[]
}) {
  const server = await startServer(t, () => {})
  const issuer = server.url
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...await exportJWK(privateKey), kid: 'k1', alg: 'ES256', use: 'sig' }] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    cookies: { keys: ['a key of this test'] },
    scopes: ['openid', 'skills:read'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, indicator) => {
          if (indicator !== resource()) throw new Error(`no resource here: ${indicator}`)
          return {
            scope: 'skills:read', audience: indicator, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'ES256' } }
          }
        }
      }
    },
    extraTokenClaims: () => ({ groups: [...groups] }),
    findAccount: (_context, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    clients: [{
      client_id: 'machine',
      client_secret: 'a secret of this test',
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: []
    }]
  })
  const handle = provider.callback()
  /** Method and path of each request, in order. */
  const requests: string[] = []
  server.answer = (request, response) => {
    requests.push(`${request.method} ${request.url?.split('?')[0]}`)
    const interact = async () => {
      if (request.url?.startsWith('/interaction/') !== true) return await handle(request, response)
      const { prompt, params, session } = await provider.interactionDetails(request, response)
      if (prompt.name === 'login') {
        return await provider.interactionFinished(request, response, { login: { accountId: 'ann' } })
      }
      const grant = new provider.Grant({ accountId: session?.accountId ?? '', clientId: String(params['client_id']) })
      grant.addResourceScope(resource(), 'skills:read')
      grant.addOIDCScope('openid skills:read')
      return await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } },
        { mergeWithLastSubmission: true })
    }
    interact().catch((error: unknown) => { response.writeHead(500).end(String(error)) })
  }

  /** Follows redirects from an authorization request to the client's address, as a browser does whose user consents. */
  async function authorize (from: URL): Promise<URL> {
    const cookies = new Map<string, string>()
    let url = from
    for (let hops = 0; url.origin === issuer; hops++) {
      if (hops === MAX_HOPS) throw new Error('the login goes round in circles')
      const response = await fetch(url,
        { redirect: 'manual', headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') } })
      for (const line of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
        if (value === '') cookies.delete(name)
        else cookies.set(name, value)
      }
      const location = response.headers.get('location')
      if (location === null) throw new Error(`${url.pathname} answered ${response.status}: ${await response.text()}`)
      url = new URL(location, url)
    }
    return url
  }

  return { issuer, requests, authorize }
}
