import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Links } from '../../src/access/links.ts'
import { createSecret, digestOf, isWellFormed } from '../../src/access/secret.ts'
import { runHere } from '../helper/command-line.ts'
import { FILE_SCHEMAS, schemaDocument } from '../../scripts/tables.ts'
import { buildGuarded, newSecret } from '../helper/guarded.ts'
import { installSkills } from '../helper/skills-client.ts'
import { rawRequest, request } from '../helper/raw-http.ts'
import { skill, until } from '../helper/skills.ts'
import { checkTime } from '../helper/timing.ts'

const CLI = fileURLToPath(new URL('../../node_modules/skills/bin/cli.mjs', import.meta.url))

const ann = newSecret('ann', 'groups: [docs]')
const bob = newSecret('bob', 'groups: [ops]')
const link = newSecret('laptops', 'groups: [docs]', 'link')

const RULES = 'rules:\n  - { groups: [docs], roots: [docs] }\n  - { groups: [ops], roots: [ops] }\n'
const ACCESS = `tokens:\n  - ${ann.entry}\n  - ${bob.entry}\nlinks:\n  - ${link.entry}\n${RULES}`

function roots () {
  return { docs: { guide: skill('guide', { 'a.md': 'text of a' }), plain: skill('plain') }, ops: { pager: skill('pager') } }
}

t.test('K66: a link opens discovery for its groups, and nothing else', async (t) => {
  const service = await buildGuarded(t, { roots: roots(), access: ACCESS })
  const base = `/t/${link.text}`
  const index = await service.get(`${base}/.well-known/agent-skills/index.json`)
  t.equal(index.status, 200)
  t.equal(index.headers.get('referrer-policy'), 'no-referrer')
  t.equal(index.headers.get('cache-control'), 'private, no-cache')
  const { skills } = await index.json() as { skills: ReadonlyArray<{ name: string, url: string }> }
  t.strictSame(skills.map(({ name }) => name), ['guide', 'plain'])
  for (const { url } of skills) {
    const artifact = await fetch(new URL(url, index.url))
    t.equal(artifact.status, 200)
    t.match(artifact.headers.get('cache-control'), /^private, max-age=31536000/)
  }
  for (const path of ['/skills', '/.well-known/oauth-protected-resource', '/mcp', '/skills/guide', '/.well-known/agent-skills/../../skills']) {
    t.not((await service.get(`${base}${path}`)).status, 200, path)
  }
  t.equal((await service.get(`${base}/.well-known/skills/index.json`, ann.text)).status, 400, 'two credentials')
  t.equal((await service.get('/skills', link.text)).status, 401, 'a link is no token')
  t.equal((await service.get(`/t/${ann.text}/.well-known/skills/index.json`)).status, 401, 'a token is no link')
})

t.test('K66: a link opens for GET and HEAD, and only one that logs can tell from other texts', async (t) => {
  const weak = 'laptops-of-2026'
  const entry = `{ name: weak, sha256: ${digestOf(weak)}, groups: [docs] }`
  const { get } = await buildGuarded(t, { roots: roots(), access: ACCESS.replace('links:', `links:\n  - ${entry}`) })
  const statusOf = async (secret: string, method: string) => (await get(`/t/${secret}/.well-known/agent-skills/index.json`, undefined, { method })).status
  t.strictSame(await Promise.all(['GET', 'HEAD', 'POST'].map((method) => statusOf(link.text, method))), [200, 200, 401])
  t.equal(await statusOf(weak, 'GET'), 401)
  t.strictSame([link.text, createSecret('token'), link.text.replace(/.$/, (last) => last === 'a' ? 'b' : 'a'), `${link.text.slice(0, -6)}x${link.text.slice(-6)}`, weak, ''].map((text) => isWellFormed('link', text)),
    [true, false, false, false, false, false])
})

t.test('K66: a link that has expired is as an unknown one, from the moment on', async (t) => {
  const [old, day] = [newSecret('old', 'groups: [docs], expires: 2020-01-01', 'link'), newSecret('day', `groups: [docs], expires: ${new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)}`, 'link')]
  const { get } = await buildGuarded(t, { roots: roots(), access: ACCESS.replace('links:', `links:\n  - ${old.entry}\n  - ${day.entry}`) })
  const ask = async (secret: string) => await get(`/t/${secret}/.well-known/agent-skills/index.json`)
  const expired = await ask(old.text)
  t.strictSame([expired.status, expired.headers.get('referrer-policy')], [401, 'no-referrer'])
  t.equal((await ask(day.text)).status, 200)
  const now = Date.now() + 2 * 86_400_000
  t.intercept(Date, 'now', { value: () => now })
  t.equal((await ask(day.text)).status, 401)
})

t.test('K66: a wrong or revoked secret is as an unknown route, and no secret is in log or problem', async (t) => {
  const service = await buildGuarded(t, { roots: roots(), access: ACCESS })
  const path = '/.well-known/agent-skills/index.json'
  t.equal((await service.get(`/t/${link.text}${path}`)).status, 200)
  await service.setAccess(ACCESS.replace(`links:\n  - ${link.entry}\n`, ''))
  const bodies = []
  for (const secret of [link.text, newSecret('x', '', 'link').text, 'x']) {
    const response = await service.get(`/t/${secret}${path}`, undefined, { headers: { 'x-request-id': 'same' } })
    t.equal(response.status, 401)
    bodies.push(await response.text())
    t.equal((await service.get(`/t/${secret}${path}`, ann.text)).status, 404)
  }
  t.equal(new Set(bodies).size, 1)
  t.notMatch(bodies.join() + service.logText(), /skl_/)
})

t.test('K66: no spelling of an address brings a secret into log or problem', async (t) => {
  const service = await buildGuarded(t, { roots: roots(), access: ACCESS })
  const { host } = new URL(service.url)
  const rest = '.well-known/agent-skills/index.json'
  const targets = [
    ...['//t/', '/%74/', '/t//', '/T/', '/skills/', '/skills/guide/files/', '/nosuch/'].map((start) => `${start}${link.text}/${rest}`),
    `/t/${link.text.replace('s', '%73')}/${rest}`, `http://${host}//t/${link.text}/${rest}`, `http://${host}/t/${ann.text}/${rest}`, `/t/${link.text}%zz`,
    ...['access_token=', '%61ccess_token=', 'x=', 'q=1&TOKEN=', ''].map((start) => `/skills?${start}${ann.text}`),
    `/skills/${ann.text}`, `/catalog?${ann.text}=1`, `/skills/${'a'.repeat(230)}${ann.text}`
  ]
  let answers = ''
  for (const target of targets) {
    for (const head of [{}, { headers: [`Authorization: Bearer ${ann.text}`] }]) {
      const { status, text } = await rawRequest(service.url, request('GET', target, head))
      t.ok(status >= 400, target)
      answers += text
    }
  }
  await until(() => service.logText().split('request completed').length > targets.length * 2)
  for (const secret of [link, ann]) t.notMatch(answers + service.logText(), secret.text.slice(12, 30))
})

t.test('K66: a token in a query is refused however its name is encoded, and a link in absolute form opens', async (t) => {
  const service = await buildGuarded(t, { roots: roots(), access: ACCESS })
  for (const name of ['access_token', '%61ccess_token', 'TOKEN']) t.equal((await service.get(`/skills?${name}=eyJ.a.b`, ann.text)).status, 400, name)
  t.notMatch(service.logText(), 'eyJ')
  const path = `/t/${link.text}/.well-known/agent-skills/index.json`
  const { host } = new URL(service.url)
  t.equal((await rawRequest(service.url, request('GET', `http://${host}${path}`))).status, 200)
})

t.test('a query is searched for tokens in linear time', async (t) => {
  const links = new Links('', () => false)
  const rewrite = (url: string) => links.rewrite({ url } as IncomingMessage)
  t.strictSame(['/x?token=a', '/x?a&access_token=b&c=d', '/x?a&token', '/x??token=a', '/x?tok%65n=#&token=b'].map(rewrite),
    ['/x?token=-', '/x?a&access_token=-&c=d', '/x?a&token', '/x??token=a', '/x?tok%65n=-#&token=-'])
  await checkTime(t, 20, () => rewrite(`/x${'?'.repeat(16_000)}`))
})

t.test('K66: the official client installs what the link shows, and no more', async (t) => {
  const service = await buildGuarded(t, { roots: roots(), access: ACCESS })
  const cwd = join(service.folder, 'project')
  mkdirSync(cwd)
  const result = await installSkills(`${service.url}/t/${link.text}`, { cli: CLI, cwd })
  t.ok(result.succeeded, result.output)
  t.strictSame(readdirSync(result.folder).sort(), ['guide', 'plain'])
  t.notMatch(result.output, 'pager')
})

const run = (...argv: readonly string[]) => runIn(process.cwd(), ...argv)

async function runIn (cwd: string, ...argv: readonly string[]): Promise<{ readonly code: number | undefined, readonly out: string, readonly err: string }> {
  const { code, stdout: out, stderr: err } = await runHere(argv, { cwd })
  return { code, out, err }
}

t.test('K63: a token that the command prints works with the line that it prints', async (t) => {
  const { out, code } = await run('token', 'ci', '--group', 'docs', '--expires', '30d')
  t.equal(code, 0)
  const expires = Date.parse(/expires: (\S+)/.exec(out)?.[1] ?? '')
  t.ok(Math.abs(expires - Date.now() - 30 * 86_400_000) < 120_000, `thirty days, and not the night before: ${out}`)
  const [, secret = '', entry = ''] = /^(sks_\w{38})\n[^]*\n {2}- (\{.*\})\n$/.exec(out) ?? []
  const service = await buildGuarded(t, { roots: roots(), access: `tokens:\n  - ${entry}\n${RULES}` })
  t.strictSame(await (await service.get('/skills', secret)).json(), { skills: ['guide', 'plain'] })
  t.match((await run('token', 'ci', '--group', 'Platform Team (Köln)')).out, 'groups: ["Platform Team (Köln)"]')
  t.match((await run('token', 'ci', '--link')).out, /^\/t\/skl_\w{38}\n/)
  for (const when of ['2996-02-29', '2999-12-31T23:30-02:00']) t.match((await run('token', 'ci', '--expires', when)).out, `expires: ${when}`)
  for (const argv of [['token'], ['token', 'a b'], ['token', 'anonymous'], ['token', 'group:docs'], ['token', 'a', '--expires', 'soon'], ['token', 'a', '--link', '--scope', 'x'], ['token', 'a', '--scope', 'skills:raed'], ['token', 'a', '--group', ' '], ['token', 'a', '--group', 'a\n'],
    ...['2999-02-30', '2999-13-01', '2999-02-30T00:00Z', '2020-01-01', '2026-01-01T00:00Z', '2999-01-01T25:00'].map((when) => ['token', 'a', '--expires', when])]) {
    const { code, err } = await run(...argv)
    t.equal(code, 1, argv.join(' '))
    t.match(err, /^skillserve: [^\n]+\n$/)
  }
})

t.test('K63: access says what a caller sees and why, and who sees a skill', async (t) => {
  const folder = t.testdir({ ...roots(), 'access.yaml': ACCESS })
  const at = (name: string) => join(folder, name)
  const ask = (...rest: readonly string[]) => run('access', at('access.yaml'), at('docs'), at('ops'), ...rest)
  t.match((await ask('--as', 'ann')).out, /ann is in the groups .* sees 2 skills\nguide {2}docs {2}.*access\.yaml:7: rules\[0\] for docs\nplain/)
  t.equal((await ask('--as', 'anonymous')).out, 'anonymous is in no group and sees 0 skills\n')
  t.match((await ask('--as', 'group:ops')).out, /pager/)
  t.match((await ask('--skill', 'guide')).out, /guide in docs: seen by the groups docs\n {2}ann\n {2}laptops\n$/)
  t.match((await ask()).out, '3 tokens and links, 2 rules')
  writeFileSync(at('one.yaml'), `tokens: [{ name: a, sha256: ${'a'.repeat(64)}, groups: [docs] }]\nrules: [{ groups: [docs] }]\n`)
  t.match(await run('access', at('one.yaml'), at('docs')), { out: '1 token or link, 1 rule\n' })
  t.strictSame(await run('export', at('out'), at('docs'), at('ops'), '--access', at('access.yaml'), '--as', 'laptop'), { code: 1, out: '', err: 'skillserve: "laptop" is not a token or link of the access file, did you mean "laptops"?\n' })
  t.strictSame(await ask('--as', 'nosuch'), { code: 1, out: '', err: 'skillserve: "nosuch" is not a token or link of the access file\n' })
  t.strictSame(await ask('--as', 'an'), { code: 1, out: '', err: 'skillserve: "an" is not a token or link of the access file\n' })
  t.strictSame(await ask('--as', 'laptop'), { code: 1, out: '', err: 'skillserve: "laptop" is not a token or link of the access file, did you mean "laptops"?\n' })
  t.strictSame(await ask('--skill', 'pagr'), { code: 1, out: '', err: 'skillserve: no folder has a skill "pagr", did you mean "pager"?\n' })
  t.strictSame(await ask('--skill', 'nosuch'), { code: 1, out: '', err: 'skillserve: no folder has a skill "nosuch"\n' })
  writeFileSync(at('access.yaml'), ACCESS.replace('name: ann,', 'name: ann, scopes: [metrics:read],'))
  t.equal((await ask('--as', 'ann')).out, 'ann has the scopes metrics:read and lacks skills:read: it sees no skills\n')
  writeFileSync(at('access.yaml'), ACCESS.replace('roots: [ops]', 'roots: [opss]'))
  t.match(await ask(), { code: 1, err: /access\.yaml:8: rules\[1\]\.roots\[0\] is not the name of a folder of skills: there are "docs", "ops", did you mean "ops"\?\n$/ })
})

t.test('K63: access says that an expired token or link sees nothing, and lists no caller whom the service refuses', async (t) => {
  const tokens = [['prom', 'scopes: [metrics:read], '], ['old', 'expires: 2020-03-01, '], ['both', 'scopes: [], expires: 2020-03-01T01:30+01:30, '], ['young', 'expires: 2999-03-01, ']]
    .map(([name = '', fields]) => `  - ${newSecret(name, `${fields}groups: [docs]`).entry}\n`).join('')
  const oldLink = newSecret('oldlink', 'expires: 2020-03-01, groups: [docs]', 'link')
  const folder = t.testdir({ ...roots(), 'access.yaml': `tokens:\n  - ${ann.entry}\n${tokens}links:\n  - ${link.entry}\n  - ${oldLink.entry}\n${RULES}` })
  const ask = (...rest: readonly string[]) => run('access', join(folder, 'access.yaml'), join(folder, 'docs'), join(folder, 'ops'), ...rest)
  for (const name of ['old', 'both', 'oldlink']) t.strictSame(await ask('--as', name), { code: 0, out: `${name} expired at 2020-03-01T00:00:00Z: it sees no skills\n`, err: '' })
  t.equal((await ask('--as', 'prom')).out, 'prom has the scopes metrics:read and lacks skills:read: it sees no skills\n')
  t.match((await ask('--as', 'young')).out, / and sees 2 skills\n/)
  t.equal((await ask('--skill', 'guide')).out, 'guide in docs: seen by the groups docs\n  ann\n  young\n  laptops\n')
})

t.test('K63: access tells of the skills that serve would have with the same flags', async (t) => {
  const cwd = t.testdir({
    ...roots(),
    skills: { unnamed: skill('unnamed') },
    elsewhere: { linked: skill('linked') },
    'access.yaml': 'rules:\n  - { groups: [anonymous] }\n',
    'sources.yaml': 'sources:\n  - folder: ./docs\n'
  })
  symlinkSync('../elsewhere/linked', join(cwd, 'docs/linked'))
  const seen = async (...argv: readonly string[]) => (await runIn(cwd, 'access', 'access.yaml', ...argv, '--as', 'anonymous')).out.split('\n').slice(1, -1).map((line) => line.split(' ')[0])
  t.strictSame(await seen('docs'), ['guide', 'plain'])
  t.strictSame(await seen('docs', '--allow-links', 'elsewhere'), ['guide', 'linked', 'plain'])
  t.strictSame(await seen('--config', 'sources.yaml'), ['guide', 'plain'], 'the configuration file says alone which skills there are')
  t.strictSame(await seen(), ['unnamed'])
})

t.test('K82: access refuses a word that is no folder and a folder that is a skill, and says which folder or source is missing', async (t) => {
  const cwd = t.testdir({ ...roots(), 'access.yaml': 'rules:\n  - { groups: [anonymous] }\n', 'sources.yaml': 'sources:\n  - { git: git+file:///nowhere/docs.git, name: docs, optional: true }\n' })
  t.match(await runIn(cwd, 'access', 'access.yaml', 'dosc'), { code: 1, out: '', err: /^skillserve: "dosc" is not a command, and not a folder here[^\n]+\n$/ })
  t.match(await runIn(cwd, 'access', 'access.yaml', 'docs/guide', '--as', 'anonymous'), { code: 1, out: '', err: /^skillserve: "docs\/guide" is itself a skill, [^\n]+\n$/ })
  t.match(await runIn(cwd, 'access', 'access.yaml', '--config', 'sources.yaml', '--state-dir', 'state'), { code: 0, out: /^the source docs cannot be read: [^\n]+; it is optional, so the command goes on without it\nthe folder docs is not fetched yet: none of its skills is known\n0 tokens/ })
  t.match(await runIn(cwd, 'access', 'access.yaml', './dosc', '--as', 'anonymous'), { code: 0, out: /^the folder dosc is missing, or is a file: none of its skills is known\nanonymous is in .* 0 skills\n$/ })
})

t.test('K63: access refuses two folders of one name, as serve does', async (t) => {
  const cwd = t.testdir({ a: { skills: { one: skill('one') } }, b: { skills: { two: skill('two') } }, 'access.yaml': 'rules: [{ groups: [anonymous], skills: [two] }]\n' })
  for (const question of [[], ['--skill', 'two'], ['--as', 'anonymous']]) {
    t.match(await runIn(cwd, 'access', 'access.yaml', 'a/skills', 'b/skills', ...question), { code: 1, err: /two folders of skills are called "skills"/ })
  }
})

t.test('the published schemas of operators\' files are those of the service', async (t) => {
  for (const [document, schema] of Object.entries(FILE_SCHEMAS)) t.strictSame(readFileSync(new URL(`../../${document}`, import.meta.url), 'utf8'), schemaDocument(schema))
})
