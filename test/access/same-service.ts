import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import type { FastifyInstance, InjectOptions } from 'fastify'
import { pino } from 'pino'
import { openGuarded } from '../../src/access/open.ts'
import { patternOf } from '../../src/access/policy.ts'
import { createSecret, digestOf } from '../../src/access/secret.ts'
import { buildApp } from '../../src/app.ts'
import { createSkillManager } from '../../src/core/skill-manager.ts'
import { createToolRegistry } from '../../src/tools/registry.ts'
import { createTools } from '../../src/tools/tools.ts'
import { modernRequest } from '../helper/mcp.ts'

const NAMES = ['alpha', 'alpha-2', 'beta', 'gamma', 'delta'] as const
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
  roots: fc.array(fc.uniqueArray(made, { selector: ({ name }) => name, maxLength: NAMES.length }), { minLength: 1, maxLength: ROOTS.length }),
  rules: fc.array(fc.record<Rule>({
    groups: fc.subarray([...GROUPS, 'authenticated', 'anonymous'], { minLength: 1 }),
    roots: fc.option(fc.subarray([...ROOTS], { minLength: 1 }), { nil: undefined }),
    skills: fc.option(fc.subarray(['alpha*', 'beta', '*a', 'nosuch'], { minLength: 1 }), { nil: undefined })
  }), { maxLength: 3 }),
  groups: fc.subarray([...GROUPS])
})

function textOf ({ name, displayName, words, isBroken }: Made, root: string): string {
  return isBroken ? `---\nname: [\n---\n${words}` : `---\nname: ${displayName || name}\ndescription: Of ${words} in ${root}\n---\nMore ${words} of ${root}.\n`
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

const REVISION = `sha256:${'0'.repeat(64)}`

/** Every question, for names that are there, hidden and absent. */
function questions (): Array<readonly [label: string, options: InjectOptions]> {
  const json = (url: string, payload: unknown): InjectOptions => ({ method: 'POST', url, headers: { 'content-type': 'application/json' }, payload: JSON.stringify(payload) })
  const mcp = (method: string, params: Readonly<Record<string, unknown>> = {}): InjectOptions => {
    const { headers, body } = modernRequest({ method, params })
    return { method: 'POST', url: '/mcp', headers: headers as Record<string, string>, payload: String(body) }
  }
  const openai = (name: string, args: object) => ({ id: 'c1', type: 'function', function: { name, arguments: JSON.stringify(args) } })
  const names = [...NAMES, 'nosuch', '..']
  const all: InjectOptions[] = [
    ...['/', '/skills', '/nosuch', '/catalog', '/catalog?limit=500&valid=true', '/catalog?valid=false', '/catalog?cursor=abc', '/openapi.json',
      '/.well-known/agent-skills/index.json', '/.well-known/skills/index.json', '/llms.txt', '/ui/'].map((url) => ({ url })),
    ...['orange', 'lemon', 'orang', 'second', 'alpha', 'the', 'ornage'].map((q) => ({ url: `/catalog?q=${q}` })),
    ...['xml', 'json', 'markdown'].map((format) => ({ url: `/agent/prompt?format=${format}` })),
    { url: '/agent/prompt?budget=200' },
    ...['openai', 'anthropic', 'gemini', 'mcp'].map((format) => ({ url: `/agent/tools?toolset=all&format=${format}` })),
    ...names.map((name) => encodeURIComponent(name)).flatMap((name) => [
      ...['', '/files', '/files/SKILL.md', '/files/notes.txt', '/files/%2e%2e%2fx', '/archive.zip', '?revision=current', `?revision=${REVISION}`,
        '/.well-known/agent-skills/index.json', '/.well-known/skills/index.json', `/.well-known/skills/${name}/SKILL.md`].map((rest) => ({ url: `/skills/${name}${rest}` })),
      { url: `/skills/${name}`, headers: { 'if-none-match': '*' } },
      { url: `/skills/${name}/files/SKILL.md`, headers: { 'if-match': '"x"' } },
      { url: `/skills/${name}/files/SKILL.md`, headers: { range: 'bytes=0-3' } },
      { url: `/skills/${name}`, method: 'HEAD' as const },
      { url: `/catalog/${name}` },
      { url: `/ui/skills/${name}` },
      { url: `/.well-known/skills/${name}/SKILL.md` },
      { url: `/.well-known/agent-skills/${name}/${'0'.repeat(64)}/SKILL.md` }
    ]),
    ...names.flatMap((name) => [
      ...['get_skill', 'Skill', 'list_skill_files'].map((tool) => json(`/agent/tools/${tool}`, { skill_name: name })),
      json('/agent/tools/skill', { skill: name }),
      json('/agent/tools/read_file_in_skill', { skill_name: name, file_path: 'notes.txt' }),
      json('/agent/tool-call', [openai('get_skill', { skill_name: name }), openai('Skill', { skill_name: name })]),
      json('/agent/tool-call', { type: 'tool_use', id: 't1', name: 'get_skill', input: { skill_name: name } }),
      mcp('resources/read', { uri: `skill://${name}/SKILL.md` }),
      mcp('resources/directory/read', { uri: `skill://${name}` }),
      mcp('prompts/get', { name }),
      mcp('skills/get', { uri: `skill://${name}/SKILL.md` }),
      mcp('tools/call', { name: 'read_file_in_skill', arguments: { skill_name: name, file_path: 'SKILL.md' } })
    ]),
    json('/agent/tools/list_skills', {}),
    json('/agent/tools/search_skills', { query: 'orange lemon' }),
    ...['tools/list', 'resources/list', 'prompts/list', 'skills/list', 'resources/templates/list'].map((method) => mcp(method))
  ]
  return all.map((options) => [`${options.method ?? 'GET'} ${String(options.url)} ${typeof options.payload === 'string' ? options.payload.slice(0, 120) : ''}`, options])
}

/** What a caller can tell of an answer, without what differs between any two services. */
async function ask (app: FastifyInstance, options: InjectOptions, folder: string, token?: string): Promise<object> {
  const headers = { 'x-request-id': 'same', ...options.headers, ...token !== undefined && { authorization: `Bearer ${token}` } }
  const response = await app.inject({ ...options, headers })
  const body = response.body.replaceAll(folder, '/FOLDER')
  // The paths of folders have other lengths.
  const isMoved = body !== response.body || response.headers['content-encoding'] !== undefined
  const kept = Object.entries(response.headers).filter(([name]) => name !== 'date' && !(isMoved && (name === 'etag' || name === 'content-length')))
  const normal = Object.fromEntries(kept.map(([name, value]) => {
    if (name === 'vary') return [name, String(value).split(', ').filter((item) => item !== 'Authorization').join(', ') || undefined]
    return [name, name === 'cache-control' ? String(value).replace('private, ', '') : value]
  }).filter(([, value]) => value !== undefined))
  return { status: response.statusCode, headers: normal, body }
}

/** Compares each answer of a service with callers with that of a service that has nothing but what the caller sees. Throws at a difference. */
export async function compareServices ({ roots, rules, groups }: World, compare: (label: string, guarded: object, alone: object) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'skillserve-views-'))
  const closers: Array<() => Promise<unknown>> = []
  try {
    const token = createSecret('token')
    const rootNames = ROOTS.slice(0, roots.length)
    const policy = {
      tokens: [{ name: 'caller', sha256: digestOf(token), groups }],
      rules: rules.map((rule) => ({ ...rule, roots: rule.roots?.filter((root) => rootNames.some((name) => name === root)) }))
        .filter((rule) => rule.roots === undefined || rule.roots.length > 0)
    }
    const file = join(folder, 'access.yaml')
    writeFileSync(file, JSON.stringify(policy))
    const own = new Set<string>([...groups, 'authenticated', 'anonymous'])
    const applying = policy.rules.filter((rule) => rule.groups.some((group) => own.has(group)))
    const sees = (root: string, name: string) => applying.some((rule) => (rule.roots?.includes(root) ?? true) && (rule.skills?.some((skill) => patternOf(skill).test(name)) ?? true))
    const isInView = (root: string) => applying.some((rule) => rule.roots?.includes(root) ?? true)

    const log = pino({ level: 'silent' })
    const guarded = await openGuarded({
      projectRoots: rootNames.map((root, index) => write(join(folder, 'all'), root, roots[index] ?? [])), watcher: false, log
    }, { file, basePath: '', publicUrl: undefined })
    closers.push(() => guarded.skills.close())
    const visible = rootNames.flatMap((root, index) => isInView(root) ? [write(join(folder, 'own'), root, (roots[index] ?? []).filter(({ name }) => sees(root, name)))] : [])
    const alone = createSkillManager({ projectRoots: visible.length > 0 ? visible : [write(join(folder, 'own'), 'none', [])], watcher: false, log })
    closers.push(() => alone.close())
    const options = { registry: createToolRegistry(createTools()), logger: log, version: '1', host: '127.0.0.1' }
    const guardedApp = await buildApp({ ...options, skills: guarded.service, access: guarded.access })
    closers.unshift(() => guardedApp.close())
    const aloneApp = await buildApp({ ...options, registry: createToolRegistry(createTools()), skills: alone })
    closers.unshift(() => aloneApp.close())
    await guarded.skills.start()
    await guarded.skills.available()
    await alone.initialize()
    for (const [label, question] of questions()) {
      compare(label, await ask(guardedApp, question, join(folder, 'all'), token), await ask(aloneApp, question, join(folder, 'own')))
    }
  } finally {
    for (const close of closers) await close()
    rmSync(folder, { recursive: true })
  }
}
