import type { RequestListener } from 'node:http'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { Test } from 'tap'
import { startServer } from './fault-server.ts'

export const AUDIENCE = 'https://skills.example/mcp'

export interface TestIssuer {
  readonly url: string
  /** Requests that it got. */
  requests: number
  /** Answers in place of its own. */
  answer: RequestListener | undefined
  /** Signs claims; `null` takes a claim away, and `undefined` a field of the header. */
  sign (claims?: Readonly<Record<string, unknown>>, header?: Readonly<Record<string, string | undefined>>): Promise<string>
  /** Signs with another key from now on, and no longer names the one before. */
  rotate (kid: string): Promise<void>
  /** Is no longer reached. */
  stop (): void
}

/** An issuer of tokens with one key; the test's teardown ends it. */
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
    else if (request.url === '/.well-known/openid-configuration') response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/keys` }))
    else response.writeHead(404).end()
  })
  const issuer: TestIssuer = {
    url: server.url,
    requests: 0,
    answer: undefined,
    async sign (claims = {}, header = {}) {
      const now = Math.floor(Date.now() / 1_000)
      const all = { iss: issuer.url, aud: AUDIENCE, sub: 'ann', exp: now + 600, iat: now, scope: 'openid skills:read', groups: ['docs'], ...claims }
      return await new SignJWT(Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null)))
        .setProtectedHeader({ alg: 'ES256', kid: key.kid, typ: 'at+jwt', ...header }).sign(key.privateKey)
    },
    async rotate (kid) { key = await makeKey(kid) },
    stop: server.close
  }
  return issuer
}
