import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { bearer, buildGuarded, type GuardedService } from '../helper/guarded.ts'
import { AUDIENCE, startIssuer, type TestIssuer } from '../helper/issuer.ts'
import { skill, until } from '../helper/skills.ts'

function service (t: Test, issuer: TestIssuer, fields = ''): Promise<GuardedService> {
  return buildGuarded(t, {
    roots: { docs: { guide: skill('guide') }, ops: { pager: skill('pager') } },
    access: `issuers:\n  - { issuer: ${issuer.url}, audiences: [${AUDIENCE}]${fields} }\nrules:\n  - { groups: [docs], roots: [docs] }\n  - { groups: [ops], roots: [ops] }\n`,
    publicUrl: 'https://skills.example'
  })
}

t.test('K62: an access token of an issuer is good for its groups', async (t) => {
  const issuer = await startIssuer(t)
  const { get } = await service(t, issuer, ', groups_claim: realm_access.roles')
  for (const [claims, skills] of [
    [{ realm_access: { roles: ['docs'] } }, ['guide']],
    [{ realm_access: { roles: ['docs', 'ops'] }, aud: ['other', `${AUDIENCE}/`] }, ['guide', 'pager']],
    [{ 'realm_access.roles': ['ops'], scope: null, scp: ['skills:read'] }, ['pager']],
    [{ _claim_names: { groups: 'src1' } }, []]
  ] as const) {
    const response = await get('/skills', await issuer.sign(claims))
    t.equal(response.status, 200, JSON.stringify(claims))
    t.strictSame(await response.json(), { skills })
  }
  const refused = await get('/skills', await issuer.sign({ scope: 'openid' }))
  t.equal(refused.status, 403)
  t.equal(refused.headers.get('www-authenticate'),
    'Bearer realm="skillserve", resource_metadata="https://skills.example/.well-known/oauth-protected-resource/mcp", error="insufficient_scope", scope="skills:read"')
})

t.test('K62: groups may have the names that directories give them', async (t) => {
  const issuer = await startIssuer(t)
  const { get } = await buildGuarded(t, {
    roots: { docs: { guide: skill('guide') }, ops: { pager: skill('pager') } },
    access: `issuers:\n  - { issuer: ${issuer.url}, audiences: [${AUDIENCE}] }\nrules:\n  - { groups: [Platform Team (Köln)], roots: [docs] }\n  - { groups: [/ops & co's], roots: [ops] }\n`
  })
  for (const [group, skills] of [['Platform Team (Köln)', ['guide']], ["/ops & co's", ['pager']], ['Platform', []]] as const) {
    t.strictSame(await (await get('/skills', await issuer.sign({ groups: [group] }))).json(), { skills })
  }
})

t.test('K62: every token that is not an access token for this service is refused', async (t) => {
  const issuer = await startIssuer(t)
  const other = await startIssuer(t)
  const { get, refusals } = await service(t, issuer)
  const now = Math.floor(Date.now() / 1_000)
  const good = await issuer.sign()
  t.equal((await get('/skills', good)).status, 200)
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const [head = '', payload = '', signature = ''] = good.split('.')
  const { publicKey } = await generateKeyPair('ES256', { extractable: true })
  const hmac = await new SignJWT({ iss: issuer.url, aud: AUDIENCE, sub: 'ann', exp: now + 600, scope: 'skills:read' })
    .setProtectedHeader({ alg: 'HS256', kid: 'k1' }).sign(Buffer.from(JSON.stringify(await exportJWK(publicKey))))
  for (const [label, token, code = 'invalid_token'] of [
    ['another key', await other.sign({ iss: issuer.url })],
    ['another issuer', await other.sign()],
    ['no algorithm', `${encode({ alg: 'none', typ: 'at+jwt' })}.${payload}.`],
    ['the public key as a secret', hmac],
    ['another payload', `${head}.${encode({ iss: issuer.url, aud: AUDIENCE, sub: 'root', exp: now + 600 })}.${signature}`],
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
    ['another type', await issuer.sign({}, { typ: 'logout+jwt' })]
  ] as const) {
    const response = await get('/skills', token)
    t.equal(response.status, 401, label)
    t.match(await response.json(), { code }, label)
    t.match(response.headers.get('www-authenticate'), 'resource_metadata="https://skills.example/.well-known/oauth-protected-resource/mcp", scope="skills:read"')
  }
  t.match(refusals, new Map([['missing', 0], ['audience', 1], ['expired', 1]]), 'as metrics count them')
})

t.test('K62: the type of an access token has no case, and its audience may have a fragment and one slash', async (t) => {
  const issuer = await startIssuer(t)
  const { get } = await service(t, issuer)
  for (const typ of ['AT+JWT', 'application/at+jwt', 'JWT', undefined]) t.equal((await get('/skills', await issuer.sign({}, { typ }))).status, 200, String(typ))
  for (const [end, status] of [['#part', 200], ['/#part', 200], ['//', 401], ['?x', 401]] as const) t.equal((await get('/skills', await issuer.sign({ aud: AUDIENCE + end }))).status, status, end)
})

t.test('K62: an issuer has its own algorithms and clock tolerance, by default 30 s', async (t) => {
  const issuer = await startIssuer(t)
  const now = Math.floor(Date.now() / 1_000)
  const tokens = await Promise.all([{}, { exp: now - 15 }, { iat: now + 15 }, { nbf: now + 15 }].map((claims) => issuer.sign(claims)))
  for (const [fields, ...statuses] of [
    ['', 200, 200, 200, 200],
    [', clock_tolerance: 0', 200, 401, 401, 401],
    [', algorithms: [RS256, EdDSA]', 401, 401, 401, 401]
  ] as const) {
    const { get } = await service(t, issuer, fields)
    t.strictSame(await Promise.all(tokens.map(async (token) => (await get('/skills', token)).status)), statuses, fields)
  }
})

t.test('K62: an issuer gives all its callers groups and scopes, and a machine is called by its client', async (t) => {
  const issuer = await startIssuer(t)
  const { get, logText } = await service(t, issuer, ', groups: [ops], scopes: [skills:read]')
  for (const [name, claims] of [['ann', {}], ['ci', { sub: null, client_id: 'ci' }], ['web', { sub: null, azp: 'web' }]] as const) {
    t.strictSame(await (await get('/skills', await issuer.sign({ scope: 'openid', ...claims }))).json(), { skills: ['guide', 'pager'] })
    await until(() => logText().includes(`"principal":"${name}"`))
  }
})

t.test('K62: a token of Keycloak says what it is; one that is refused leaves a line that says why, and never the token', async (t) => {
  const issuer = await startIssuer(t)
  const { get, logText } = await service(t, issuer)
  t.equal((await get('/skills', await issuer.sign({ typ: 'Bearer', nonce: 'n' }, { typ: 'JWT' }))).status, 200)
  for (const [token, reason] of [
    [await issuer.sign({ typ: 'ID' }, { typ: 'JWT' }), 'it is an ID token'],
    [await issuer.sign({ nonce: 'n' }, { typ: 'JWT' }), 'it is an ID token'],
    [await issuer.sign({ aud: 'other' }), 'its audience is not in the list of audiences'],
    [await issuer.sign({ exp: 1 }), 'it has expired'],
    [`${(await issuer.sign()).slice(0, -8)}AAAAAAAA`, 'signature verification failed']
  ] as const) {
    t.equal((await get('/skills', token)).status, 401)
    await until(() => logText().includes(`"reason":"${reason}"`))
    t.notMatch(logText(), token.slice(-20))
  }
})

t.test('K62: the metadata lie at both paths, and are public', async (t) => {
  const issuer = await startIssuer(t)
  const { get } = await service(t, issuer)
  for (const path of ['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp']) {
    const response = await get(path)
    t.strictSame(await response.json(), {
      resource: AUDIENCE, authorization_servers: [issuer.url], scopes_supported: ['skills:read'], bearer_methods_supported: ['header'], resource_name: 'skillserve'
    })
    t.equal(response.headers.get('cache-control'), 'public, max-age=300')
  }
  for (const token of [await issuer.sign(), 'unknown']) {
    t.equal((await get('/.well-known/oauth-protected-resource', token)).headers.get('cache-control'), 'public, max-age=300', 'the same for everybody')
  }
  t.equal((await get('/.well-known/oauth-authorization-server')).status, 404)
})

t.test('K62: below a path prefix, the metadata lie wherever clients look for them, for every page', async (t) => {
  const { get, setAccess } = await buildGuarded(t, {
    roots: { docs: { guide: skill('guide') } }, access: 'issuers:\n  - { issuer: https://id.example }\n', basePath: '/team', publicUrl: 'https://skills.example/team'
  })
  const challenge = (await get('/team/skills')).headers.get('www-authenticate') ?? ''
  const [, told = ''] = /resource_metadata="https:\/\/skills\.example([^"]+)"/.exec(challenge) ?? []
  t.equal(told, '/.well-known/oauth-protected-resource/team/mcp')
  for (const path of [told, '/.well-known/oauth-protected-resource', '/team/.well-known/oauth-protected-resource', '/team/.well-known/oauth-protected-resource/mcp']) {
    const response = await get(path)
    t.match(await response.json(), { resource: 'https://skills.example/team/mcp' }, path)
    t.equal(response.headers.get('access-control-allow-origin'), '*')
  }
  await setAccess('tokens: []\n')
  t.equal((await get(told)).status, 404, 'K60: no more of it without issuers')
  t.equal((await get('/team/skills')).headers.get('www-authenticate'), 'Bearer realm="skillserve"')
})

t.test('K62: tokens are in no log line', async (t) => {
  const issuer = await startIssuer(t)
  const { get, logText } = await service(t, issuer)
  const token = await issuer.sign()
  await get('/skills', token)
  await get('/skills', `${token.slice(0, -4)}AAAA`)
  t.notMatch(logText(), token.slice(0, 30))
  t.ok(bearer(token))
})

t.test('K62: a token without a key id is good with any key of its issuer, and with no other', async (t) => {
  const [first, second, other] = [await startIssuer(t), await startIssuer(t), await startIssuer(t)]
  const keysOf = async ({ url }: TestIssuer) => (await (await fetch(`${url}/keys`)).json() as { readonly keys: readonly object[] }).keys
  const keys = [...await keysOf(first), ...await keysOf(second)]
  first.answer = (request, response) => { response.end(JSON.stringify(request.url === '/keys' ? { keys } : { issuer: first.url, jwks_uri: `${first.url}/keys` })) }
  const { get } = await service(t, first)
  const sign = (issuer: TestIssuer, claims = {}) => issuer.sign({ iss: first.url, ...claims }, { kid: undefined })
  for (const issuer of [first, second]) t.equal((await get('/skills', await sign(issuer))).status, 200)
  for (const [token, code] of [
    [await sign(other), 'invalid_token'],
    [await sign(second, { aud: 'https://other.example/mcp' }), 'invalid_token'],
    [await sign(second, { exp: 1 }), 'token_expired']
  ] as const) {
    const response = await get('/skills', token)
    t.match([response.status, await response.json()], [401, { code }])
  }
})

for (const alg of ['EdDSA', 'Ed25519']) {
  t.test(`K62: Ed25519 signatures are taken by the name ${alg}`, async (t) => {
    const issuer = await startIssuer(t)
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
    const key = { ...await exportJWK(publicKey), kid: 'ed', alg }
    issuer.answer = (request, response) => { response.end(JSON.stringify(request.url === '/keys' ? { keys: [key] } : { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` })) }
    const token = await new SignJWT({ iss: issuer.url, aud: AUDIENCE, sub: 'ann', exp: Math.floor(Date.now() / 1_000) + 600, scope: 'skills:read', groups: ['docs'] })
      .setProtectedHeader({ alg, kid: 'ed', typ: 'at+jwt' }).sign(privateKey)
    for (const fields of ['', `, algorithms: [${alg}]`]) t.equal((await (await service(t, issuer, fields)).get('/skills', token)).status, 200, fields)
  })
}
