import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import type { FastifyInstance, InjectOptions } from 'fastify'
import { pino } from 'pino'
import { openAccess } from '../../src/access/access.ts'
import { patternOf } from '../../src/access/policy.ts'
import { createSecret, digestOf } from '../../src/access/secret.ts'
import { type AppOptions, buildApp } from '../../src/app.ts'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { createToolRegistry } from '../../src/tools/registry.ts'
import { createTools } from '../../src/tools/tools.ts'
import { followRoutes } from '../helper/build.ts'
import { until } from '../helper/skills.ts'
import { DIALECTS } from '../../src/tools/dialects/index.ts'
import { modernRequest } from '../helper/mcp.ts'

export const NAMES = ['alpha', 'alpha-2', 'beta', 'gamma', 'delta'] as const
const GROUPS = ['one', 'two'] as const
const ROOTS = ['first', 'second', 'third'] as const

/** A skill as the test writes it. */
interface Made {
  readonly name: string
  readonly displayName: string
  readonly words: string
  readonly isBroken: boolean
  readonly file: boolean
}

interface Rule {
  readonly groups: readonly string[]
  readonly roots: readonly string[] | undefined
  readonly skills: readonly string[] | undefined
}

export interface World {
  readonly roots: ReadonlyArray<readonly Made[]>
  readonly rules: readonly Rule[]
  readonly groups: readonly string[]
}

const made = fc.record<Made>({
  name: fc.constantFrom(...NAMES),
  displayName: fc.constantFrom('', '', ...NAMES),
  words: fc.constantFrom('orange lemon', 'orange', 'lemons and limes', 'pear orangery', 'nothing'),
  isBroken: fc.nat(5).map((number) => number === 0),
  file: fc.boolean()
})

/** Random catalogs, policies and callers. */
export const world: fc.Arbitrary<World> = fc.record({
  roots: fc.array(fc.uniqueArray(made, { selector: ({ name }) => name, maxLength: NAMES.length }),
    { minLength: 1, maxLength: ROOTS.length }),
  rules: fc.array(fc.record<Rule>({
    groups: fc.subarray([...GROUPS, 'authenticated', 'anonymous'], { minLength: 1 }),
    roots: fc.option(fc.subarray([...ROOTS], { minLength: 1 }), { nil: undefined }),
    skills: fc.option(fc.subarray(['alpha*', 'beta', '*a', 'nosuch'], { minLength: 1 }), { nil: undefined })
  }), { maxLength: 3 }),
  groups: fc.subarray([...GROUPS])
})

/** One that has everything at once: skills hidden by rules, by roots, and by others of their name. */
export const RICH_WORLD: World = {
  roots: [
    [madeOf('alpha'), madeOf('beta', { displayName: 'gamma', words: 'orange lemon' })],
    [
      madeOf('alpha', { words: 'lemons and limes', file: false }), madeOf('gamma', { words: 'pear orangery' }),
      madeOf('delta', { isBroken: true })
    ],
    [madeOf('alpha'), madeOf('alpha-2', { displayName: 'beta' })]
  ],
  rules: [
    { groups: ['one'], roots: ['second'], skills: ['alpha*', '*a'] },
    { groups: ['authenticated'], roots: ['third'], skills: undefined },
    { groups: ['two'], roots: undefined, skills: undefined }
  ],
  groups: ['one']
}

function madeOf (name: string, others: Partial<Made> = {}): Made {
  return { name, displayName: '', words: 'orange', isBroken: false, file: true, ...others }
}

function textOf ({ name, displayName, words, isBroken }: Made, root: string): string {
  return isBroken
    ? `---\nname: [\n---\n${words}`
    : `---\nname: ${displayName || name}\ndescription: Of ${words} in ${root}\n---\nMore ${words} of ${root}.\n`
}

function write (folder: string, root: string, skills: readonly Made[]): string {
  const path = join(folder, root)
  mkdirSync(path, { recursive: true })
  for (const skill of skills) {
    mkdirSync(join(path, skill.name))
    writeFileSync(join(path, skill.name, 'SKILL.md'), textOf(skill, root))
    if (skill.file) writeFileSync(join(path, skill.name, 'notes.txt'), `notes of ${root}`)
  }
  return path
}

/** What a caller can tell of an answer, without what differs between any two services. */
async function ask (app: FastifyInstance, options: InjectOptions, folder: string, token?: string) {
  const headers = {
    'x-request-id': 'same', ...options.headers, ...token !== undefined && { authorization: `Bearer ${token}` }
  }
  const response = await app.inject({ ...options, headers })
  // The paths of folders have other lengths, and each service counts its own changes.
  // A cursor begins with a checksum of what it is valid for, of its view too.
  const body = response.body.replaceAll(folder, '/FOLDER').replace(/"generation":\d+/, '"generation":0')
    .replace(/("next_cursor":")([\w-]+)/, (_, name: string, cursor: string) =>
      `${name}${Buffer.from(cursor, 'base64url').toString().replace(/^\["[\w:]+"/, '')}`)
  const isMoved = body !== response.body || body.includes('"generation":') ||
    response.headers['content-encoding'] !== undefined
  const kept = Object.entries(response.headers).filter(([name]) =>
    name !== 'date' && !(isMoved && (name === 'etag' || name === 'content-length')))
  const normal = kept.flatMap(([name, value]) => {
    const text = String(value)
    const control = text.replace('private, ', '').replace('public, max-age=0', 'max-age=0')
    const vary = text.split(', ').filter((item) => item !== 'Authorization' && item !== 'Cookie').join(', ')
    if (name === 'vary') return vary === '' ? [] : [[name, vary]]
    return [[name, name === 'cache-control' ? control : value]]
  })
  return { status: response.statusCode, headers: Object.fromEntries(normal), body }
}

/** Answers of both services to one question. */
type Compare = (label: string, guarded: object, alone: object) => void

/**
 * Compares each answer of a service with callers with that of a service that has nothing but what the caller sees.
 * Throws at a difference. Resolves with the routes that no question has reached.
 */
export async function compareServices ({ roots, rules, groups }: World, compare: Compare): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'skillserve-views-'))
  const closers: Array<() => Promise<unknown>> = []
  try {
    const token = createSecret('token')
    const rootNames = ROOTS.slice(0, roots.length)
    const policy = {
      tokens: [{ name: 'caller', sha256: digestOf(token), groups }],
      rules: rules.map((rule) =>
        ({ ...rule, roots: rule.roots?.filter((root) => rootNames.some((name) => name === root)) }))
        .filter((rule) => rule.roots === undefined || rule.roots.length > 0)
    }
    const file = join(folder, 'access.yaml')
    writeFileSync(file, JSON.stringify(policy))
    const own = new Set<string>([...groups, 'authenticated', 'anonymous'])
    const applying = policy.rules.filter((rule) => rule.groups.some((group) => own.has(group)))
    const sees = (root: string, name: string) => applying.some((rule) =>
      (rule.roots?.includes(root) ?? true) && (rule.skills?.some((skill) => patternOf(skill)(name)) ?? true))
    const isInView = (root: string) => applying.some((rule) => rule.roots?.includes(root) ?? true)

    const log = pino({ level: 'silent' })
    const all = createSkillManager({
      projectRoots: rootNames.map((root, index) => write(join(folder, 'all'), root, roots[index] ?? [])),
      watcher: false,
      log
    })
    closers.push(() => all.close())
    const access = await openAccess({ file, basePath: '', publicUrl: undefined, skills: all, log, env: {} })
    const visible = rootNames.flatMap((root, index) => isInView(root)
      ? [write(join(folder, 'own'), root, (roots[index] ?? []).filter(({ name }) => sees(root, name)))]
      : [])
    const alone = createSkillManager({
      projectRoots: visible.length > 0 ? visible : [write(join(folder, 'own'), 'none', [])], watcher: false, log
    })
    closers.push(() => alone.close())
    const options = { logger: log, version: '1', host: '127.0.0.1' }
    const build = async (own: Pick<AppOptions, 'skills' | 'access' | 'plugins'>) => {
      const app = await buildApp({ ...options, registry: createToolRegistry(createTools()), ...own })
      closers.unshift(() => app.close())
      return app
    }
    const routes = followRoutes()
    const guardedApp = await build({ skills: access.nothing, access, plugins: [routes.plugin] })
    const aloneApp = await build({ skills: alone })
    const openApp = await build({ skills: all })
    await all.start()
    await all.available()
    await alone.initialize()
    // The revision of a catalog is made in the background, from the first question on.
    const headers = { authorization: `Bearer ${token}` }
    await until(async () => {
      const answers = await Promise.all([guardedApp, aloneApp].map((app) => app.inject({ url: '/skills', headers })))
      return answers.every((answer) => 'catalog-revision' in answer.headers || answer.statusCode !== 200)
    })
    const ofContent = await questionsOfContent(NAMES, async (url) => await openApp.inject(url))
    const asked: readonly Question[] = [...questions(NAMES), ...ofContent]
    for (const [label, question] of asked) {
      // Without a root of its own, the other service has an empty one.
      if (visible.length === 0 && (question.url === '/readyz' || question.url === '/ui/status')) continue
      const guarded = await ask(guardedApp, question, join(folder, 'all'), token)
      compare(label, guarded, await ask(aloneApp, question, join(folder, 'own')))
    }
    return routes.missed()
  } finally {
    for (const close of closers) await close()
    rmSync(folder, { recursive: true })
  }
}

export type Question = readonly [label: string, options: InjectOptions]

const REVISION = `sha256:${'0'.repeat(64)}`

/** Arguments of each tool, for a skill. */
const ARGUMENTS: Readonly<Record<string, (name: string) => object>> = {
  list_skills: () => ({}),
  get_skill: (name) => ({ skill_name: name }),
  list_skill_files: (name) => ({ skill_name: name }),
  read_file_in_skill: (name) => ({ skill_name: name, file_path: 'notes.txt' }),
  search_skills: () => ({ query: 'orange lemon' }),
  Skill: (name) => ({ skill_name: name }),
  skill: (name) => ({ skill: name })
}

function json (url: string, payload: unknown): InjectOptions {
  return { method: 'POST', url, headers: { 'content-type': 'application/json' }, payload: JSON.stringify(payload) }
}

function mcp (method: string, params: Readonly<Record<string, unknown>> = {}): InjectOptions {
  const { headers, body } = modernRequest({ method, params })
  return { method: 'POST', url: '/mcp', headers: headers as Record<string, string>, payload: String(body) }
}

/** A message of revision 2025-11-25. */
function legacy (method: string, params: object): InjectOptions {
  const { headers, ...rest } = json('/mcp', { jsonrpc: '2.0', id: 1, method, params })
  return {
    ...rest,
    headers: { ...headers, accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' }
  }
}

/** Methods of MCP with their parameters, for a skill. */
export const MCP_METHODS: Readonly<Record<string, (name: string) => Readonly<Record<string, unknown>>>> = {
  'prompts/get': (name) => ({ name }),
  'resources/read': (name) => ({ uri: `skill://${name}/SKILL.md` }),
  'resources/directory/read': (name) => ({ uri: `skill://${name}` }),
  'skills/get': (name) => ({ uri: `skill://${name}/SKILL.md` }),
  'tools/call': (name) => ({ name: 'read_file_in_skill', arguments: { skill_name: name, file_path: 'SKILL.md' } }),
  'tools/list': () => ({}),
  'prompts/list': () => ({}),
  'resources/list': () => ({}),
  'resources/templates/list': () => ({}),
  'skills/list': () => ({}),
  'server/discover': () => ({})
}

/** Those of 2025-11-25 alone. */
export const LEGACY_METHODS: Readonly<Record<string, (name: string) => object>> = {
  initialize: () => ({ protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }),
  ping: () => ({}),
  'resources/subscribe': (name) => ({ uri: `skill://${name}/SKILL.md` }),
  'resources/unsubscribe': (name) => ({ uri: `skill://${name}/SKILL.md` })
}

/** Every question to every api, for names that are there, hidden and absent. */
export function questions (known: readonly string[]): readonly Question[] {
  const names = [...known, 'nosuch', '..']
  const [first = ''] = known
  const openai = (name: string, args: object) =>
    ({ id: 'c1', type: 'function', function: { name, arguments: JSON.stringify(args) } })
  const tools = createTools().map(({ name }) => name)
  const argumentsOf = (tool: string, name: string): object => {
    const make = ARGUMENTS[tool]
    if (make === undefined) throw new Error(`no arguments are known here for the tool ${tool}: add them`)
    return make(name)
  }
  const pages = [
    '/', '/skills', '/nosuch', '/catalog', '/agent/tools', '/agent/prompt', '/openapi.json', '/openapi.yaml', '/docs',
    '/docs/', '/readyz', '/llms.txt', '/ui', '/ui/', '/ui/skills', '/ui/skills/', '/ui/status', '/ui/assets/nosuch',
    '/ui/nosuch', '/mcp', '/.well-known/agent-skills/index.json', '/.well-known/skills/index.json',
    ...['index.html', 'swagger-initializer.js', 'swagger-ui.css', 'favicon-32x32.png'].map((name) =>
      `/docs/static/${name}`),
    ...['', '/files', '/files/SKILL.md', '/archive.zip', '/.well-known/agent-skills/index.json',
      '/.well-known/skills/index.json', `/.well-known/skills/${first}/SKILL.md`, '/nosuch'].map((rest) =>
        `/skills/${first}${rest}`),
    ...[`/catalog/${first}`, `/ui/skills/${first}`, `/ui/skills/${first}/files`, `/ui/skills/${first}/changes`,
      `/ui/skills/${first}/files/SKILL.md`, `/.well-known/skills/${first}/SKILL.md`],
    ...['SKILL.md', 'archive.zip'].map((file) => `/.well-known/agent-skills/${first}/${'0'.repeat(64)}/${file}`)
  ]
  const all: InjectOptions[] = [
    ...pages.flatMap((url) => [{ url }, { url, method: 'HEAD' as const }]),
    { url: '/', headers: { accept: 'text/html' } },
    ...['/catalog?limit=500&valid=true', '/catalog?valid=false', '/catalog?cursor=abc', '/catalog?limit=1',
      '/catalog?q=orange&limit=1', '/catalog?q=orange%20lemon&limit=1',
      `/catalog/${first}?target=all`].map((url) => ({ url })),
    ...['/ui/?root=second', '/ui/?root=third', '/ui/?severity=info', '/ui/?target=codex'].map((url) =>
      ({ url, headers: { accept: 'text/html' } })),
    ...['orange', 'lemon', 'orang', 'second', first, 'the', 'ornage'].flatMap((q) =>
      [{ url: `/catalog?q=${q}` }, { url: `/ui/?q=${q}` }]),
    ...['xml', 'json', 'markdown'].map((format) => ({ url: `/agent/prompt?format=${format}` })),
    { url: '/agent/prompt?budget=200' },
    ...['openai', 'anthropic', 'gemini', 'mcp'].map((format) => ({ url: `/agent/tools?toolset=all&format=${format}` })),
    {
      method: 'POST',
      url: '/validate',
      headers: { 'content-type': 'text/markdown' },
      payload: `---\nname: ${first}\ndescription: x\n---\nSee [it](../${first}/SKILL.md)`
    },
    ...names.map((name) => encodeURIComponent(name)).flatMap((name) => [
      ...['', '/files', '/files/SKILL.md', '/files/notes.txt', '/files/%2e%2e%2fx', '/archive.zip',
        '?revision=current', `?revision=${REVISION}`,
        '/.well-known/agent-skills/index.json', '/.well-known/skills/index.json',
        `/.well-known/skills/${name}/SKILL.md`].map((rest) => ({ url: `/skills/${name}${rest}` })),
      { url: `/skills/${name}`, headers: { 'if-none-match': '*' } },
      { url: `/skills/${name}/files/SKILL.md`, headers: { 'if-match': '"x"' } },
      { url: `/skills/${name}/files/SKILL.md`, headers: { range: 'bytes=0-3' } },
      { url: `/catalog/${name}` },
      { url: `/ui/skills/${name}` },
      ...['/files', '/changes', '/files/notes.txt'].map((rest) => ({ url: `/ui/skills/${name}${rest}` })),
      { url: `/.well-known/skills/${name}/SKILL.md` },
      { url: `/.well-known/agent-skills/${name}/${'0'.repeat(64)}/SKILL.md` }
    ]),
    ...names.flatMap((name) => [
      ...tools.map((tool) => json(`/agent/tools/${tool}`, argumentsOf(tool, name))),
      json('/agent/tool-call', [openai('get_skill', { skill_name: name }), openai('Skill', { skill_name: name })]),
      ...Object.entries(MCP_METHODS).map(([method, params]) => mcp(method, params(name)))
    ]),
    ...DIALECTS.map(({ example }) =>
      json('/agent/tool-call', JSON.parse(JSON.stringify(example).replaceAll('calculator', first)))),
    ...Object.entries(LEGACY_METHODS).map(([method, params]) => legacy(method, params(first)))
  ]
  const seen = new Set<string>()
  return all.map((options) => {
    const headers = Object.entries(options.headers ?? {}).filter(([name]) => /^(?:if-|range|accept$)/.test(name)).join()
    const body = typeof options.payload === 'string' ? options.payload.slice(0, 200) : ''
    return [`${options.method ?? 'GET'} ${String(options.url)} ${headers} ${body}`, options] as const
  }).filter(([label]) => !seen.has(label) && seen.add(label))
}

/**
 * Questions of somebody who knows digests and revisions of skills that it may not see. `all` answers for a service that
 * hides nothing.
 */
async function questionsOfContent (
  known: readonly string[], all: (url: string) => Promise<{ readonly statusCode: number, readonly body: string }>
): Promise<readonly Question[]> {
  const urls: string[] = []
  const { skills = [] } = JSON.parse((await all('/.well-known/agent-skills/index.json')).body) as {
    readonly skills?: ReadonlyArray<{ readonly url: string }>
  }
  urls.push(...skills.map(({ url }) => new URL(url, 'http://host/.well-known/agent-skills/index.json').pathname))
  for (const name of known) {
    const { statusCode, body } = await all(`/skills/${name}/files`)
    if (statusCode !== 200) continue
    const { revision } = JSON.parse(body) as { readonly revision: string }
    const query = `?revision=${encodeURIComponent(revision)}`
    urls.push(...['', '/files/SKILL.md', '/archive.zip'].map((rest) => `/skills/${name}${rest}${query}`))
  }
  return urls.map((url) => [`GET ${url} of its content`, { url }])
}
