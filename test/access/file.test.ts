import { appendFileSync, chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { FILE_SCHEMAS, schemaDocument } from '../../scripts/tables.ts'
import { patternOf, Policy } from '../../src/access/policy.ts'
import { ConfigError } from '../../src/operator/setting.ts'
import { runHere } from '../helper/command-line.ts'
import { openEvents } from '../helper/event-stream.ts'
import { bearer, buildGuarded, newSecret } from '../helper/guarded.ts'
import { AUDIENCE, startIssuer } from '../helper/issuer.ts'
import { listenRequest } from '../helper/mcp.ts'
import { openRaw, request } from '../helper/raw-http.ts'
import { skill, skillText, until } from '../helper/skills.ts'
import { checkTime } from '../helper/timing.ts'

const ann = newSecret('ann', 'groups: [docs]')
const bob = newSecret('bob', 'groups: [ops]')
const cy = newSecret('cy', 'groups: [docs, ops]')

const DOCS = '  - { groups: [docs], roots: [docs] }\n'
const OPS = '  - { groups: [ops], roots: [ops] }\n'

function accessOf (entries: readonly string[], rules = DOCS + OPS, more = ''): string {
  return `tokens:\n${entries.map((entry) => `  - ${entry}\n`).join('')}${more}rules:\n${rules}`
}

const ALL = [ann.entry, bob.entry, cy.entry]

const { setAccess, breakAccess, get, folder, url, logText } = await buildGuarded(t, {
  roots: { docs: { guide: skill('guide'), plain: skill('plain') }, ops: { pager: skill('pager') } },
  access: accessOf(ALL),
  watcher: true
})

async function open (t: Test, token: string, { lastId = '', target = '/events' } = {}) {
  const headers = [`Authorization: Bearer ${token}`, 'Accept: text/event-stream']
  const stream = await openEvents(url, {
    target, headers: lastId === '' ? headers : [...headers, `Last-Event-ID: ${lastId}`]
  })
  t.teardown(() => { stream.destroy() })
  return stream
}

async function openWithId (t: Test, token: string) {
  const stream = await open(t, token)
  await stream.until('its beginning', () => /^[\da-f]{64}$/.test(stream.lastEventId))
  return stream
}

t.test('K64: a stream reports what its caller sees, and its ids count nothing else', async (t) => {
  const [ofAnn, ofBob] = [await openWithId(t, ann.text), await openWithId(t, bob.text)]
  mkdirSync(join(folder, 'ops', 'new'))
  writeFileSync(join(folder, 'ops', 'new', 'SKILL.md'), skillText('new'))
  await ofBob.until('the new skill', () => ofBob.events.some(({ data }) => data['name'] === 'new'))
  appendFileSync(join(folder, 'docs', 'guide', 'SKILL.md'), '!')
  await ofAnn.until('the edit', () => ofAnn.events.some(({ data }) => data['name'] === 'guide'))
  t.notMatch(JSON.stringify(ofAnn.events), /new|pager/)
  rmSync(join(folder, 'ops', 'new'), { recursive: true })
  await ofBob.until('its end', () => ofBob.events.at(-1)?.type === 'removed')
})

t.test('K64: a change of the file ends streams; those who see the same resume, others begin with reset', async (t) => {
  for (const [rules, skills] of [
    [`${OPS}${DOCS}  - { groups: [docs], roots: [ops] }\n`, ['guide', 'pager', 'plain']],
    [DOCS + OPS, ['guide', 'plain']]
  ] as const) {
    const [ofAnn, ofBob] = [await openWithId(t, ann.text), await openWithId(t, bob.text)]
    const mcp = await open(t, ann.text, { target: '/mcp' })
    await setAccess(accessOf(ALL, rules))
    for (const stream of [ofAnn, ofBob, mcp]) await stream.until('its end', () => stream.complete)
    t.strictSame(await (await get('/skills', ann.text)).json(), { skills })
    const resumed = await open(t, ann.text, { lastId: ofAnn.lastEventId })
    t.match(await resumed.event(0), { type: 'reset' })
    const same = await open(t, bob.text, { lastId: ofBob.lastEventId })
    appendFileSync(join(folder, 'ops/pager/SKILL.md'), '!')
    appendFileSync(join(folder, 'docs/guide/SKILL.md'), '!')
    await resumed.until('the edit', () => resumed.events.some(({ data }) => data['name'] === 'guide'))
    if (skills.length === 2) t.notMatch(JSON.stringify(resumed.events), 'pager')
    t.match(await same.event(0), { type: 'changed', data: { name: 'pager' } })
    for (const stream of [resumed, same]) stream.destroy()
  }
})

t.test('K60: a token that is removed, or loses the scope for skills, opens nothing from then on', async (t) => {
  for (const [entries, status] of [
    [[bob.entry], 401], [[ann.entry.replace('groups', 'scopes: [metrics:read], groups'), bob.entry], 403]
  ] as const) {
    const all = (await get('/events', ann.text)).text()
    await setAccess(accessOf(entries))
    t.match(await all, 'retry:', 'its stream ends')
    t.equal((await get('/skills', ann.text)).status, status)
    t.equal((await get('/skills', bob.text)).status, 200)
    await setAccess(accessOf(ALL))
  }
})

t.test('K60 K64: a request under way has the view that it was admitted with, and opens no stream', async (t) => {
  /** A request whose caller is admitted, and whose body is still to come. */
  const begin = async (path: string, { headers, body }: RequestInit) => {
    const connection = await openRaw(url)
    t.teardown(() => { connection.destroy() })
    const lines = Object.entries(headers as Record<string, string>).map(([name, value]) => `${name}: ${value}`)
    const text = String(body)
    // The interim answer says that the body is wanted: its caller has been admitted.
    const head = [...lines, `content-length: ${text.length}`, 'expect: 100-continue']
    connection.send(request('POST', path, { headers: head }))
    await until(() => connection.received.includes('100 Continue'))
    return { connection, finish: () => { connection.send(text) } }
  }
  const headers = { ...bearer(ann.text), 'content-type': 'application/json' }
  const call = await begin('/agent/tools/list_skills', { headers, body: '{}' })
  const stream = await begin('/mcp', listenRequest(bearer(ann.text)))
  await setAccess(accessOf([bob.entry]))
  call.finish()
  const { json } = await call.connection.response()
  t.strictSame(json(), { skills: ['guide', 'plain'] })
  stream.finish()
  await stream.connection.closed({ timeoutMs: 10_000 })
  await setAccess(accessOf(ALL))
})

t.test('K60: a broken file widens nothing: the last good one stays, and the log and /readyz say so', async (t) => {
  await breakAccess(`${accessOf(ALL)}  - { group: [docs] }\n`)
  t.match(logText(), 'access.yaml:8: rules[2].group is an unknown key; allowed: groups, roots, skills')
  for (const text of ['', '\0\0', `${accessOf(ALL)}  - { groups: [docs], roots: [op`]) {
    await breakAccess(text)
    t.strictSame(await (await get('/skills', ann.text)).json(), { skills: ['guide', 'plain'] })
    t.equal((await get('/skills')).status, 401)
    const state = await (await get('/readyz', ann.text)).json()
    t.match(state, { status: 'ready', detail: /the last good one stays in force/ })
  }
  rmSync(join(folder, 'access.yaml'))
  t.equal((await get('/skills', ann.text)).status, 200)
  await setAccess(accessOf([ann.entry]))
  t.equal((await get('/skills', bob.text)).status, 401)
  t.notMatch(JSON.stringify(await (await get('/readyz', ann.text)).json()), 'last good one')
  await setAccess(accessOf(ALL))
})

t.test('K64: a cursor of one view is not valid in another', async (t) => {
  const { next_cursor: cursor } = await (await get('/catalog?limit=1', ann.text)).json() as { next_cursor: string }
  t.equal((await get(`/catalog?limit=1&cursor=${cursor}`, ann.text)).status, 200)
  const other = await get(`/catalog?limit=1&cursor=${cursor}`, cy.text)
  t.match([other.status, await other.json()], [400, { code: 'bad_cursor' }])
})

t.test('K62: a stream ends when its token expires, as late as the tolerance of clocks allows', async (t) => {
  const issuer = await startIssuer(t)
  const soon = newSecret('soon', `groups: [docs], expires: '${new Date(Date.now() + 1_500).toISOString()}'`)
  const issuers = `issuers:\n  - { issuer: '${issuer.url}', audiences: ['${AUDIENCE}'] }\n`
  await setAccess(accessOf([soon.entry], undefined, issuers))
  const late = await open(t, await issuer.sign({ exp: Math.floor(Date.now() / 1_000) - 5 }))
  t.match(await (await get('/events', soon.text)).text(), 'retry:')
  t.notOk(late.complete, 'the JWT is still good')
  await setAccess(accessOf(ALL))
})

const PLAIN = `tokens:\n  - ${ann.entry}\nrules:\n  - { groups: [docs], roots: [docs] }\n`
const DIGEST = 'a'.repeat(64)
const OTHER_DIGEST = 'b'.repeat(64)
const ISSUER = '{ issuer: https://id.example, audiences: [a] }'

function parse (text: string, roots = ['docs']): Policy {
  return new Policy('access.yaml', text, roots)
}

t.test('K60: an access file among the skills is refused', async (t) => {
  const folder = t.testdir({ docs: { guide: skill('guide'), 'access.yaml': PLAIN }, 'access.yaml': PLAIN })
  const at = (name: string) => join(folder, name)
  symlinkSync(at('docs/access.yaml'), at('link.yaml'))
  symlinkSync(at('docs'), at('also-docs'))
  for (const [file, docs] of [['docs/access.yaml', 'docs'], ['link.yaml', 'docs'],
    ['docs/access.yaml', 'also-docs']] as const) {
    const { code, stderr } = await runHere(['config', at(docs), '--access', at(file)])
    t.equal(code, 1)
    t.match(stderr, /ACCESS_FILE or --access: "[^"]+" is inside "[^"]+docs", whose files are served/)
  }
})

const BROKEN: Readonly<Record<string, string>> = {
  'an unknown key': `${PLAIN}admins: []\n`,
  'a rule for nobody': 'rules:\n  - { groups: [], roots: [docs] }\n',
  'a rule for no roots': 'rules:\n  - { groups: [docs], roots: [] }\n',
  'a rule for null roots': 'rules:\n  - { groups: [docs], roots: ~ }\n',
  'a rule with an empty key': 'rules:\n  - groups: [docs]\n    roots:\n',
  'an unknown scope': `tokens:\n  - { name: a, sha256: ${DIGEST}, scopes: ["skills:raed"] }\n`,
  'an unknown root': 'rules:\n  - { groups: [docs], roots: [dosc] }\n',
  'a pattern that is no text': 'rules:\n  - { groups: [docs], skills: [1] }\n',
  'a group that is no name': 'rules:\n  - { groups: ["a,b"] }\n',
  'a digest that is a token': `tokens:\n  - { name: a, sha256: ${ann.text} }\n`,
  'a name twice': `tokens:\n  - { name: a, sha256: ${DIGEST} }\n  - { name: a, sha256: ${OTHER_DIGEST} }\n`,
  'the name of callers without credentials': `tokens:\n  - { name: anonymous, sha256: ${DIGEST} }\n`,
  'a link with the name of a group': `links:\n  - { name: "group:docs", sha256: ${DIGEST} }\n`,
  'a link with the name of a token':
    `tokens:\n  - { name: a, sha256: ${DIGEST} }\nlinks:\n  - { name: a, sha256: ${OTHER_DIGEST} }\n`,
  'a digest twice': `tokens:\n  - { name: a, sha256: ${DIGEST} }\n  - { name: b, sha256: ${DIGEST.toUpperCase()} }\n`,
  'no day of the calendar': `tokens:\n  - { name: a, sha256: ${DIGEST}, expires: 2027-13-01 }\n`,
  'no day of its month': `tokens:\n  - { name: a, sha256: ${DIGEST}, expires: 2027-02-30 }\n`,
  'an issuer without audiences': 'issuers:\n  - { issuer: https://id.example }\n',
  'an issuer twice': `issuers:\n  - ${ISSUER}\n  - ${ISSUER}\n`,
  'an issuer at no address': `issuers:\n  - ${ISSUER.replace('id.example', 'id.example:x')}\n`,
  'keys at no address': `issuers:\n  - ${ISSUER.replace(' }', ', jwks_uri: "https://[" }')}\n`,
  'an issuer with no audience': `issuers:\n  - ${ISSUER.replace('[a]', '[]')}\n`,
  'a tolerance of clocks over a minute': `issuers:\n  - ${ISSUER.replace(' }', ', clock_tolerance: 61 }')}\n`,
  'an algorithm with a shared secret': `issuers:\n  - ${ISSUER.replace(' }', ', algorithms: [HS256] }')}\n`,
  'no algorithm': `issuers:\n  - ${ISSUER.replace(' }', ', algorithms: [none] }')}\n`,
  'a proxy from anywhere': 'proxy: { peers: [] }\n',
  'a proxy in a zone of this machine': 'proxy: { peers: ["fe80::1%eth0"] }\n',
  'a proxy by its name': 'proxy: { peers: [proxy.example] }\n',
  'two documents': 'rules: []\n---\nrules:\n  - { groups: [anonymous] }\n',
  'a tab': 'rules:\n\t- { groups: [anonymous] }\n'
}

t.test('K60: what cannot be meant is refused, with file and line', async (t) => {
  for (const [label, text] of Object.entries(BROKEN)) {
    let error: unknown
    try {
      parse(text)
    } catch (caught) {
      error = caught
    }
    t.ok(error instanceof ConfigError, label)
    t.match(error, { message: /^access\.yaml:\d+: [^\n]+$/ }, label)
    t.notMatch(error, { message: 'constant' }, 'what is allowed has a name')
    t.notMatch(error, { message: ann.text }, 'a secret in a wrong place is not repeated')
  }
  t.throws(() => parse(PLAIN, ['docs', 'docs']), { message: /two folders of skills are called "docs"/ })
})

t.test('K60: the start warns of a file that all can write', async (t) => {
  const { logText } = await buildGuarded(t, {
    roots: { docs: { demo: skill('demo') } },
    access: PLAIN,
    prepare: (folder) => { chmodSync(join(folder, 'access.yaml'), 0o666) }
  })
  t.match(logText(), 'access file is writable by every user of this machine')
})

t.test('K64: a star stands for any characters, and no name takes long', async (t) => {
  fc.assert(fc.property(fc.stringMatching(/^[ab*]{0,8}$/), fc.stringMatching(/^[ab]{0,12}$/), (text, name) => {
    return patternOf(text)(name) === new RegExp(`^${text.replaceAll('*', '.*')}$`).test(name)
  }), { numRuns: 2_000 })
  for (const [text, name] of [['a.c', 'abc'], ['a.*', 'ab'], ['(a', 'a'], ['', 'a'], ['ab*ba', 'aba']] as const) {
    t.notOk(patternOf(text)(name), text)
  }
  t.notOk(await checkTime(t, 5, () => patternOf(`${'*-'.repeat(20)}x`)('-'.repeat(255))))
})

t.test('K60, K83, K95: the published schemas of operators\' files are those of the service', async (t) => {
  for (const [document, schema] of Object.entries(FILE_SCHEMAS)) {
    t.strictSame(readFileSync(new URL(`../../${document}`, import.meta.url), 'utf8'), schemaDocument(schema))
  }
})
