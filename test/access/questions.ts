import type { InjectOptions } from 'fastify'
import { DIALECTS } from '../../src/tools/dialects/index.ts'
import { createTools } from '../../src/tools/tools.ts'
import { modernRequest } from '../helper/mcp.ts'

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
  return { ...rest, headers: { ...headers, accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' } }
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

/** Every question to every door, for names that are there, hidden and absent. */
export function questions (known: readonly string[]): readonly Question[] {
  const names = [...known, 'nosuch', '..']
  const [first = ''] = known
  const openai = (name: string, args: object) => ({ id: 'c1', type: 'function', function: { name, arguments: JSON.stringify(args) } })
  const tools = createTools().map(({ name }) => name)
  const argumentsOf = (tool: string, name: string): object => {
    const make = ARGUMENTS[tool]
    if (make === undefined) throw new Error(`no arguments are known here for the tool ${tool}: add them`)
    return make(name)
  }
  const pages = ['/', '/skills', '/nosuch', '/catalog', '/agent/tools', '/agent/prompt', '/openapi.json', '/openapi.yaml', '/docs', '/docs/',
    ...['json', 'yaml', 'static/index.html', 'static/swagger-initializer.js', 'static/swagger-ui.css', 'static/favicon-32x32.png'].map((rest) => `/docs/${rest}`), '/readyz', '/llms.txt', '/ui', '/ui/', '/ui/skills', '/ui/skills/', '/ui/status', '/ui/assets/nosuch', '/ui/nosuch', '/mcp',
    '/.well-known/agent-skills/index.json', '/.well-known/skills/index.json',
    ...['', '/files', '/files/SKILL.md', '/archive.zip', '/.well-known/agent-skills/index.json', '/.well-known/skills/index.json', `/.well-known/skills/${first}/SKILL.md`, '/nosuch'].map((rest) => `/skills/${first}${rest}`),
    ...[`/catalog/${first}`, `/ui/skills/${first}`, `/ui/skills/${first}/files`, `/ui/skills/${first}/changes`, `/ui/skills/${first}/files/SKILL.md`, `/.well-known/skills/${first}/SKILL.md`],
    ...['SKILL.md', 'archive.zip'].map((file) => `/.well-known/agent-skills/${first}/${'0'.repeat(64)}/${file}`)]
  const all: InjectOptions[] = [
    ...pages.flatMap((url) => [{ url }, { url, method: 'HEAD' as const }]),
    { url: '/', headers: { accept: 'text/html' } },
    ...['/catalog?limit=500&valid=true', '/catalog?valid=false', '/catalog?cursor=abc', '/catalog?limit=1', '/catalog?q=orange&limit=1', '/catalog?q=orange%20lemon&limit=1',
      `/catalog/${first}?target=all`].map((url) => ({ url })),
    ...['/ui/?root=second', '/ui/?root=third', '/ui/?severity=info', '/ui/?target=codex'].map((url) => ({ url, headers: { accept: 'text/html' } })),
    ...['orange', 'lemon', 'orang', 'second', first, 'the', 'ornage'].flatMap((q) => [{ url: `/catalog?q=${q}` }, { url: `/ui/?q=${q}` }]),
    ...['xml', 'json', 'markdown'].map((format) => ({ url: `/agent/prompt?format=${format}` })),
    { url: '/agent/prompt?budget=200' },
    ...['openai', 'anthropic', 'gemini', 'mcp'].map((format) => ({ url: `/agent/tools?toolset=all&format=${format}` })),
    { method: 'POST', url: '/validate', headers: { 'content-type': 'text/markdown' }, payload: `---\nname: ${first}\ndescription: x\n---\nSee [it](../${first}/SKILL.md)` },
    ...names.map((name) => encodeURIComponent(name)).flatMap((name) => [
      ...['', '/files', '/files/SKILL.md', '/files/notes.txt', '/files/%2e%2e%2fx', '/archive.zip', '?revision=current', `?revision=${REVISION}`,
        '/.well-known/agent-skills/index.json', '/.well-known/skills/index.json', `/.well-known/skills/${name}/SKILL.md`].map((rest) => ({ url: `/skills/${name}${rest}` })),
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
    ...DIALECTS.map(({ example }) => json('/agent/tool-call', JSON.parse(JSON.stringify(example).replaceAll('calculator', first)))),
    ...Object.entries(LEGACY_METHODS).map(([method, params]) => legacy(method, params(first)))
  ]
  const seen = new Set<string>()
  return all.map((options) => {
    const headers = Object.entries(options.headers ?? {}).filter(([name]) => /^(?:if-|range|accept$)/.test(name)).join()
    return [`${options.method ?? 'GET'} ${String(options.url)} ${headers} ${typeof options.payload === 'string' ? options.payload.slice(0, 200) : ''}`, options] as const
  }).filter(([label]) => !seen.has(label) && seen.add(label))
}

/** Questions of somebody who knows digests and revisions of skills that it may not see. `all` answers for a service that hides nothing. */
export async function questionsOfContent (known: readonly string[], all: (url: string) => Promise<{ readonly statusCode: number, readonly body: string }>): Promise<readonly Question[]> {
  const urls: string[] = []
  const { skills = [] } = JSON.parse((await all('/.well-known/agent-skills/index.json')).body) as { readonly skills?: ReadonlyArray<{ readonly url: string }> }
  urls.push(...skills.map(({ url }) => new URL(url, 'http://host/.well-known/agent-skills/index.json').pathname))
  for (const name of known) {
    const { statusCode, body } = await all(`/skills/${name}/files`)
    if (statusCode !== 200) continue
    const { revision } = JSON.parse(body) as { readonly revision: string }
    urls.push(...['', '/files/SKILL.md', '/archive.zip'].map((rest) => `/skills/${name}${rest}?revision=${encodeURIComponent(revision)}`))
  }
  return urls.map((url) => [`GET ${url} of its content`, { url }])
}
