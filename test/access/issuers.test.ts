import type { RequestListener } from 'node:http'
import t, { type Test } from 'tap'
import { IssuerKeys } from '../../src/access/issuer-keys.ts'
import { buildGuarded, type GuardedService, newSecret } from '../helper/guarded.ts'
import { AUDIENCE, startIssuer, type TestIssuer } from '../helper/issuer.ts'
import { skill, until } from '../helper/skills.ts'

const ann = newSecret('ann', 'groups: [docs]')

function accessOf (issuer: TestIssuer, fields = ''): string {
  return `tokens:\n  - ${ann.entry}\nissuers:\n  - { issuer: '${issuer.url}', audiences: ['${AUDIENCE}']${fields} }\nrules:\n  - { groups: [docs], roots: [docs] }\n`
}

async function start (t: Test, issuer: TestIssuer): Promise<GuardedService> {
  return await buildGuarded(t, { roots: { docs: { guide: skill('guide') } }, access: accessOf(issuer) })
}

function count (text: string, part: string): number {
  return text.split(part).length - 1
}

t.test('K62: while the issuer is away, keys that were read serve, and go on serving when the access file changes', async (t) => {
  const issuer = await startIssuer(t)
  const service = await start(t, issuer)
  t.equal((await service.get('/skills', await issuer.sign())).status, 200)
  issuer.stop()
  t.equal((await service.get('/skills', await issuer.sign({ sub: 'bob' }))).status, 200)
  await service.setAccess(accessOf(issuer, ', groups: [all]'))
  t.equal((await service.get('/skills', await issuer.sign({ sub: 'cy' }))).status, 200)
})

t.test('K62: an issuer that hangs delays nobody but those whose tokens are of it', async (t) => {
  const issuer = await startIssuer(t)
  issuer.answer = () => {}
  const service = await start(t, issuer)
  await until(() => issuer.requests > 0)
  let isAnswered = false
  const waiting = Promise.all(Array.from({ length: 20 }, async (_, index) => {
    const { status } = await service.get('/skills', await issuer.sign({ sub: `s${index}` }))
    isAnswered = true
    return status
  }))
  for (let round = 0; round < 5; round++) t.equal((await service.get('/skills', ann.text)).status, 200)
  t.equal((await service.get('/skills')).status, 401)
  t.equal((await service.get('/readyz')).status, 200)
  t.notOk(isAnswered)
  issuer.stop()
  t.strictSame(new Set(await waiting), new Set([503]))
  t.ok(issuer.requests <= 3, `${issuer.requests} requests for 20 tokens`)
})

t.test('K62: an issuer that hangs delays no token of another issuer, in whatever order they are listed', async (t) => {
  const [hanging, good, last] = [await startIssuer(t), await startIssuer(t), await startIssuer(t)]
  hanging.answer = last.answer = () => {}
  const entryOf = ({ url }: TestIssuer) => `  - { issuer: '${url}', audiences: ['${AUDIENCE}'] }\n`
  const { get } = await buildGuarded(t, {
    roots: { docs: { guide: skill('guide') } },
    access: `issuers:\n${[hanging, good, last].map(entryOf).join('')}rules:\n  - { groups: [docs], roots: [docs] }\n`
  })
  const waiting = Promise.all([hanging, last].map(async (issuer) => (await get('/skills', await issuer.sign())).status))
  await until(() => hanging.requests > 0 && last.requests > 0)
  for (let round = 0; round < 3; round++) t.equal((await get('/skills', await good.sign({ sub: `s${round}` }))).status, 200)
  hanging.stop()
  last.stop()
  t.strictSame(await waiting, [503, 503])
})

const FAULTS: Readonly<Record<string, RequestListener>> = {
  'an error': (_, response) => { response.writeHead(500).end('{}') },
  'a redirect': (request, response) => { response.writeHead(302, { location: `http://${request.headers.host}/elsewhere` }).end() },
  'a page': (_, response) => { response.end('<html>') },
  null: (_, response) => { response.end('null') },
  'another issuer': (request, response) => { response.end(JSON.stringify({ issuer: 'https://other.example', jwks_uri: `http://${request.headers.host}/keys` })) },
  'no address': (request, response) => { response.end(JSON.stringify({ issuer: `http://${request.headers.host}`, jwks_uri: 'keys' })) },
  'no end': (_, response) => {
    const timer = setInterval(() => { response.write(' '.repeat(300_000)) }, 1)
    response.on('close', () => { clearInterval(timer) })
  },
  'no key set': (request, response) => {
    response.end(request.url === '/keys' ? '{"keys":[null]}' : JSON.stringify({ issuer: `http://${request.headers.host}`, jwks_uri: `http://${request.headers.host}/keys` }))
  }
}

for (const [label, answer] of Object.entries(FAULTS)) {
  t.test(`K62: an issuer that answers with ${label} lets nobody in, is logged once, and is not asked for each token`, async (t) => {
    const issuer = await startIssuer(t)
    issuer.answer = answer
    const { get, logText } = await start(t, issuer)
    for (let round = 0; round < 3; round++) {
      const response = await get('/skills', await issuer.sign({ sub: `s${round}` }))
      t.equal(response.status, 503)
      t.match(await response.json(), { code: 'issuer_unavailable' })
    }
    t.ok(issuer.requests <= 3, `${issuer.requests} requests`)
    t.equal(count(logText(), 'cannot read the keys of an issuer of tokens'), 1)
    t.equal((await get('/skills', ann.text)).status, 200)
  })
}

for (const path of ['/tenant', '/realms/a%20b/']) {
  t.test(`K62: metadata of the issuer ${path} are found before its path too, where RFC 8414 puts them`, async (t) => {
    const [keys, issuer] = [await startIssuer(t), await startIssuer(t)]
    const url = `${issuer.url}${path}`
    const bare = path.replace(/\/$/, '')
    issuer.answer = (request, response) => {
      if (request.url === `/.well-known/oauth-authorization-server${bare}`) response.end(JSON.stringify({ issuer: url, jwks_uri: `${keys.url}/keys` }))
      else response.writeHead(404).end()
    }
    const { get } = await start(t, { ...issuer, url })
    t.equal((await get('/skills', await keys.sign({ iss: url }))).status, 200)
  })
}

t.test('K62: metadata that OpenID Connect has put before the path of an issuer are found last', async (t) => {
  const [keys, issuer] = [await startIssuer(t), await startIssuer(t)]
  const url = `${issuer.url}/tenant`
  issuer.answer = (request, response) => {
    if (request.url === '/.well-known/openid-configuration/tenant') response.end(JSON.stringify({ issuer: url, jwks_uri: `${keys.url}/keys` }))
    else response.writeHead(404).end()
  }
  const { get } = await start(t, { ...issuer, url })
  t.equal((await get('/skills', await keys.sign({ iss: url }))).status, 200)
})

t.test('K62: the address of keys that a file names may have a query, as those of one application at Entra', async (t) => {
  const issuer = await startIssuer(t)
  const keys = await startIssuer(t)
  const asked: Array<string | undefined> = []
  issuer.answer = (request, response) => {
    asked.push(request.url)
    void fetch(`${keys.url}/keys`).then((answer) => answer.text()).then((text) => { response.end(text) })
  }
  const { get } = await buildGuarded(t, { roots: { docs: { guide: skill('guide') } }, access: accessOf(issuer, `, jwks_uri: '${issuer.url}/keys?appid=1'`) })
  t.equal((await get('/skills', await keys.sign({ iss: issuer.url }))).status, 200)
  t.strictSame(new Set(asked), new Set(['/keys?appid=1']))
})

t.test('K62: keys of an issuer at https:// are never read over http://, whatever its metadata say', async (t) => {
  const issuer = 'https://id.example'
  for (const uri of ['http://id.example/keys', 'data:application/json,{"keys":[]}']) {
    const asked = t.capture(globalThis, 'fetch', async () => Response.json({ issuer, jwks_uri: uri }))
    const reasons: unknown[] = []
    const keys = new IssuerKeys(issuer, undefined, { info () {}, warn (details) { reasons.push(details) } })
    t.teardown(() => { keys.close() })
    await t.rejects(async () => await keys.find({ alg: 'RS256' }, { payload: '', signature: '' }))
    t.strictSame(asked().map(({ args: [url] }) => url as unknown), ['openid-configuration', 'oauth-authorization-server'].map((name) => `${issuer}/.well-known/${name}`))
    t.match(reasons, [{ reason: /names keys at an address that is not https:\/\/$/ }])
  }
})

t.test('K62: an issuer without a path has its metadata at two addresses', async (t) => {
  const issuer = await startIssuer(t)
  const url = `${issuer.url}/`
  const asked: Array<string | undefined> = []
  issuer.answer = (request, response) => {
    asked.push(request.url)
    response.writeHead(404).end()
  }
  const { get } = await start(t, { ...issuer, url })
  t.equal((await get('/skills', await issuer.sign({ iss: url }))).status, 503)
  t.strictSame(asked, ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server'])
})

t.test('K62: an address of metadata that does not answer at all keeps nobody from the others', async (t) => {
  const [keys, issuer] = [await startIssuer(t), await startIssuer(t)]
  const asked: Array<string | undefined> = []
  issuer.answer = (request, response) => {
    asked.push(request.url)
    if (request.url === '/.well-known/oauth-authorization-server') response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: `${keys.url}/keys` }))
  }
  const { get } = await start(t, issuer)
  t.equal((await get('/skills', await keys.sign({ iss: issuer.url }))).status, 200)
  t.strictSame(new Set(asked), new Set(['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server']))
})

t.test('K62: an issuer that was never there is 503, and the service starts without it', async (t) => {
  const issuer = await startIssuer(t)
  issuer.stop()
  const { get, logText } = await start(t, issuer)
  for (let round = 0; round < 3; round++) t.equal((await get('/skills', await issuer.sign({ sub: `s${round}` }))).status, 503)
  t.equal(count(logText(), 'cannot read the keys of an issuer of tokens'), 1)
  t.equal((await get('/readyz')).status, 200)
})

t.test('K62: with new keys of the issuer, tokens of the old ones are refused', async (t) => {
  const issuer = await startIssuer(t)
  const { get } = await start(t, issuer)
  t.equal((await get('/skills', await issuer.sign())).status, 200)
  const old = await issuer.sign({ sub: 'bob' })
  await issuer.rotate('k2')
  // Unknown key ids are asked for after a pause.
  const now = Date.now.bind(Date)
  t.intercept(Date, 'now', { value: () => now() + 31_000 })
  t.equal((await get('/skills', await issuer.sign())).status, 200)
  t.equal((await get('/skills', old)).status, 401)
})

t.test('K62: invented key ids are no way to make the service ask the issuer', async (t) => {
  const issuer = await startIssuer(t)
  const { get } = await start(t, issuer)
  t.equal((await get('/skills', await issuer.sign())).status, 200)
  const before = issuer.requests
  for (let round = 0; round < 20; round++) t.equal((await get('/skills', await issuer.sign({}, { kid: `../../k${round}` }))).status, 401)
  t.equal(issuer.requests, before)
})
