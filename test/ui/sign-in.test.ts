import t, { type Test } from 'tap'
import { createSecret } from '../../src/access/secret.ts'
import { buildGuarded, newSecret, type Secret } from '../helper/guarded.ts'
import { listedNames, openPage } from '../helper/pages.ts'
import { skill } from '../helper/skills.ts'

const ann = newSecret('ann', 'groups: [docs]')
const late = newSecret('late', 'groups: [docs], expires: 2020-01-01')
const meter = newSecret('meter', 'groups: [docs], scopes: [metrics:read]')
const ACCESS = `tokens:\n${[ann, late, meter].map(({ entry }) => `  - ${entry}\n`).join('')}
rules:\n  - { groups: [docs], roots: [docs] }\n`

/** Every API that a browser could be made to ask. */
const APIS = [
  '/skills', '/skills/guide', '/skills/guide/files', '/skills/guide/files/a.md', '/skills/guide/archive.zip',
  '/catalog',
  '/agent/tools', '/agent/prompt', '/events', '/llms.txt', '/.well-known/agent-skills/index.json'
]

async function startService (t: Test, basePath = '') {
  return await buildGuarded(t,
    { roots: { docs: { guide: skill('guide', { 'a.md': 'text' }) } }, access: ACCESS, basePath })
}

async function signIn (url: string, token: string, headers: Readonly<Record<string, string>> = {}) {
  const body = new URLSearchParams({ token })
  return await openPage(`${url}/ui/sign-in`, { method: 'POST', body, headers })
}

/** The cookie that an answer sets, with its attributes in lower case. */
function cookieOf ({ headers }: { readonly headers: Headers }) {
  const [pair = '', ...attributes] = headers.getSetCookie()[0]?.split('; ') ?? []
  return { cookie: pair, attributes: attributes.map((attribute) => attribute.toLowerCase()) }
}

t.test('K97: a person signs in with a token, sees the skills of its caller, and signs out', async (t) => {
  const { url } = await startService(t)
  const stranger = await openPage(`${url}/`)
  t.equal(stranger.status, 401)
  t.ok(stranger.links.includes('./ui/sign-in'), 'the way to the form')
  const form = await openPage(`${url}/ui/sign-in`)
  t.match(form, { status: 200, text: /<form class="sign-in" method="post" action="sign-in">/ })
  t.match(form.headers.get('cache-control'), 'no-store')

  const signedIn = await signIn(url, ` ${ann.text}\n`)
  t.match([signedIn.status, signedIn.headers.get('location')], [303, '../'])
  const { cookie, attributes } = cookieOf(signedIn)
  t.same(attributes.sort(), ['httponly', 'path=/', 'samesite=strict'])
  for (const path of ['/', '/ui/skills/guide', '/ui/skills/guide/files/a.md', '/ui/status']) {
    const page = await openPage(url + path, { headers: { cookie } })
    t.match([page.status, page.text], [200, /<button class="plain">Sign out<\/button>/], path)
    t.match(page.headers.get('vary'), /\bCookie\b/, path)
    t.match(page.headers.get('cache-control'), /private/, path)
  }
  t.same(listedNames((await openPage(`${url}/`, { headers: { cookie } })).text), ['guide'])
  t.equal((await openPage(`${url}/ui/nowhere`, { headers: { cookie } })).status, 404)

  const out = await openPage(`${url}/ui/sign-out`, { method: 'POST', headers: { cookie } })
  t.match([out.status, out.headers.get('location'), cookieOf(out).cookie], [303, 'sign-in', 'skillserve_token='])
})

t.test('K97: the cookie is no credential of an API', async (t) => {
  const { url } = await startService(t)
  const { cookie } = cookieOf(await signIn(url, ann.text))
  for (const path of APIS) {
    const { status } = await openPage(url + path, { headers: { cookie } })
    t.equal(status, 401, path)
  }
  const headers = { cookie, 'content-type': 'application/json' }
  const call = JSON.stringify({ name: 'list_skills', arguments: {} })
  for (const path of ['/agent/tool-call', '/mcp', '/agent/tools/list_skills']) {
    t.equal((await fetch(url + path, { method: 'POST', headers, body: call })).status, 401, path)
  }
  t.equal((await fetch(`${url}/ui/skills/guide`, { headers: { cookie } })).status, 401, 'a program')
})

t.test('K97: a token that does not admit to the pages gets a sentence, and no cookie', async (t) => {
  const { url } = await startService(t)
  const cases: ReadonlyArray<{ readonly token: Secret['text'], readonly sentence: RegExp }> = [
    { token: '', sentence: /This token is unknown/ },
    { token: `${ann.text}x`, sentence: /This token is damaged/ },
    { token: ann.text.slice(0, -1), sentence: /This token is damaged/ },
    { token: createSecret('token'), sentence: /This token is unknown\. Ask for a new one/ },
    { token: '<script>alert(1)</script>', sentence: /This token is unknown/ },
    { token: late.text, sentence: /This token has expired\. Ask for a new one/ },
    { token: meter.text, sentence: /it lacks the scope skills:read/ }
  ]
  for (const { token, sentence } of cases) {
    const answer = await signIn(url, token)
    t.match(answer, { status: 403, text: sentence }, token)
    t.same(answer.headers.getSetCookie(), [])
    t.notMatch(answer.text, /alert\(1\)/)
  }
  for (const value of ['x', late.text, '%', '"', `${ann.text}; skillserve_token=x`]) {
    const { status } = await openPage(`${url}/`, { headers: { cookie: `skillserve_token=${value}` } })
    t.ok(status === 401 || value.startsWith(ann.text), value)
  }
  const large = await signIn(url, 'x'.repeat(20_000))
  t.equal(large.status, 413)
})

t.test('K97: the token is in no address and no line of the log, and a form of another site is refused', async (t) => {
  const { url, logText } = await startService(t)
  const other = await signIn(url, ann.text, { origin: 'https://evil.example' })
  t.match(other, { status: 403 })
  t.same(other.headers.getSetCookie(), [])
  const host = new URL(url).host
  const { attributes } = cookieOf(await signIn(url, ann.text, { origin: `https://${host}` }))
  t.ok(attributes.includes('secure'), 'behind a proxy with TLS')
  const asked = await openPage(`${url}/ui/sign-in?token=${ann.text}`)
  t.notOk(asked.text.includes(ann.text))
  t.notOk(logText().includes(ann.text))
})

t.test('K97: the form and the cookie are below the path of the service', async (t) => {
  const { url } = await startService(t, '/team')
  const { cookie, attributes } = cookieOf(await signIn(`${url}/team`, ann.text))
  t.ok(attributes.includes('path=/team/'))
  t.equal((await openPage(`${url}/team/`, { headers: { cookie } })).status, 200)
})

t.test('K97: without callers there is nothing to sign in to', async (t) => {
  const { buildService } = await import('../helper/build.ts')
  const { url } = await buildService(t, { files: { guide: skill('guide') } })
  t.equal((await openPage(`${url}/ui/sign-in`)).status, 404)
  t.notMatch((await openPage(`${url}/`)).text, 'Sign in')
})
