import {
  existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, symlinkSync, writeFileSync
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { InjectOptions } from 'fastify'
import fp from 'fastify-plugin'
import t, { type Test } from 'tap'
import { LEGACY_METHODS, MCP_METHODS } from '../access/same-service.ts'
import { createSecret } from '../../src/access/secret.ts'
import { sha256 } from '../../src/core/shared/digest.ts'
import { SILENT } from '../../src/core/shared/log.ts'
import type { Principal } from '../../src/http/callers.ts'
import type { LineOutput } from '../../src/log.ts'
import { Audit } from '../../src/observe/audit.ts'
import { AuditLog } from '../../src/observe/audit-log.ts'
import { DIALECTS } from '../../src/tools/dialects/index.ts'
import { createTools } from '../../src/tools/tools.ts'
import { buildService, type Files, followRoutes, type ServiceOptions } from '../helper/build.ts'
import { listenRequest, modernRequest } from '../helper/mcp.ts'
import { until } from '../helper/skills.ts'

const STREAM = { accept: 'text/event-stream' }

const OPERATIONS = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')

/**
 * What each route leaves, by its pattern. Routes without an event read no skill; those with `calls` have a line for
 * each call.
 */
const ROUTES: Readonly<Record<string, string | undefined>> = {
  '/skills': 'skill.list',
  '/skills/:name': 'skill.read',
  '/skills/:name/files': 'skill.manifest',
  '/skills/:name/files/*': 'skill.file_read',
  '/skills/:name/archive.zip': 'skill.archive',
  '/catalog': 'skill.list',
  '/catalog/:name': 'skill.entry',
  '/events': 'events.open',
  '/agent/prompt': 'skill.list',
  '/agent/tool-call': 'calls',
  '/agent/tools/:name': 'calls',
  '/mcp': 'calls',
  '/llms.txt': 'skill.list',
  '/.well-known/agent-skills/index.json': 'discovery.index',
  '/.well-known/skills/index.json': 'discovery.index',
  '/.well-known/skills/:name/*': 'skill.file_read',
  '/.well-known/agent-skills/:name/:digest/SKILL.md': 'skill.read',
  '/.well-known/agent-skills/:name/:digest/archive.zip': 'skill.archive',
  '/skills/:name/.well-known/agent-skills/index.json': 'discovery.index',
  '/skills/:name/.well-known/skills/index.json': 'discovery.index',
  '/skills/:name/.well-known/skills/:skill/*': 'skill.file_read',
  '/ui/skills/:name': 'skill.read',
  '/ui/skills/:name/files': 'skill.read',
  '/ui/skills/:name/changes': 'skill.read',
  '/ui/skills/:name/files/*': 'skill.file_read'
}

/** What each method of MCP leaves. */
const METHODS: Readonly<Record<string, string | undefined>> = {
  'prompts/get': 'skill.read',
  'prompts/list': 'skill.list',
  'resources/read': 'skill.read',
  'resources/directory/read': 'skill.manifest',
  'resources/list': 'skill.list',
  'skills/get': 'skill.entry',
  'skills/list': 'skill.list',
  'tools/call': 'skill.read'
}

const SKILL = '---\nname: demo\ndescription: A demo\n---\n# Demo with CANARY-CONTENT\n'
const FILES = { demo: { 'SKILL.md': SKILL, 'a.txt': 'text' } }

interface AuditLine {
  readonly event: string
  readonly outcome: string
  readonly door: string
  readonly principal: object
  readonly source: { readonly address: string }
  readonly target: Readonly<Record<string, unknown>>
  readonly [name: string]: unknown
}

const NO_OUTPUT: LineOutput = { dropped: 0, problem: undefined, write () {}, flush () {}, end: async () => 0 }

function parse (text: string): AuditLine[] {
  return text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as AuditLine)
}

/** A log whose lines are at hand. */
function recordLog () {
  const lines: string[] = []
  const log = {
    info: (_: object, line: string) => { lines.push(line) },
    warn: (fields: object, line: string) => { lines.push(`${line} ${JSON.stringify(fields)}`) }
  }
  return { lines, log }
}

/** A request of MCP 2026-07-28. */
function modern (method: string, params: Readonly<Record<string, unknown>>, more = {}): InjectOptions {
  const { headers, body } = modernRequest({ method, params })
  return { method: 'POST', url: '/mcp', headers: { ...headers as object, ...more }, payload: String(body) }
}

interface AuditedOptions extends Pick<ServiceOptions, 'admitCall' | 'plug'> {
  readonly files?: Files
  readonly salt?: string
  /** Why lines cannot be written. */
  readonly problem?: () => string | undefined
}

/** A service whose audit log is at hand, and required. */
async function buildAudited (t: Test, { files = FILES, salt, problem, ...options }: AuditedOptions = {}) {
  let text = ''
  const stdout: LineOutput = {
    ...NO_OUTPUT, write: (line) => { text += line }, get problem () { return problem?.() }
  }
  const audit = await Audit.open({
    path: 'stdout', stdout, auditRequired: true, version: '1', auditSalt: salt, log: SILENT
  })
  const service = await buildService(t, {
    files,
    options: {
      ...options,
      auditState: () => audit.log.state,
      observe: () => [audit],
      plug: (skills) => [audit.plugin, ...options.plug?.(skills) ?? []]
    }
  })
  const lines = () => parse(text)
  return {
    ...service,
    audit,
    text: () => text,
    clear: () => { text = '' },
    /** The next lines, once there are so many of them; fails by the test's time limit. */
    next: async (count: number) => {
      await until(() => lines().length >= count)
      const found = lines()
      text = ''
      return found
    }
  }
}

const { plugin: routes, all: allRoutes } = followRoutes()
const shared = await buildAudited(t, { plug: () => [routes] })

t.test('K73, K96: a line says what was read, by whom, with which outcome and digest, and the revision where the ' +
  'answer knew it', async (t) => {
  const { fetch, post, next } = shared
  const { headers } = await fetch('/skills/demo?revision=current')
  const revision = headers.get('skill-revision')
  const document = await fetch('/skills/demo')
  await fetch('/skills/demo', { headers: { 'if-none-match': document.headers.get('etag') ?? '' } })
  await fetch('/skills/demo/files')
  const read = { event: 'skill.read', door: 'rest', principal: { kind: 'anonymous' }, source: { address: '127.0.0.1' } }
  const target = { skill: 'demo', root: 'skills', digest: sha256(document.bytes) }
  t.match(await next(4), [
    { ...read, outcome: 'success', target: { ...target, revision } },
    { ...read, outcome: 'success', target: { ...target, bytes: document.bytes.length } },
    { ...read, outcome: 'not_modified', target },
    { event: 'skill.manifest', outcome: 'success', target: { skill: 'demo', revision } }
  ])
  for (const [path, event, target] of [
    ['/catalog', 'skill.list', { skills: 1 }],
    ['/catalog?q=demo', 'skill.search', { query: 'demo', results: 1 }],
    [`/catalog?q=${'many%20'.repeat(180)}`, 'skill.search', { query: 'many '.repeat(40), results: 0 }]
  ] as const) {
    await fetch(path)
    t.match(await next(1), [{ event, outcome: 'success', door: 'rest', target }], path)
  }
  const call = (name: string, args: string) => ({ id: name, type: 'function', function: { name, arguments: args } })
  await post('/agent/tool-call', [
    call('get_skill', '{"skill_name":"demo"}'),
    call('read_file_in_skill', '{"skill_name":"demo","file_path":"a.txt"}'),
    call('get_skill', '{"skill_name":"none"}')
  ])
  const lines = (await next(3)).map(({ event, outcome, door, target }) =>
    `${event} ${outcome} ${door} ${String(target['skill'])}`)
  t.strictSame(lines.sort(), [
    'skill.file_read success tool-call/openai demo',
    'skill.read not_found tool-call/openai none',
    'skill.read success tool-call/openai demo'
  ], 'the calls of a batch end in any order')
})

t.test('K73: every route says what its requests read, or is open to all and says nothing about skills', async (t) => {
  t.ok(allRoutes.length > 40)
  // The routes of @fastify/swagger-ui and @fastify/static say nothing, and are about no skill.
  const own = allRoutes.filter(({ url }) => !/^\/(?:docs|ui\/assets)(?:\/|$)/.test(url))
  t.strictSame(own.filter(({ config: { reads, isOpen } }) => (reads === undefined) !== (isOpen === true))
    .map(({ method, url }) => `${method} ${url}`), [])
})

t.test('K73: every route, dialect, tool and method of MCP leaves exactly one line for a read, with the members that ' +
  'the documents have', async (t) => {
  const { app, text } = shared
  /** Characters of the log. */
  let seen = text().length
  const found: AuditLine[] = []
  /** The lines of one request. */
  const linesOf = async (question: InjectOptions): Promise<AuditLine[]> => {
    const before = seen
    await app.inject(question)
    // The line of a request whose answer reads nothing follows all of those before it.
    await app.inject('/skills/end-of-the-lines')
    for (;;) {
      const lines = parse(text().slice(before))
      if (lines.at(-1)?.target['skill'] !== 'end-of-the-lines') {
        await new Promise((resolve) => setTimeout(resolve, 5))
        continue
      }
      seen = text().length
      const own = lines.slice(0, -1)
      found.push(...own)
      return own
    }
  }
  const json = (url: string, body: unknown, more = {}): InjectOptions =>
    ({ method: 'POST', url, headers: { 'content-type': 'application/json', ...more }, payload: JSON.stringify(body) })

  const unknown = new Set(Object.keys(ROUTES))
  for (const { method, url } of allRoutes.filter(({ method, url }) =>
    method === 'GET' && ROUTES[url] !== 'events.open' && url !== '/mcp')) {
    unknown.delete(url)
    const event = ROUTES[url]
    const path = url.replace(':digest', '0'.repeat(64)).replaceAll(/:\w+/g, 'demo').replace('*', 'a.txt')
    t.strictSame((await linesOf({ method: 'GET', url: path })).map((line) => line.event),
      event === undefined ? [] : [event], `${method} ${url}`)
  }
  t.strictSame([...unknown].sort(), ['/agent/tool-call', '/agent/tools/:name', '/events', '/mcp'],
    'those below, and the streams')

  for (const [url, event] of [['/', 'skill.list'], ['/?q=demo', 'skill.search']]) {
    const lines = await linesOf({ url: String(url), headers: { accept: 'text/html,*/*;q=0.8' } })
    t.match(lines, [{ event, door: 'ui', outcome: 'success' }], 'the same for browsers')
  }
  for (const [query, lines] of [
    ['toolset=wave&format=anthropic', 1], ['toolset=all&format=mcp', 1], ['toolset=all', 0],
    ['toolset=reader&format=mcp', 0]
  ] as const) {
    const found = await linesOf({ url: `/agent/tools?${query}` })
    t.match(found, [{ event: 'skill.list', door: 'rest', outcome: 'success', target: { skills: 1 } }].slice(0, lines),
      `${query}: descriptions with all skills`)
    t.equal(found.length, lines, query)
  }
  for (const { name, example } of DIALECTS) {
    const body: unknown = JSON.parse(JSON.stringify(example).replaceAll('calculator', 'demo'))
    const lines = await linesOf(json('/agent/tool-call', body))
    const target = { skill: 'demo', root: 'skills' }
    t.match(lines, [{ event: 'skill.read', outcome: 'success', door: /^tool-call\/\w/, target }], name)
    t.equal(lines.length, 1, name)
  }
  for (const { name } of createTools()) {
    const all = { skill_name: 'demo', skill: 'demo', file_path: 'a.txt', query: 'demo' }
    t.equal((await linesOf(json(`/agent/tools/${name}`, all))).length, 1, name)
  }
  for (const [method, params] of Object.entries(MCP_METHODS)) {
    const lines = await linesOf(modern(method, params('demo')))
    t.match(lines, METHODS[method] === undefined ? [] : [{ event: METHODS[method], door: 'mcp/modern' }], method)
    t.ok(lines.length <= 1, method)
  }
  for (const method of ['resources/read', 'prompts/get', 'tools/call', ...Object.keys(LEGACY_METHODS)]) {
    const params = (MCP_METHODS[method] ?? LEGACY_METHODS[method])?.('demo')
    const lines = await linesOf(json('/mcp', { jsonrpc: '2.0', id: 1, method, params },
      { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' }))
    t.match(lines, METHODS[method] === undefined ? [] : [{ event: METHODS[method], door: 'mcp/legacy' }], method)
    t.ok(lines.length <= 1, method)
  }
  for (const method of ['skills/get', 'resources/directory/read', 'resources/read', 'prompts/get']) {
    const event = method === 'resources/read' ? 'skill.file_read' : METHODS[method]
    const lines = await linesOf(modern(method, { unknown: 'demo' }))
    t.match(lines, [{ event, outcome: 'failure' }], `${method} without parameters`)
  }
  for (const method of ['skills/list', 'resources/read']) {
    for (const wrong of ['mcp-method', 'mcp-protocol-version']) {
      const lines = await linesOf(modern(method, { uri: 'skill://demo/a.txt' }, { [wrong]: 'other' }))
      t.match(lines, [{ event: METHODS[method]?.replace('skill.read', 'skill.file_read'), outcome: 'failure' }],
        `${method}: a wrong ${wrong} is refused`)
      t.equal(lines.length, 1, `${method}: ${wrong}`)
    }
  }

  const table = Array.from(OPERATIONS.matchAll(/^\| (`[^|]*`) \| (.*) \|$/gm),
    ([, names = '', meaning = '']) =>
      ({ names: Array.from(names.matchAll(/`([\w-]+)`/g), ([, name = '']) => name), meaning }))
  const documented = new Set(table.flatMap(({ names }) => names))
  const members = new Set(found.flatMap((line) => Object.keys(line)))
  t.strictSame([...members].filter((member) => !documented.has(member)), [], 'members without a line in the table')
  t.ok(members.size >= 10)
  const ofTarget = table.find(({ names }) => names.includes('target'))?.meaning ?? ''
  const targets = new Set(found.flatMap(({ target }) => Object.keys(target)))
  t.strictSame([...targets].filter((member) => !ofTarget.includes(`\`${member}`)), [], 'members of target')
  const ofApi = table.find(({ names }) => names.includes('door'))?.meaning ?? ''
  const apis = new Set(found.map(({ door }) => door.replace(/^tool-call\/.*/, 'tool-call/')))
  t.strictSame([...apis].filter((api) => !ofApi.includes(`\`${api}\``)), [], 'APIs')
})

t.test('K61: no line holds a token that a caller puts where a name belongs', async (t) => {
  const { app, next, clear } = shared
  clear()
  const token = createSecret('token')
  await app.inject(`/skills/${token}`)
  await app.inject(`/skills/demo/files/${token.replace('s', '%2573')}`)
  await app.inject({
    method: 'POST',
    url: '/agent/tools/get_skill',
    headers: { 'content-type': 'application/json' },
    payload: JSON.stringify({ skill_name: token })
  })
  await app.inject(modern('resources/read', { uri: `skill://${token}/${token}` }))
  const lines = await next(4)
  t.notMatch(JSON.stringify(lines), token.slice(12, 30))
  t.match(lines.map(({ target }) => target),
    [{ skill: '-' }, { skill: 'demo', path: '-' }, { skill: '-' }, { skill: '-', path: '-' }])
})

t.test('K73: a read of a kept revision names that revision, and not the present one', async (t) => {
  for (const files of [{ 'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# One\n' }, {
    'SKILL.md': '---\nname: demo\ndescription: A demo\n---\n# One\n', 'a.txt': 'text'
  }]) {
    const { fetch, post, next, root } = await buildAudited(t, { files: { demo: files } })
    const revision = (await fetch('/skills/demo/files')).headers.get('skill-revision')
    const { skills: [entry] } = (await fetch('/.well-known/agent-skills/index.json')).json() as {
      readonly skills: ReadonlyArray<{ readonly url: string }>
    }
    await next(2)
    writeFileSync(join(root, 'demo/SKILL.md'), '---\nname: demo\ndescription: A demo\n---\n# Two\n')
    const answers = [
      await post(`/agent/tools/get_skill?revision=${String(revision)}`, { skill_name: 'demo' }),
      await post(`/agent/tools/skill?revision=${String(revision)}`, { skill: 'demo' }),
      await post(`/agent/tool-call?revision=${String(revision)}`,
        { id: 'a', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"demo"}' } }),
      await fetch(`/.well-known/agent-skills/${String(entry?.url)}`)
    ]
    for (const { text } of answers) t.match(text, '# One')
    t.strictSame((await next(4)).map(({ target }) => target['revision']), answers.map(() => revision))
    t.equal(answers.at(-1)?.headers.get('skill-revision'), revision, 'an artifact is of one revision')
  }
})

t.test('K73: refusals say so, and probes and pages about nothing leave no line', async (t) => {
  const { fetch, post, raw, next } = await buildAudited(t,
    { admitCall: async (_request, tool) => tool?.name === 'list_skills' ? 'Rate limit: try again in 1 s' : undefined })
  await fetch('/livez')
  await fetch('/readyz')
  await fetch('/')
  await fetch('/skills/none')
  await raw('GET', '/skills', { host: 'evil.example' })
  await raw('GET', '/openapi.json', { host: 'evil.example' })
  t.match(await next(3), [
    { event: 'skill.read', outcome: 'not_found', target: { skill: 'none', code: 'skill_not_found' } },
    { event: 'skill.list', outcome: 'denied', target: { code: 'host_not_allowed' } },
    { event: 'access.denied', outcome: 'denied', door: 'rest', target: { code: 'host_not_allowed' } }
  ])
  await post('/agent/tool-call', { no: 'call' })
  await post('/agent/tools/get_skill', '{')
  await post('/agent/tool-call', { function: { name: 'list_skills' } })
  t.match(await next(3), [
    { event: 'access.denied', outcome: 'failure', door: 'tool-call', target: { code: 'unrecognised_tool_call' } },
    { event: 'access.denied', outcome: 'failure', door: 'rest', target: { code: 'invalid_json' } },
    { event: 'skill.list', outcome: 'denied', door: 'tool-call/openai' }
  ])
})

t.test('K73: a line that a crash has cut off is ended before the first new one, and a whole one is left', async (t) => {
  const path = join(t.testdir({ 'audit.log': '{"event":"ski' }), 'audit.log')
  for (const time of ['first', 'second']) {
    const audit = await Audit.open({
      path, stdout: NO_OUTPUT, auditRequired: true, version: '1', auditSalt: undefined, log: SILENT
    })
    t.teardown(async () => { await audit.close() })
    t.equal(readFileSync(path, 'utf8'), '{"event":"ski\n', time)
  }
})

t.test('K73: a reopening that fails is a failure until the path is open, and costs counted lines', async (t) => {
  const FAULTS = [
    { code: 'EISDIR', breakPath: (path: string) => { mkdirSync(path) }, repair: (path: string) => { rmdirSync(path) } },
    {
      code: 'ENOENT',
      breakPath: (path: string) => { renameSync(dirname(path), `${dirname(path)}.away`) },
      repair: (path: string) => { renameSync(`${dirname(path)}.away`, dirname(path)) }
    }
  ]
  for (const { code, breakPath, repair } of FAULTS) {
    const path = join(t.testdir({ logs: {} }), 'logs/audit.jsonl')
    const { log, lines } = recordLog()
    const audit = await AuditLog.open({ path, stdout: NO_OUTPUT, auditRequired: true, log })
    audit.append('skill.read', 'success', { skill: 'one' })
    renameSync(path, `${path}.1`)
    breakPath(path)
    await audit.reopen()
    t.equal(audit.state, 'refusing', code)
    audit.append('skill.read', 'success', { skill: 'two' })
    t.equal(audit.dropped, 1)
    await audit.reopen()
    t.equal(audit.state, 'refusing', 'for as long as it takes')
    repair(path)
    await until(() => audit.state === 'working')
    audit.append('skill.read', 'success', { skill: 'three' })
    audit.close()
    const skillsIn = (file: string) =>
      [...readFileSync(file, 'utf8').matchAll(/"skill":"(\w+)"/g)].map(([, name]) => name)
    await until(() => skillsIn(path).length > 0)
    t.strictSame([skillsIn(`${path}.1`), skillsIn(path)], [['one'], ['three']])
    t.match(lines, [new RegExp(`^audit log cannot be written.*${code}`), 'audit log is written again'])
  }
})

t.test('K73: a hundred rotations under load lose no line, and leave no descriptor and no ' +
  'listener behind', async (t) => {
  const path = join(t.testdir({}), 'audit.jsonl')
  const audit = await AuditLog.open({ path, stdout: NO_OUTPUT, auditRequired: false, log: SILENT })
  const opened = () => [readdirSync('/proc/self/fd').length, process.listenerCount('exit')]
  const [descriptors = 0, listeners = 0] = opened()
  for (let i = 0; i < 100; i++) {
    renameSync(path, `${path}.${i}`)
    const reopened = audit.reopen()
    audit.append('skill.read', 'success', { skill: String(i) })
    await reopened
  }
  // Those of tests before may end meanwhile.
  await until(() => (opened()[1] ?? 0) <= listeners && (opened()[0] ?? 0) <= descriptors + 1)
  audit.close()
  const text = () => readdirSync(dirname(path)).map((name) => readFileSync(join(dirname(path), name), 'utf8')).join('')
  await until(() => text().split('\n').length === 101)
  t.equal(new Set(text().matchAll(/"skill":"\d+"/g)).size, 100)
})

t.test('K73: with a salt no name and no address is in it, and equal ones stay equal', async (t) => {
  const ann: Principal = {
    id: 'jwt:https://login.example/ann', name: 'ann', kind: 'jwt', groups: ['docs'], scopes: new Set(), view: ''
  }
  const login = fp(async (app) => {
    app.addHook('onRequest', async (request) => { if (request.url === '/catalog') request.principal = ann })
  })
  const { fetch, text, audit } = await buildAudited(t, { salt: 'a salt of some length', plug: () => [login] })
  for (const path of ['/skills', '/skills', '/catalog', '/catalog']) {
    await fetch(path, { headers: { 'x-forwarded-for': '203.0.113.7' } })
  }
  await audit.close()
  t.notMatch(text(), /ann|login/)
  const [, , ...ofAnn] = parse(text()).map(({ principal }) => principal)
  t.match(ofAnn, Array(2).fill({ kind: 'jwt', id: /^[\da-f]{24}$/, groups: ['docs'] }))
  t.strictSame(ofAnn[0], ofAnn[1])
  t.notMatch(text(), '127.0.0.1')
  t.notMatch(text(), '203.0.113.7')
  const [one, two] = parse(text()).map(({ source }) => source.address)
  t.match(one, /^[\da-f]{24}$/)
  t.equal(one, two)
})

t.test('K73: an address without valid credentials has twenty lines a minute, and then one with ' +
  'their number', async (t) => {
  const refuse = fp(async (app) => {
    app.addHook('onRequest', async ({ url }, reply) => url === '/skills' ? reply.code(401).send() : undefined)
  })
  const { app, text, audit } = await buildAudited(t, { plug: () => [refuse] })
  for (let i = 0; i < 25; i++) await app.inject({ url: '/skills', remoteAddress: '192.0.2.1' })
  await app.inject({ url: '/skills', remoteAddress: '192.0.2.2' })
  await audit.close()
  const lines = parse(text()).filter(({ event }) => event === 'auth.failed')
  t.equal(lines.length, 22)
  t.match(lines.at(-1), { outcome: 'denied', target: { count: 5 }, source: { address: '192.0.2.1' } })
})

t.test('K73: a stream leaves its line when it opens, and none when it ends', async (t) => {
  const { app, url, next, text, audit } = shared
  for (const [path, init, door] of [
    ['/events', { headers: STREAM }, 'rest'],
    ['/mcp', { headers: STREAM }, 'mcp/legacy'],
    ['/mcp', listenRequest(), 'mcp/modern']
  ] as const) {
    const gone = new AbortController()
    t.teardown(() => { gone.abort() })
    const response = await fetch(`${url}${path}`, { ...init, signal: gone.signal })
    t.equal(response.status, 200)
    t.match(await next(1), [{
      event: 'events.open',
      outcome: 'success',
      door,
      principal: { kind: 'anonymous' },
      source: { peer: '127.0.0.1' },
      reqId: String
    }])
    gone.abort()
    await t.rejects(response.text())
  }
  // Every response has closed then.
  await app.close()
  await audit.close()
  t.equal(text(), '')
})

t.test('K73: where the log is required, no skill is read while lines cannot be written', async (t) => {
  let problem: string | undefined
  const { fetch } = await buildAudited(t, { problem: () => problem })
  for (const [code, status] of [[undefined, 200], ['ENOSPC', 503], [undefined, 200]] as const) {
    problem = code
    const statuses = await Promise.all(['/skills/demo', '/readyz', '/livez'].map(async (path) => await fetch(path)))
    t.strictSame(statuses.map((each) => each.status), [status, status, 200])
    if (status === 503) t.match(statuses.map(({ text }) => text), [/audit_unavailable/, /AUDIT_REQUIRED refuses reads/])
  }
})

t.test('K73: a full disk costs lines, or reads where the log is required, until there is room', {
  skip: existsSync('/dev/full') ? false : 'there is no /dev/full'
}, async (t) => {
  for (const [auditRequired, state] of [[false, 'failing'], [true, 'refusing']] as const) {
    const path = join(t.testdir(), 'audit.jsonl')
    symlinkSync('/dev/full', path)
    const { log, lines } = recordLog()
    const audit = await AuditLog.open({ path, stdout: NO_OUTPUT, auditRequired, log })
    audit.append('skill.read', 'success', { skill: 'one' })
    await until(() => audit.state === state && lines.length === 1)
    rmSync(path)
    await audit.reopen()
    t.equal(audit.state, 'working')
    audit.append('skill.read', 'success', { skill: 'two' })
    audit.close()
    await until(() => readFileSync(path, 'utf8').includes('"two"'))
    t.match(lines, [/^audit log cannot be written, trying again each second; .*ENOSPC/, 'audit log is written again'])
  }
})
