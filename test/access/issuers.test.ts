import type { RequestListener } from 'node:http'
import {
  Client, ClientCredentialsProvider, type OAuthClientProvider, type OAuthDiscoveryState,
  type StoredOAuthClientInformation, type StoredOAuthTokens, StreamableHTTPClientTransport, UnauthorizedError
} from '@modelcontextprotocol/client'
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { IssuerKeys, IssuerUnavailable } from '../../src/access/issuer-keys.ts'
import { SILENT } from '../../src/core/shared/log.ts'
import { buildGuarded, newSecret } from '../helper/guarded.ts'
import { AUDIENCE, startAuthorizationServer, startIssuer, type TestIssuer } from '../helper/issuer.ts'
import { ERAS, type Era } from '../helper/mcp.ts'
import { freePort } from '../helper/proxies.ts'
import { skill, until } from '../helper/skills.ts'

const METADATA = '/.well-known/oauth-protected-resource'
const OPENID = '/.well-known/openid-configuration'
const OAUTH = '/.well-known/oauth-authorization-server'

const ann = newSecret('ann', 'groups: [docs]')

function roots () {
  return { docs: { guide: skill('guide') }, ops: { pager: skill('pager') } }
}

/** An access file with these issuers, each with fields of its own. */
function accessOf (issuers: ReadonlyArray<readonly [url: string, fields?: string]>): string {
  const entries = issuers.map(([url, fields = '']) => `  - { issuer: '${url}', audiences: ['${AUDIENCE}']${fields} }\n`)
  return `tokens:\n  - ${ann.entry}\nissuers:\n${entries.join('')}rules:
  - { groups: [docs, Platform Team (Köln)], roots: [docs] }\n  - { groups: [ops, "/ops & co's"], roots: [ops] }\n`
}

async function keysOf ({ url }: TestIssuer): Promise<readonly object[]> {
  return (await (await fetch(`${url}/keys`)).json() as { readonly keys: readonly object[] }).keys
}

// One service takes the tokens of issuers with different settings.
const start = () => startIssuer(t)
const [issuer, other, roles, strict, rsa] = [await start(), await start(), await start(), await start(), await start()]
const lavish = await start()
const service = await buildGuarded(t, {
  roots: roots(),
  access: accessOf([
    [issuer.url], [roles.url, ', groups_claim: realm_access.roles'], [strict.url, ', clock_tolerance: 0'],
    [rsa.url, ', algorithms: [RS256, EdDSA]'], [lavish.url, ', groups: [ops], scopes: [skills:read]']
  ]),
  publicUrl: 'https://skills.example'
})
const { get, logText, refusals } = service
// On a slow machine the first attempt to read keys may be too late.
for (const { sign } of [issuer, roles, strict, rsa, lavish]) {
  await until(async () => (await get('/skills', await sign())).status !== 503)
}

t.test('K62: an access token of an issuer is good for its groups, whatever directories call them', async (t) => {
  for (const [{ sign }, claims, skills, header] of [
    [roles, { realm_access: { roles: ['docs'] } }, ['guide']],
    [roles, { realm_access: { roles: ['docs', 'ops'] }, aud: ['other', `${AUDIENCE}/`] }, ['guide', 'pager']],
    [roles, { 'realm_access.roles': ['ops'], scope: null, scp: ['skills:read'] }, ['pager']],
    [roles, { _claim_names: { groups: 'src1' } }, []],
    [issuer, { groups: ['Platform Team (Köln)'] }, ['guide']],
    [issuer, { groups: ["/ops & co's"] }, ['pager']],
    [issuer, { groups: ['Platform'] }, []],
    [lavish, { scope: 'openid' }, ['guide', 'pager']],
    [lavish, { sub: null, client_id: 'ci' }, ['guide', 'pager']],
    [lavish, { sub: null, azp: 'web' }, ['guide', 'pager']],
    ...['AT+JWT', 'application/at+jwt', 'JWT', undefined].map((typ) => [issuer, {}, ['guide'], { typ }] as const),
    // Keycloak's tokens say in the payload what they are.
    [issuer, { typ: 'Bearer', nonce: 'n' }, ['guide'], { typ: 'JWT' }]
  ] as const) {
    const response = await get('/skills', await sign(claims, header))
    t.strictSame([response.status, await response.json()], [200, { skills }], JSON.stringify([claims, header]))
  }
  for (const name of ['ann', 'ci', 'web']) await until(() => logText().includes(`"principal":"${name}"`))
  const refused = await get('/skills', await issuer.sign({ scope: 'openid' }))
  t.equal(refused.status, 403)
  t.equal(refused.headers.get('www-authenticate'), 'Bearer realm="skillserve", ' +
    `resource_metadata="https://skills.example${METADATA}/mcp", error="insufficient_scope", scope="skills:read"`)
})

t.test('K62: every token that is not an access token for this service is refused', async (t) => {
  const now = Math.floor(Date.now() / 1_000)
  const good = await issuer.sign()
  t.equal((await get('/skills', good)).status, 200)
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const [head = '', payload = '', signature = ''] = good.split('.')
  const [key = {}] = await keysOf(issuer)
  const hmac = await new SignJWT({ iss: issuer.url, aud: AUDIENCE, sub: 'ann', exp: now + 600, scope: 'skills:read' })
    .setProtectedHeader({ alg: 'HS256', kid: 'k1' }).sign(Buffer.from(JSON.stringify(key)))
  const [audience, expired] = [refusals.get('audience') ?? 0, refusals.get('expired') ?? 0]
  for (const [label, token, code = 'invalid_token'] of [
    ['another key', await other.sign({ iss: issuer.url })],
    ['another issuer', await other.sign()],
    ['no algorithm', `${encode({ alg: 'none', typ: 'at+jwt' })}.${payload}.`],
    ['the public key as a secret', hmac],
    ['another payload', `${head}.${encode({ ...decodeJwt(good), sub: 'root' })}.${signature}`],
    ['another audience', await issuer.sign({ aud: 'https://other.example/mcp' })],
    ['no audience', await issuer.sign({ aud: null })],
    ['the issuer with a slash', await issuer.sign({ iss: `${issuer.url}/` })],
    ['expired', await issuer.sign({ exp: now - 120 }), 'token_expired'],
    ['no expiry', await issuer.sign({ exp: null })],
    ['not yet valid', await issuer.sign({ nbf: now + 120 })],
    ['issued in the future', await issuer.sign({ iat: now + 120 })],
    ['an ID token by its nonce', await issuer.sign({ nonce: 'n' }, { typ: 'JWT' })],
    ['an ID token by its hash', await issuer.sign({ at_hash: 'n' }, { typ: 'JWT' })],
    ['an ID token by the hash of its code', await issuer.sign({ c_hash: 'n' }, { typ: 'JWT' })],
    ['an ID token by its type', await issuer.sign({ typ: 'ID' }, { typ: 'JWT' })],
    ['an unknown key', await issuer.sign({}, { kid: 'k2' })],
    ['another type', await issuer.sign({}, { typ: 'logout+jwt' })],
    ['an algorithm that this issuer has not', await rsa.sign()],
    ['two slashes after the audience', await issuer.sign({ aud: `${AUDIENCE}//` })],
    ['a part of the audience', await issuer.sign({ aud: `${AUDIENCE}#part` })]
  ] as const) {
    const response = await get('/skills', token)
    t.strictSame([response.status, (await response.json() as { code: string }).code], [401, code], label)
    const challenge = response.headers.get('www-authenticate')
    t.match(challenge, `resource_metadata="https://skills.example${METADATA}/mcp", error="invalid_token"`)
    t.match(challenge, /, scope="skills:read"$/)
  }
  t.match(refusals, new Map([['audience', audience + 4], ['expired', expired + 1]]), 'as metrics count them')
})

t.test('K62: clocks may differ by 30 s, or as the access file says', async (t) => {
  const now = Math.floor(Date.now() / 1_000)
  for (const claims of [{ exp: now - 15 }, { iat: now + 15 }, { nbf: now + 15 }]) {
    t.equal((await get('/skills', await issuer.sign(claims))).status, 200, JSON.stringify(claims))
    t.equal((await get('/skills', await strict.sign(claims))).status, 401, JSON.stringify(claims))
  }
})

t.test('K62: a refused token leaves a line that says why, and no part of itself', async (t) => {
  for (const [token, reason] of [
    [await issuer.sign({ typ: 'ID' }, { typ: 'JWT' }), 'it is an ID token'],
    [await issuer.sign({ aud: 'other' }), 'audience "other" is not in the list of audiences'],
    [await issuer.sign({ exp: 1 }), 'it has expired'],
    [`${(await issuer.sign()).slice(0, -8)}AAAAAAAA`, 'signature verification failed']
  ] as const) {
    t.equal((await get('/skills', token)).status, 401)
    await until(() => logText().includes(`"reason":${JSON.stringify(reason)}`))
    for (const part of [token.slice(0, 30), token.slice(-20)]) t.notMatch(logText(), part)
  }
})

t.test('K62: the metadata lie at both paths, are public, and go with the last issuer', async (t) => {
  for (const path of [METADATA, `${METADATA}/mcp`]) {
    for (const token of [undefined, await issuer.sign(), 'unknown']) {
      const response = await get(path, token)
      t.match(await response.json(), { resource: AUDIENCE, scopes_supported: ['skills:read'] })
      t.equal(response.headers.get('cache-control'), 'public, max-age=300', 'the same for everybody')
      t.equal(response.headers.get('access-control-allow-origin'), '*')
    }
  }
  t.equal((await get(OAUTH)).status, 404)
  const access = 'issuers:\n  - { issuer: https://id.example }\n'
  const place = { basePath: '/team', publicUrl: 'https://skills.example/team' }
  const below = await buildGuarded(t, { roots: roots(), access, ...place })
  const challenge = (await below.get('/team/skills')).headers.get('www-authenticate') ?? ''
  t.match(challenge, `resource_metadata="https://skills.example${METADATA}/team/mcp"`)
  for (const path of [`${METADATA}/team/mcp`, METADATA, `/team${METADATA}`, `/team${METADATA}/mcp`]) {
    t.match(await (await below.get(path)).json(), { resource: 'https://skills.example/team/mcp' }, path)
  }
  await below.setAccess('tokens: []\n')
  for (const name of ['oauth-authorization-server', 'openid-configuration', 'oauth-protected-resource']) {
    for (const path of [`/.well-known/${name}`, `/.well-known/${name}/team/mcp`, `/team/.well-known/${name}`]) {
      const response = await below.get(path)
      t.strictSame([response.status, response.headers.get('content-type')], [404, 'application/problem+json'], path)
    }
  }
  t.equal((await below.get('/team/mcp/.well-known/openid-configuration')).status, 404)
  t.equal((await below.get('/team/skills')).headers.get('www-authenticate'), 'Bearer realm="skillserve"')
  const rest = '/.well-known/oauth-x'
  for (const path of [`/team/skills?x=${rest}`, `/team/skills/guide/files${rest}`, '/nosuch']) {
    t.equal((await below.get(path)).status, 401, path)
  }
})

/** What an issuer answers that is no good. */
const FAULTS: Readonly<Record<string, RequestListener>> = {
  'an error': (_, response) => { response.writeHead(500).end('{}') },
  'a redirect': (request, response) => {
    response.writeHead(302, { location: `http://${request.headers.host}/elsewhere` }).end()
  },
  'a page': (_, response) => { response.end('<html>') },
  null: (_, response) => { response.end('null') },
  'another issuer': ({ headers: { host } }, response) => {
    response.end(JSON.stringify({ issuer: 'https://other.example', jwks_uri: `http://${host}/keys` }))
  },
  'no address': ({ headers: { host } }, response) => {
    response.end(JSON.stringify({ issuer: `http://${host}`, jwks_uri: 'keys' }))
  },
  'no key set': ({ url, headers: { host } }, response) => {
    const metadata = { issuer: `http://${host}`, jwks_uri: `http://${host}/keys` }
    response.end(url === '/keys' ? '{"keys":[null]}' : JSON.stringify(metadata))
  },
  nothing: (request) => { request.socket.destroy() }
}

t.test('K62: an issuer whose answers are no good lets nobody in, is logged once, and delays no other', async (t) => {
  const bad = await Promise.all(Object.entries(FAULTS).map(async ([label, answer]) => {
    const each = await startIssuer(t)
    each.answer = answer
    return { label, ...each }
  }))
  const [hanging, good] = [await startIssuer(t), await startIssuer(t)]
  hanging.answer = () => {}
  const urls = [hanging.url, ...bad.map(({ url }) => url), good.url]
  const { get, logText } = await buildGuarded(t, { roots: roots(), access: accessOf(urls.map((url) => [url])) })
  const waiting = get('/skills', await hanging.sign())
  for (const { label, sign, url } of bad) {
    for (const sub of ['ann', 'bob']) {
      const response = await get('/skills', await sign({ sub }))
      t.match([response.status, await response.json()], [503, { code: 'issuer_unavailable' }], label)
    }
    const lines = logText().split('\n').filter((line) => line.includes('cannot read the keys') && line.includes(url))
    t.equal(lines.length, 1, label)
  }
  await until(async () => (await get('/skills', await good.sign())).status === 200)
  t.equal((await get('/skills', ann.text)).status, 200)
  t.equal((await get('/readyz')).status, 200)
  hanging.stop()
  t.equal((await waiting).status, 503)
})

t.test('K62: tokens that come together share one attempt to read keys, repeated after a pause', async (t) => {
  let [time, attempts] = [0, 0]
  t.intercept(performance, 'now', { value: () => time })
  const entry = { issuer: 'https://id.example', jwks_uri: 'https://id.example/keys' }
  const keys = new IssuerKeys(entry, SILENT, async () => {
    attempts++
    throw new Error('unreachable')
  })
  for (const { passed, expected } of [
    { passed: 0, expected: 1 }, { passed: 4_999, expected: 1 }, { passed: 1, expected: 2 }, { passed: 1, expected: 2 }
  ]) {
    time += passed
    const tokens = Array.from({ length: 20 }, () => keys.find({ alg: 'RS256' }, { payload: '', signature: '' }))
    const results = await Promise.allSettled(tokens)
    t.ok(results.every((each) => each.status === 'rejected' && each.reason instanceof IssuerUnavailable))
    t.equal(attempts, expected, `after ${time} ms`)
  }
})

t.test('K62: the address of keys is found by the metadata, wherever the issuer has them, or by the file', async (t) => {
  const keys = await startIssuer(t)
  const asked: string[] = []
  const at = async (path: string, place: string | undefined) => {
    const each = await startIssuer(t)
    const url = `${each.url}${path}`
    each.answer = (request, response) => {
      asked.push(`${path} ${request.url}`)
      if (request.url === place) response.end(JSON.stringify({ issuer: url, jwks_uri: `${keys.url}/keys` }))
      // One that does not answer keeps nobody from the others.
      else if (place !== OAUTH) response.writeHead(404).end()
    }
    return url
  }
  const found = [
    await at('', OAUTH), await at('/tenant', `${OAUTH}/tenant`), await at('/realms/a%20b/', `${OAUTH}/realms/a%20b`),
    await at('/last', `${OPENID}/last`)
  ]
  const nowhere = await at('/', undefined)
  const own = await startIssuer(t)
  const answer = JSON.stringify({ keys: await keysOf(keys) })
  own.answer = (request, response) => {
    asked.push(`named ${request.url}`)
    response.end(answer)
  }
  const { get } = await buildGuarded(t, {
    roots: roots(),
    access: accessOf([
      ...[...found, nowhere].map((url) => [url] as const), [own.url, `, jwks_uri: '${own.url}/keys?appid=1'`]
    ])
  })
  for (const iss of [...found, own.url]) {
    await until(async () => (await get('/skills', await keys.sign({ iss }))).status === 200)
  }
  t.equal((await get('/skills', await keys.sign({ iss: nowhere }))).status, 503)
  t.strictSame(new Set(asked.filter((line) => line.startsWith('/ '))), new Set([`/ ${OPENID}`, `/ ${OAUTH}`]))
  const named = asked.filter((line) => line.startsWith('named'))
  t.strictSame(new Set(named), new Set(['named /keys?appid=1']), 'as Entra has it')
})

t.test('K62: keys of an issuer at https:// are never read over http://, whatever its metadata say', async (t) => {
  const issuer = 'https://id.example'
  for (const uri of ['http://id.example/keys', 'data:application/json,{"keys":[]}']) {
    const asked: string[] = []
    const readJson = async (url: string) => {
      asked.push(url)
      return { issuer, jwks_uri: uri }
    }
    const reasons: unknown[] = []
    const keys = new IssuerKeys({ issuer }, { info () {}, warn (details) { reasons.push(details) } }, readJson)
    await t.rejects(async () => await keys.find({ alg: 'RS256' }, { payload: '', signature: '' }))
    t.strictSame(asked, [`${issuer}${OPENID}`, `${issuer}${OAUTH}`])
    t.match(reasons, [{ reason: /is not an https:\/\/ address$/ }])
  }
})

t.test('K62: the log warns of keys that anyone on the way to an issuer can replace', async (t) => {
  for (const [isWarned, entry] of [
    [true, { issuer: 'http://id.example/realm' }],
    [true, { issuer: 'https://id.example', jwks_uri: 'http://id.example:8080/keys' }],
    [false, { issuer: 'http://id.example', jwks_uri: 'https://id.example/keys' }],
    [false, { issuer: 'http://[::1]:9000/realm' }],
    [false, { issuer: 'http://localhost' }]
  ] as const) {
    const warnings: string[] = []
    const log = { info () {}, warn (_details: object, message: string) { warnings.push(message) } }
    const keys = new IssuerKeys(entry, log, () => Promise.reject(new Error('there is no network')))
    await t.rejects(keys.find.reload())
    t.equal(warnings.some((message) => message.includes('can replace its keys')), isWarned, JSON.stringify(entry))
  }
})

/** A service that has read the keys of an issuer. */
async function startWithKeys (t: Test) {
  const issuer = await startIssuer(t)
  const service = await buildGuarded(t, { roots: roots(), access: accessOf([[issuer.url]]) })
  const statusOf = async (claims = {}, header = {}) =>
    (await service.get('/skills', await issuer.sign(claims, header))).status
  await until(async () => await statusOf() === 200)
  let skew = 0
  const now = Date.now.bind(Date)
  t.intercept(Date, 'now', { value: () => now() + skew })
  /** Passes the time in which keys are not read again. */
  const pass = (): void => { skew += 31_000 }
  return { ...service, issuer, statusOf, pass }
}

t.test('K62: new keys are read after a pause, and keys that were read serve while the issuer is away', async (t) => {
  const { issuer, get, setAccess, statusOf, pass } = await startWithKeys(t)
  const { requests } = issuer
  for (let round = 0; round < 20; round++) t.equal(await statusOf({}, { kid: `../../k${round}` }), 401)
  t.equal(issuer.requests, requests, 'invented key ids do not make the service ask')
  const old = await issuer.sign({ sub: 'bob' })
  await issuer.rotate('k2')
  pass()
  await until(async () => await statusOf() === 200)
  t.equal((await get('/skills', old)).status, 401)
  issuer.stop()
  t.equal(await statusOf({ sub: 'cy' }), 200)
  await setAccess(accessOf([[issuer.url, ', groups: [all]']]))
  t.equal(await statusOf({ sub: 'dee' }), 200, 'also when the access file changes')
})

/** Answers of an issuer that has its keys at `path`. */
function answersOf (url: string, path: string, keys: readonly object[]): RequestListener {
  return (request, response) => {
    const body = request.url === path ? { keys } : { issuer: url, jwks_uri: `${url}${path}` }
    if (request.url === path || request.url === OPENID) response.end(JSON.stringify(body))
    else response.writeHead(404).end()
  }
}

t.test('K62: keys that moved, or changed under the same id, lose no caller for more than a minute', async (t) => {
  const { issuer, statusOf, pass } = await startWithKeys(t)
  for (const [index, path] of ['/moved', '/moved', '/again'].entries()) {
    issuer.answer = undefined
    await issuer.rotate('k2')
    issuer.answer = answersOf(issuer.url, path, await keysOf(issuer))
    pass()
    await until(async () => await statusOf({ sub: `caller ${index}` }) === 200)
  }
})

t.test('K62: an empty or endless set of keys replaces no good one', async (t) => {
  const { issuer, logText, statusOf, pass } = await startWithKeys(t)
  pass()
  issuer.answer = answersOf(issuer.url, '/keys', [])
  t.equal(await statusOf({ sub: 'bob' }, { kid: 'unknown' }), 401, 'which asks for the keys')
  await until(() => logText().includes('the set of keys is empty'))
  t.equal(await statusOf({ sub: 'cy' }), 200)

  const large = await startIssuer(t)
  large.answer = answersOf(large.url, '/keys', [{ kty: 'EC', x: 'x'.repeat(2_000_000) }])
  const other = await buildGuarded(t, { roots: roots(), access: accessOf([[large.url]]) })
  const refused = await other.get('/skills', await large.sign())
  t.strictSame([refused.status, refused.headers.get('retry-after')], [503, '5'], 'a key set of 2 MB is not read')
})

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
    client_name: 'test',
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none'
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

t.test('K62: the official client\'s whole flow: 401, metadata, registration, login with PKCE, token', async (t) => {
  const port = await freePort()
  const publicUrl = `http://127.0.0.1:${port}`
  const server = await startAuthorizationServer(t, { resource: () => `${publicUrl}/mcp`, groups: ['docs'] })
  const access = accessOf([[server.issuer]]).replace(/, audiences: \[[^\]]*\]/, '')
  const { get, logText } = await buildGuarded(t, { roots: roots(), access, publicUrl, port })
  const url = new URL(`${publicUrl}/mcp`)
  const connect = async (authProvider: OAuthClientProvider, era: Era) => {
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: era } })
    const transport = new StreamableHTTPClientTransport(url, { authProvider })
    t.teardown(() => client.close())
    return { transport, connected: client.connect(transport).then(() => client) }
  }
  const check = async (client: Client) => {
    const { resources } = await client.listResources()
    const uris = resources.map(({ uri }) => uri).filter((uri) => /\/(?:guide|pager)\//.test(uri))
    t.strictSame(uris, ['skill://guide/SKILL.md'], 'only what the groups in the token give')
    const { content } = await client.callTool({ name: 'list_skills', arguments: {} })
    t.match(content, [{ type: 'text', text: /^(?!.*pager).*guide/ }])
  }
  const secret = 'a secret of this test'
  const machine = new ClientCredentialsProvider({ clientId: 'machine', clientSecret: secret, scope: 'skills:read' })
  await check(await (await connect(machine, 'auto')).connected)
  t.match(logText(), /"principal":"machine"/)
  t.notOk(server.requests.some((request) => request.endsWith('/auth')))
  for (const era of ERAS) {
    const provider = new PersonsClient()
    const { transport, connected } = await connect(provider, era)
    await t.rejects(connected, UnauthorizedError)
    const { authorization } = provider
    if (authorization === undefined) throw new Error('the client has found no way to log in')
    const asked = ['resource', 'code_challenge_method', 'scope'].map((name) => authorization.searchParams.get(name))
    t.strictSame(asked, [url.href, 'S256', 'skills:read'], 'RFC 8707, PKCE, and the scope of the challenge')
    const callback = await server.authorize(authorization)
    t.ok(callback.href.startsWith(CALLBACK))
    await transport.finishAuth(callback.searchParams)
    await check(await (await connect(provider, era)).connected)
    const token = provider.tokens()?.access_token ?? ''
    t.match(decodeProtectedHeader(token), { typ: 'at+jwt', alg: 'ES256' })
    t.match(decodeJwt(token), { iss: server.issuer, aud: url.href, sub: 'ann', scope: 'skills:read' })
    t.ok(server.requests.includes('POST /reg'), 'dynamic registration')
    t.equal((await get('/skills', token)).status, 200, 'the token is good for every API')
    t.notMatch(logText(), token.slice(0, 40))
  }
})
