import { cpSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { sha256 } from '../../../src/core/shared/digest.ts'
import { readConfigFile } from '../../../src/config/config-file.ts'
import { DISCOVERY_SCHEMA_ID } from '../../../src/schemas/well-known.ts'
import { zipOfTexts } from '../../helper/archives.ts'
import { buildService } from '../../helper/build.ts'
import { runHere } from '../../helper/command-line.ts'
import { type FaultServer, serveFolder, startServer } from '../../helper/fault-server.ts'
import { startProcess } from '../../helper/process.ts'
import { hasProgram, startNginx } from '../../helper/proxies.ts'
import { skillText, startManager, textOf, until } from '../../helper/skills.ts'
import { openSources, sourceAt } from '../../helper/sources.ts'

const EXAMPLES = fileURLToPath(new URL('../../../skills', import.meta.url))

interface Site extends FaultServer {
  /** Bodies by path. */
  readonly files: Map<string, string | Buffer>
  /** Statuses of answers since the last look, by path. */
  answers (): Record<string, number>
}

/** A static web server. */
async function startSite (t: Test): Promise<Site> {
  const files = new Map<string, string | Buffer>()
  let answers: Record<string, number> = {}
  const server = await startServer(t, (request, response) => {
    const body = files.get(request.url ?? '')
    const etag = body === undefined ? '' : `"${sha256(body).slice(-9)}"`
    const status = body === undefined ? 404 : request.headers['if-none-match'] === etag ? 304 : 200
    answers[request.url ?? ''] = status
    response.writeHead(status, { etag }).end(status === 200 ? body : undefined)
  })
  return Object.assign(server, {
    files,
    answers: () => {
      const last = answers
      answers = {}
      return last
    }
  })
}

const INDEX = '/.well-known/agent-skills/index.json'

function indexOf (...skills: readonly object[]): string {
  return JSON.stringify({ $schema: DISCOVERY_SCHEMA_ID, skills })
}

/** Publishes a skill, and returns its entry. */
function publish (site: Site, name: string, body: string | Buffer = skillText(name), more: object = {}): object {
  const isText = typeof body === 'string'
  const url = `/a/${name}.${isText ? 'md' : 'zip'}`
  site.files.set(url, body)
  return { name, type: isText ? 'skill-md' : 'archive', description: 'x', url, digest: sha256(body), ...more }
}

t.test('K87: a mirror of a service has its skills, byte for byte, and so has a mirror of the mirror', async (t) => {
  const examples = await startManager(t, [EXAMPLES])
  const names = await examples.list()
  const copyExamples = (folder: string): void => { cpSync(EXAMPLES, join(folder, 'skills'), { recursive: true }) }
  const origin = await buildService(t, { options: { prepare: copyExamples } })
  const mirror = await startProcess(t, {
    args: ['--state-dir', join(t.testdirName, 'mirror'), `well-known+${origin.url}`]
  })
  await until(async () => (await fetch(`${mirror.url}/readyz`)).status === 200)
  const { skills, status } = await openSources(t, [sourceAt(`well-known+${mirror.url}`)],
    { stateDir: join(t.testdirName, 'second') })
  t.match(status(), { kind: 'site', state: 'ok', skills: names.length, left_out: undefined })
  for (const name of names) {
    t.strictSame(await skills.read(name, (skill) => skill.manifest()),
      await examples.read(name, (skill) => skill.manifest()), name)
  }
  const indexes = [origin, mirror].map(async ({ url }) => await (await fetch(`${url}${INDEX}`)).json() as object)
  const [first, second] = await Promise.all(indexes)
  t.strictSame(second, first)
})

t.test('K87: unchanged indexes and artifacts cost a conditional request, and only what is ' +
  'new is fetched', async (t) => {
  const site = await startSite(t)
  const a = publish(site, 'a')
  site.files.set(INDEX, indexOf(a, publish(site, 'b', zipOfTexts([['SKILL.md', skillText('b')], ['x.txt', 'x']]))))
  const { sources, skills, status } = await openSources(t, [sourceAt(`well-known+${site.url}`)])
  t.strictSame(await skills.list(), ['a', 'b'])
  t.equal(await textOf(() => skills.read('b', (skill) => skill.file('x.txt'))), 'x')
  site.answers()
  await sources.sync()
  t.strictSame(site.answers(), { [INDEX]: 304 })
  site.files.set(INDEX, indexOf(a, publish(site, 'b', zipOfTexts([['SKILL.md', skillText('b')], ['x.txt', 'y']]))))
  await sources.sync()
  t.strictSame(site.answers(), { [INDEX]: 200, '/a/b.zip': 200 })
  t.equal(await textOf(() => skills.read('b', (skill) => skill.file('x.txt'))), 'y')
  site.answer = (_, response) => { response.writeHead(503).end() }
  await sources.sync()
  t.match(status(), { state: 'stale', skills: 2, error: { code: 'unreachable' } })
})

t.test('K87: an index of version 0.1.0 is read file by file', async (t) => {
  const site = await startSite(t)
  const folder = '/team/.well-known/skills'
  site.files.set(`${folder}/a/SKILL.md`, skillText('a')).set(`${folder}/a/b%20c.md`, 'one')
  site.files.set(`${folder}/index.json`, JSON.stringify({
    skills: [
      { name: 'a', description: 'x', files: ['SKILL.md', 'b c.md'] },
      { name: 'up', files: ['SKILL.md', '../x'] },
      { name: 'none', files: ['x'] }
    ]
  }))
  const { sources, skills, status } = await openSources(t, [sourceAt(`well-known+${site.url}/team/`)])
  t.match(status(), {
    name: `team-${new URL(site.url).port}`,
    state: 'ok',
    skills: 1,
    left_out: { count: 2, first: [{ path: 'none', reason: 'bad_entry' }, { path: 'up', reason: 'bad_entry' }] }
  })
  site.answers()
  await sources.sync()
  t.strictSame(Object.values(site.answers()), [404, 304, 304, 304])
  site.files.set(`${folder}/a/b%20c.md`, 'two')
  await sources.sync()
  t.equal(await textOf(() => skills.read('a', (skill) => skill.file('b c.md'))), 'two')
})

t.test('K87: one bad entry is left out and named, and the rest is published', async (t) => {
  const body = skillText('bad')
  const status = (code: number) => (response: ServerResponse) => { response.writeHead(code).end(body) }
  const zip = (...files: Parameters<typeof zipOfTexts>[0]) => zipOfTexts([['SKILL.md', body], ...files])
  interface Entry {
    readonly title: string
    readonly reason: string
    readonly body?: string | Buffer
    readonly entry?: object
    readonly answer?: (response: ServerResponse) => void
  }
  const entries: readonly Entry[] = [
    { title: 'another digest', reason: 'digest_mismatch', entry: { digest: sha256('other') } },
    { title: 'a digest that is none', reason: 'bad_entry', entry: { digest: 'sha256:00' } },
    { title: 'an unknown type', reason: 'bad_entry', entry: { type: 'zip' } },
    { title: 'an address elsewhere', reason: 'bad_entry', entry: { url: 'https://example.org/x' } },
    { title: 'an address with nothing', reason: 'not_found', entry: { url: '/nothing' } },
    { title: 'a text as an archive', reason: 'bad_package', entry: { type: 'archive' } },
    { title: 'an archive with a folder at its top', reason: 'bad_package', body: zipOfTexts([['w/SKILL.md', body]]) },
    { title: 'a path that leads out', reason: 'bad_package', body: zip(['../x', 'x']) },
    { title: 'too deep', reason: 'bad_package', body: zip([`${'d/'.repeat(19)}x`, 'x']) },
    { title: 'a file that is a folder', reason: 'bad_package', body: zip(['a', 'x'], ['a/b', 'x']) },
    ...[401, 500].map((code) => ({ title: `status ${code}`, reason: 'unreachable', answer: status(code) })),
    { title: 'a connection that ends', reason: 'unreachable', answer: (response) => { response.destroy() } },
    { title: 'silence', reason: 'unreachable', answer: () => {} },
    {
      title: 'a body that does not end',
      reason: 'unreachable',
      answer: (response) => { response.writeHead(200, { 'content-length': '99' }).write('half') }
    },
    {
      title: '20 GiB that are announced',
      reason: 'bound_reached',
      answer: (response) => { response.writeHead(200, { 'content-length': String(20 * 2 ** 30) }).flushHeaders() }
    },
    {
      title: 'an unknown content coding',
      reason: 'unreachable',
      answer: (response) => { response.writeHead(200, { 'content-encoding': 'compress' }).end('x') }
    },
    {
      title: 'gzip that is damaged',
      reason: 'unreachable',
      answer: (response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(body).subarray(0, 20))
      }
    }
  ]
  await Promise.all(entries.map(({ title, reason, body, entry, answer }, index) => t.test(title, async (t) => {
    const site = await startSite(t)
    site.files.set(INDEX, indexOf(publish(site, 'bad', body, entry), publish(site, 'good')))
    const { answer: usual } = site
    site.answer = (request, response) => {
      if (answer !== undefined && request.url?.startsWith('/a/bad.') === true) answer(response)
      else usual(request, response)
    }
    const source = sourceAt(`well-known+${site.url}`, { timeoutMs: 2_000 })
    const { status, skills } = await openSources(t, [source], { stateDir: join(t.testdirName, `state-${index}`) })
    t.match(status(), { state: 'ok', left_out: { count: 1, first: [{ path: 'bad', reason }] } })
    t.strictSame(await skills.list(), ['good'])
  })))
  const site = await startSite(t)
  const good = publish(site, 'good')
  site.files.set(INDEX,
    indexOf(good, publish(site, 'good', undefined, { url: '/a/2.md' }), { ...good, name: '../up' }, {}))
  const { status: statusOf } = await openSources(t, [sourceAt(`well-known+${site.url}`)])
  const { left_out: leftOut } = statusOf()
  t.match(leftOut?.first, [
    { path: '../up', reason: 'bad_entry' }, { path: '?', reason: 'bad_entry' }, { path: 'good', reason: 'shadowed' }
  ])
})

t.test('K87: a host that has index 0.1.0 only may answer the other address in any way', async (t) => {
  const body = skillText('a')
  interface Habit {
    readonly title: string
    /** To the address of index 0.2.0. */
    readonly first?: (response: ServerResponse) => void
    /** To the address of index 0.1.0 and its files. */
    readonly second?: (response: ServerResponse, text: string) => void
    readonly error?: string
  }
  const sends = (status: number, text = '') =>
    (response: ServerResponse): void => { response.writeHead(status).end(text) }
  const habits: readonly Habit[] = [
    ...[204, 401, 403, 410].map((status) => ({ title: `status ${status}`, first: sends(status) })),
    { title: 'a page', first: sends(200, '<!doctype html><title>Not found</title>') },
    { title: 'nothing', first: sends(200) },
    { title: 'null', first: sends(200, 'null') },
    { title: 'a list that is none', first: sends(200, '{"skills":{}}') },
    {
      title: 'a sign-in elsewhere',
      first: (response) => { response.writeHead(302, { location: 'https://example.org/' }).end() }
    },
    { title: 'a byte order mark', second: (response, text) => { response.end(`\ufeff${text}`) } },
    {
      title: 'gzip',
      second: (response, text) => { response.writeHead(200, { 'content-encoding': 'GZIP' }).end(gzipSync(text)) }
    },
    { title: 'no index at all', second: sends(404), error: 'not_found' },
    { title: 'pages everywhere', first: sends(200, '<html>'), second: sends(200, '<html>'), error: 'bad_answer' },
    { title: 'refusals everywhere', first: sends(403), second: sends(404), error: 'auth_failed' },
    { title: 'status 503', first: sends(503), error: 'unreachable' },
    { title: 'silence', first: () => {}, error: 'timeout' }
  ]
  await Promise.all(habits.map(({ title, first, second, error }, index) => t.test(title, async (t) => {
    const texts = new Map([
      ['/.well-known/skills/index.json', JSON.stringify({ skills: [{ name: 'a', files: ['SKILL.md'] }] })],
      ['/.well-known/skills/a/SKILL.md', body]
    ])
    const site = await startServer(t, ({ url = '' }, response) => {
      const text = texts.get(url)
      if (text === undefined) (first ?? sends(404))(response)
      else if (second !== undefined) second(response, text)
      else response.end(text)
    })
    const source = sourceAt(`well-known+${site.url}`, { timeoutMs: 2_000 })
    const { status, skills } = await openSources(t, [source], { stateDir: join(t.testdirName, `state-${index}`) })
    if (error !== undefined) {
      t.match(status(), { state: 'failed', error: { code: error } })
      return
    }
    t.match(status(), { state: 'ok', skills: 1, left_out: undefined })
    const text = String(await textOf(() => skills.read('a', (skill) => skill.file('SKILL.md'))))
    t.equal(text.replace(/^\ufeff/, ''), body)
  })))
})

t.test('K87: artifacts of an index 0.2.0 that are sent compressed have the digest of their own bytes', async (t) => {
  const site = await startSite(t)
  const tar = publish(site, 'tar', zipOfTexts([['SKILL.md', skillText('tar')]]))
  site.files.set(INDEX, indexOf(publish(site, 'a'), tar))
  const { answer } = site
  site.answer = (request, response) => {
    const body = site.files.get(request.url ?? '')
    if (body === undefined) answer(request, response)
    else response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(body))
  }
  const { skills } = await openSources(t, [sourceAt(`well-known+${site.url}`)])
  t.strictSame(await skills.list(), ['a', 'tar'])
  t.equal(await textOf(() => skills.read('a', (skill) => skill.mainFile('SKILL.md'))), skillText('a'))
})

t.test('K87: an artifact that changes after its index was read is looked up in the index once more', async (t) => {
  const site = await startSite(t)
  const old = indexOf(publish(site, 'a'))
  const now = indexOf(publish(site, 'a', skillText('a', 'New.\n')))
  site.files.set(INDEX, old)
  const { answer } = site
  site.answer = (request, response) => {
    answer(request, response)
    if (request.url === '/a/a.md') site.files.set(INDEX, now)
  }
  const { status, skills } = await openSources(t, [sourceAt(`well-known+${site.url}`)])
  t.match(status(), { state: 'ok', skills: 1, left_out: undefined })
  t.match(await textOf(() => skills.read('a', (skill) => skill.mainFile('SKILL.md'))), /New/)
})

t.test('K85 K87: a site that is hostile, or goes away, leaves what was good before', async (t) => {
  const site = await startSite(t)
  site.files.set(INDEX, indexOf(publish(site, 'a')))
  const { sources, status, skills } = await openSources(t, [sourceAt(`well-known+${site.url}`, { timeoutMs: 2_000 })])
  const { answer } = site
  const endless = (response: ServerResponse): void => {
    response.write('[1],'.repeat(16_384), (error) => { if (error == null) endless(response) })
  }
  const faults: ReadonlyArray<readonly [string, FaultServer['answer']]> = [
    ['not_found', (_, response) => { response.writeHead(404).end() }],
    ['too_large', (_, response) => { endless(response) }],
    ['bad_answer', (_, response) => { response.end('['.repeat(100)) }],
    ['bad_answer', (_, response) => { response.end('<html>') }],
    ['bad_answer', (_, response) => { response.end('{"skills":[{"name":"a"}]}') }],
    ['not_found', (_, response) => { response.end('{"$schema":"https://example.org/9","skills":[]}') }],
    ['redirected', (_, response) => { response.writeHead(302, { location: 'https://example.org/' }).end() }],
    ['redirected',
      (_, response) => { response.writeHead(302, { location: site.url.replace('127.0.0.1', 'localhost') }).end() }],
    ['rate_limited', (_, response) => { response.writeHead(429).end() }],
    ['timeout', () => {}],
    ['timeout', (_, response) => { response.writeHead(200).write('{"skills":') }]
  ]
  for (const [code, fault] of faults) {
    site.answer = fault
    await sources.sync()
    t.match(status(), { state: 'stale', skills: 1, error: { code } })
  }
  t.strictSame(await skills.list(), ['a'])
  site.answer = (request, response) => {
    response.setHeader('content-type', 'image/png')
    answer(request, response)
  }
  await sources.sync()
  t.match(status(), { state: 'ok', skills: 1 }, 'it is back, with types that lie')
})

t.test('K83 K87: sites are given by address or in the file, with patterns of names and a token', async (t) => {
  const site = await startSite(t)
  site.files.set(INDEX, indexOf(publish(site, 'team-a'), publish(site, 'team-b'), publish(site, 'other')))
  const folder = t.testdir({ token: 'hunter22-token\n' })
  writeFileSync(join(folder, 'config.yaml'),
    `sources: [{ site: '${site.url}', include: [team-*], exclude: [team-b], auth: { token_file: token } }]`)
  const [source] = await readConfigFile(join(folder, 'config.yaml'))
  if (source === undefined || source.kind === 'folder') throw new Error('no source')
  const { status, skills } = await openSources(t, [source], { stateDir: join(folder, 'state') })
  t.match(status(), { name: `127.0.0.1-${new URL(site.url).port}`, state: 'ok', left_out: { count: 2 } })
  t.strictSame(await skills.list(), ['team-a'])
  t.ok(site.requests.every(({ headers }) => headers.authorization === 'Bearer hunter22-token'))
  t.notOk(site.requests.some(({ url }) => url === '/a/other.md'), 'what is not wanted is not fetched')
  for (const [address, message] of [
    ['well-known+http://example.org', /this machine only/], ['well-known+https://u:p@example.org', /password/],
    ['well-known+https://example.org/#x', /# is not allowed in a site address/], ['well-known+https://example.org/?x',
      /without a query/]
  ] as const) t.throws(() => sourceAt(address), { message })
})

t.test('K87 K93: what skillserve export writes is a site on any web server', async (t) => {
  const folder = t.testdir({ nginx: {} })
  const [out, nginxFolder] = [join(folder, 'out'), join(folder, 'nginx')]
  t.match(await runHere(['export', out, EXAMPLES]), { code: 0 })
  const plain = await serveFolder(t, out)
  const nginx = hasProgram('nginx', '-v')
    ? [await startNginx(t, 'nginx/static.conf', { folder: nginxFolder, root: out, isPublic: true })]
    : []
  const examples = await startManager(t, [EXAMPLES])
  for (const [index, { url }] of [...nginx, plain].entries()) {
    const { skills, status, sources } =
      await openSources(t, [sourceAt(`well-known+${url}`)], { stateDir: join(t.testdirName, `state-${index}`) })
    t.match(status(), { state: 'ok', left_out: undefined })
    for (const name of await examples.list()) {
      t.strictSame(await skills.read(name, (skill) => skill.manifest()),
        await examples.read(name, (skill) => skill.manifest()), name)
    }
    const { changed_at: changedAt } = status()
    await sources.sync()
    t.equal(status().changed_at, changedAt, 'without ETags the index is compared by its bytes')
  }
})
