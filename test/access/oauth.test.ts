import {
  Client, ClientCredentialsProvider, type OAuthClientProvider, type OAuthDiscoveryState, type StoredOAuthClientInformation, type StoredOAuthTokens, StreamableHTTPClientTransport, UnauthorizedError
} from '@modelcontextprotocol/client'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import t, { type Test } from 'tap'
import { type AuthorizationServer, startAuthorizationServer } from '../helper/authorization-server.ts'
import { buildGuarded, type GuardedService } from '../helper/guarded.ts'
import { ERAS, type Era } from '../helper/mcp.ts'
import { freePort } from '../helper/proxies.ts'
import { skill } from '../helper/skills.ts'

const CALLBACK = 'http://127.0.0.1:9/callback'

/** What a client of a person keeps between its requests. */
class PersonsClient implements OAuthClientProvider {
  authorization: URL | undefined
  #information: StoredOAuthClientInformation | undefined
  #tokens: StoredOAuthTokens | undefined
  #verifier = ''
  #discovered: OAuthDiscoveryState | undefined

  readonly redirectUrl = CALLBACK
  readonly clientMetadata = {
    client_name: 'test', redirect_uris: [CALLBACK], grant_types: ['authorization_code'], response_types: ['code'], token_endpoint_auth_method: 'none'
  }

  clientInformation () { return this.#information }
  saveClientInformation (information: StoredOAuthClientInformation) { this.#information = information }
  tokens () { return this.#tokens }
  saveTokens (tokens: StoredOAuthTokens) { this.#tokens = tokens }
  redirectToAuthorization (url: URL) { this.authorization = url }
  saveCodeVerifier (verifier: string) { this.#verifier = verifier }
  codeVerifier () { return this.#verifier }
  saveDiscoveryState (state: OAuthDiscoveryState) { this.#discovered = state }
  discoveryState () { return this.#discovered }
}

async function start (t: Test): Promise<{ readonly service: GuardedService, readonly server: AuthorizationServer }> {
  const port = await freePort()
  const publicUrl = `http://127.0.0.1:${port}`
  const server = await startAuthorizationServer(t, { resource: () => `${publicUrl}/mcp`, groups: ['docs'] })
  const service = await buildGuarded(t, {
    roots: { docs: { guide: skill('guide') }, ops: { pager: skill('pager') } },
    access: `issuers:\n  - { issuer: '${server.issuer}' }\nrules:\n  - { groups: [docs], roots: [docs] }\n  - { groups: [ops], roots: [ops] }\n`,
    publicUrl,
    port
  })
  return { service, server }
}

function clientOf (era: Era): Client {
  return new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: era } })
}

async function check (t: Test, client: Client): Promise<void> {
  const { resources } = await client.listResources()
  t.strictSame(resources.map(({ uri }) => uri).filter((uri) => /\/(?:guide|pager)\//.test(uri)), ['skill://guide/SKILL.md'], 'only what the groups in the token give')
  const { content } = await client.callTool({ name: 'list_skills', arguments: {} })
  t.match(content, [{ type: 'text', text: /guide/ }])
  t.notMatch(content, [{ text: /pager/ }])
}

for (const era of ERAS) {
  t.test(`K62: the official client's whole flow: 401, metadata, registration, login with PKCE, token, answers (${era})`, async (t) => {
    const { service, server } = await start(t)
    const url = new URL(`${service.url}/mcp`)
    const provider = new PersonsClient()
    const first = new StreamableHTTPClientTransport(url, { authProvider: provider })
    await t.rejects(clientOf(era).connect(first), UnauthorizedError)
    const { authorization } = provider
    if (authorization === undefined) throw new Error('the client has found no way to log in')
    t.equal(authorization.searchParams.get('resource'), url.href, 'RFC 8707')
    t.equal(authorization.searchParams.get('code_challenge_method'), 'S256')
    t.equal(authorization.searchParams.get('scope'), 'skills:read', 'as the challenge says')
    const callback = await server.authorize(authorization)
    t.ok(callback.href.startsWith(CALLBACK))
    await first.finishAuth(callback.searchParams)
    const client = clientOf(era)
    await client.connect(new StreamableHTTPClientTransport(url, { authProvider: provider }))
    t.teardown(() => client.close())
    await check(t, client)
    const token = provider.tokens()?.access_token ?? ''
    t.match(decodeProtectedHeader(token), { typ: 'at+jwt', alg: 'ES256' })
    t.match(decodeJwt(token), { iss: server.issuer, aud: url.href, sub: 'ann', scope: 'skills:read' })
    t.ok(server.requests.includes('POST /reg'), 'dynamic registration')
    t.equal((await service.get('/skills', token)).status, 200, 'the token is good at every door')
    t.notMatch(service.logText(), token.slice(0, 40))
  })
}

t.test('K62: a machine gets in with client credentials, in the same flow', async (t) => {
  const { service, server } = await start(t)
  const client = clientOf('auto')
  await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), {
    authProvider: new ClientCredentialsProvider({ clientId: 'machine', clientSecret: 'a secret of this test', scope: 'skills:read' })
  }))
  t.teardown(() => client.close())
  await check(t, client)
  t.match(service.logText(), /"principal":"machine"/)
  t.notOk(server.requests.some((request) => request.endsWith('/auth')))
})
