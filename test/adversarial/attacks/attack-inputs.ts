/** Hostile requests to every route, made by fast-check: the same seed makes the same requests. */

import fc, { type Arbitrary } from 'fast-check'
import { DIALECTS } from '../../../src/tools/dialects/index.ts'
import { CANARY_PATHS } from './attack-tree.ts'
import type { RequestHead } from '../../helper/raw-http.ts'

export interface Attack {
  readonly method: string
  /** The request target, sent as it is. */
  readonly target: string
  readonly head: RequestHead
}

export interface AttackInputsOptions {
  /** Absolute path of a file that no route may open. */
  readonly secret: string
  /** Cursors that the service has given: broken ones are made of them. */
  readonly cursors: readonly string[]
}

const hex = (character: string) => Buffer.from(character).toString('hex').replaceAll(/../g, '%$&')

/** Spellings of one character, by which filters and decoders have been led to disagree. */
const SPELLINGS: ReadonlyArray<(character: string) => string> = [
  (character) => character,
  (character) => character,
  (character) => character,
  hex,
  (character) => hex(character).toUpperCase(),
  (character) => hex(character).replace('%', '%25'),
  (character) => hex(character).replaceAll('%', '%2525'),
  // Overlong UTF-8 of two and three bytes.
  (character) => character < '\x80' ? `%c0%${(character.charCodeAt(0) | 0x80).toString(16)}` : hex(character),
  (character) => character < '\x80' ? `%e0%80%${(character.charCodeAt(0) | 0x80).toString(16)}` : hex(character),
  (character) => `%u00${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  (character) => character === '/' ? '%5c' : character,
  (character) => character === '/' ? '\\' : character,
  (character) => character === '/' ? '//' : character,
  (character) => character === '/' ? '/./' : character,
  (character) => character === '/' ? ';/' : character,
  (character) => character === '/' ? '%e2%88%95' : character,
  (character) => character === '.' ? '%ef%bc%8e' : character,
  (character) => character === '.' ? '%e2%80%a4' : character,
  (character) => `${character}%00`
]

const PIECES = [
  '..', '.', '...', '../', '..\\', '/', '//', '\\', '%2f', '%5c', '%2e%2e', '%252e', '%252f', '%c0%ae', '%c0%af',
  '%ff', '%ed%a0%80', '%zz', '%', '%00',
  '%0d%0aX-Injected:1', '%1b[31m', ';', ';x=1', '?', '?x=', '#', '&', '=', '+', '%20', '~', 'C:',
  '%5c%5chost%5cshare', ':', '@', '*', '<script>', '"', "'",
  '$HOME', '__proto__', 'constructor', 'toString', 'demo', 'DEMO', 'demo-evil', 'SKILL.md', 'skill.md', 'references',
  'a.md', 'sub', 'up', 'out', 'loop', '.env',
  '.git', 'index.json', 'archive.zip', 'etc/passwd', '%e2%80%ae', 'e%cc%81', '\u00e9', 'a'.repeat(300)
]

const HEX_DIGEST = '0'.repeat(64)

/** `*` stands for what is hostile. */
const ROUTES = [
  '/skills/*', '/skills/*/files', '/skills/*/files/SKILL.md', '/skills/demo/files/*',
  '/skills/demo/files/*?encoding=base64', '/skills/*/files/*',
  '/skills/*/archive.zip', '/skills/demo/archive.zip*', '/catalog/*', '/catalog*', '/.well-known/skills/*/SKILL.md',
  '/.well-known/skills/demo/*',
  '/.well-known/skills/*', `/.well-known/agent-skills/*/${HEX_DIGEST}/SKILL.md`,
  `/.well-known/agent-skills/*/${HEX_DIGEST}/archive.zip`,
  '/.well-known/agent-skills/demo/*/archive.zip', '/.well-known/agent-skills/single/*/SKILL.md', '/.well-known/*',
  '/docs/*', '/docs/static/*', '/openapi*',
  '/agent/tools/*', '/agent/*', '/mcp*', '/*', '*', 'http://evil.example/skills/demo/files/*',
  'http://evil.example/skills', 'http://evil.example/livez', 'http://evil.example*'
]

const QUERIES: Readonly<Record<string, readonly string[]>> = {
  '/catalog': ['q', 'cursor', 'limit', 'valid'],
  '/agent/tools': ['format', 'toolset'],
  '/agent/prompt': ['format', 'budget'],
  '/skills/demo/files/references/a.md': ['encoding', 'raw', 'import'],
  '/skills/demo/archive.zip': ['wrap'],
  '/skills': ['x'],
  '/events': ['last_event_id']
}

const JSON_TYPE = 'Content-Type: application/json'
const TOOLS = ['list_skills', 'get_skill', 'read_file_in_skill', 'Skill', 'skill', 'search_skills', 'list_skill_files']
const DIALECT_NAMES = DIALECTS.map(({ name }) => name)

const text = (value: unknown) => JSON.stringify(value)

/** Generators by the route that they are for. */
export function attackInputs ({ secret, cursors }: AttackInputsOptions): Readonly<Record<string, Arbitrary<Attack>>> {
  const place = fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...CANARY_PATHS) },
    { weight: 1, arbitrary: fc.constantFrom(secret, `demo/../..${secret}`, `file://${secret}`) })
  const spelled = place.chain((path) => fc.array(fc.constantFrom(...SPELLINGS),
    { minLength: path.length, maxLength: path.length })
    .map((spellings) => spellings.map((spell, i) => spell(path[i] ?? '')).join('')))
  const pieced = fc.array(fc.constantFrom(...PIECES), { maxLength: 10 }).map((pieces) => pieces.join(''))
  const hostile = fc.oneof(spelled, pieced, place)

  const words = fc.constantFrom('(a+)+$', 'a'.repeat(5_000), '\0', ' ', '-1', '0', '501', '1e99', '1.5', 'NaN',
    '__proto__', 'constructor', 'true', 'maybe', 'hex',
    'xml', 'json', 'all', 'openai', '\u6f22'.repeat(300), '\ufdfa'.repeat(300), `${'a '.repeat(1_000)}`, '*', '\u202e')
  const cursor = fc.oneof(
    fc.tuple(fc.constantFrom('', ...cursors), fc.nat(100), fc.constantFrom('', 'A', '_', '=', '%', '\n')).map(
      ([known, at, change]) => known.slice(0, at) + change + known.slice(at + 1)),
    fc.constantFrom('after:', 'after:\0', '{"__proto__":1}', '1'.repeat(10_000)).map((made) =>
      Buffer.from(made).toString('base64url')),
    fc.string()
  )
  const value = fc.oneof(words, hostile, cursor, fc.string({ unit: 'grapheme' }))

  const path = fc.tuple(fc.constantFrom(...ROUTES), hostile, hostile,
    fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'POST', 'DELETE'), fc.constantFrom([], ['Accept: application/json'],
      ['Accept: text/markdown'], ['Range: bytes=0-9']))
    .map(([route, first, second, method, headers]) =>
      ({ method, target: route.replace('*', () => first).replace(/\*(?!\.)/, () => second), head: { headers } }))

  const query = fc.constantFrom(...Object.entries(QUERIES)).chain(([route, names]) =>
    fc.array(fc.tuple(fc.constantFrom(...names), value, fc.boolean()), {
      minLength: 1, maxLength: 4
    }).map((parameters) => ({
      method: 'GET',
      target: `${route}?${parameters.map(([name, given, raw]) => `${name}=${raw ? given.replaceAll(/[^!-~]/g, '') : encodeURIComponent(given.toWellFormed())}`).join('&')}`.slice(0, 12_000),
      head: {}
    })))

  const anything = fc.oneof({ weight: 8, arbitrary: hostile }, { weight: 2, arbitrary: value },
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('\ud800', 'SKILL.md\ud800', '\udfff..', ['demo'], { toString: 'x' }, 5,
        null)
    })
  const decoded =
    fc.oneof(anything, spelled.map((given) => { try { return decodeURIComponent(given) } catch { return given } }))
  const toolArguments = fc.record({
    skill_name: fc.oneof(fc.constant('demo'),
      decoded),
    file_path: decoded,
    skill: decoded,
    query: decoded,
    limit: fc.oneof(fc.integer(),
      decoded),
    extra: decoded
  }, { requiredKeys: ['skill_name', 'file_path'] })
  const call = fc.tuple(fc.constantFrom(...DIALECT_NAMES),
    fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...TOOLS) }, { weight: 1, arbitrary: pieced }), toolArguments,
    fc.boolean())
    .map(([dialect, tool, args, asText]) => callIn(dialect, tool, asText ? text(args) : args))

  const tool = fc.oneof(
    call.map((one) => post('/agent/tool-call', text(one))),
    fc.array(call, { minLength: 1, maxLength: 5 }).map((calls) => post('/agent/tool-call', text(calls))),
    fc.tuple(fc.constantFrom(...TOOLS), toolArguments).map(([name, args]) => post(`/agent/tools/${name}`, text(args))),
    fc.tuple(hostile, toolArguments).map(([name, args]) => post(`/agent/tools/${name}`, text(args)))
  )

  const uri = fc.oneof(
    fc.tuple(fc.constantFrom('skill://', 'skill://demo/', 'skill:///', 'skill://demo', 'SKILL://demo/',
      'skill://localhost/demo/', 'file://', ''), hostile).map((parts) => parts.join('')),
    decoded
  )
  const message = fc.oneof(
    fc.record({
      method: fc.constantFrom('resources/read', 'resources/directory/read', 'skills/get'),
      params: fc.record({ uri, cursor }, { requiredKeys: ['uri'] })
    }),
    fc.record({
      method: fc.constantFrom('tools/call'),
      params: fc.record({ name: fc.constantFrom(...TOOLS, '__proto__', ''), arguments: toolArguments })
    }),
    fc.record({
      method: fc.constantFrom('prompts/get'),
      params: fc.record({ name: decoded, arguments: fc.record({ task: decoded }) })
    }),
    fc.record({
      method: fc.constantFrom('prompts/list', 'resources/list', 'skills/list', 'tools/list'),
      params: fc.record({ cursor: fc.oneof(cursor, decoded) })
    }),
    fc.record({
      method: fc.constantFrom('initialize', 'ping', 'server/discover', 'completion/complete', 'logging/setLevel',
        '__proto__', ''),
      params: fc.jsonValue({ maxDepth: 3 })
    })
  )
  const mcp = fc.tuple(message, fc.boolean()).map(([sent, modern]) => mcpRequest(sent, modern))

  const bomb = jsonBombs()
  const json = fc.oneof(
    fc.tuple(fc.constantFrom('/agent/tool-call', '/mcp', ...TOOLS.map((name) => `/agent/tools/${name}`)), bomb).map(
      ([target, body]) => post(target, body)),
    fc.tuple(fc.constantFrom(...TOOLS), bomb).map(([name, body]) =>
      post('/agent/tool-call', `{"id":"1","function":{"name":"${name}","arguments":${body}}}`)),
    fc.tuple(fc.constantFrom(...TOOLS), bomb).map(([name, body]) =>
      post('/agent/tool-call', text(callIn('openai', name, body)))),
    fc.tuple(fc.constantFrom('id', 'type', 'function', 'tool_calls', 'functionCall', 'input', '__proto__',
      'constructor'), bomb).map(([key, body]) =>
      post('/agent/tool-call', `{"${key}":${body},"function":{"name":"list_skills"}}`)),
    fc.tuple(fc.constantFrom('id', 'params', 'method', 'jsonrpc', '__proto__'), bomb).map(([key, body]) =>
      post('/mcp', `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_skills"},"${key}":${body}}`))
  )

  const header = fc.tuple(fc.constantFrom('Origin', 'Range', 'Accept', 'If-None-Match', 'If-Range',
    'If-Modified-Since', 'Expect', 'Content-Type', 'X-Forwarded-Host', 'X-Forwarded-For',
    'X-Request-Id', 'Last-Event-ID', 'Connection', 'Upgrade', 'Cookie', 'Authorization', 'Accept-Encoding',
    'Mcp-Session-Id', 'Host', 'If-Match', 'Transfer-Encoding'), fc.oneof(headerFloods(), value, cursor))
    .map(([name, content]) => `${name}: ${Buffer.from(content).toString('latin1').replaceAll(/[\r\n\0]/g, '')}`)
  const headers = fc.tuple(
    fc.constantFrom('/skills', '/skills/demo', '/skills/demo/files', '/skills/demo/files/SKILL.md',
      '/skills/demo/files/big.bin', '/skills/demo/archive.zip', '/catalog', '/agent/tools',
      '/agent/prompt', '/events', '/openapi.json', '/.well-known/skills/index.json',
      '/.well-known/agent-skills/index.json', '/.well-known/skills/demo/SKILL.md', '/docs/', '/nope'),
    fc.array(header, { minLength: 1, maxLength: 3 }),
    fc.oneof({ weight: 5, arbitrary: fc.constant('localhost') }, {
      weight: 1,
      arbitrary: fc.constantFrom('evil.example', '127.0.0.1.evil.example', 'localhost@evil.example',
        '[::1', '', '\u00e9')
    }),
    fc.oneof({ weight: 8, arbitrary: fc.constant('1.1') },
      { weight: 1, arbitrary: fc.constantFrom('1.0', '0.9', '1.2', '2.0', '3.0', '9.9') }),
    fc.oneof({ weight: 8, arbitrary: fc.constant([]) }, {
      weight: 1,
      arbitrary: fc.constantFrom(['Transfer-Encoding: gzip, chunked'],
        ['Transfer-Encoding: identity, chunked'], ['Expect: 100-continue', 'Content-Length: 2000000'])
    })
  ).map(([target, lines, host, version, framing]) =>
    ({ method: 'GET', target, head: { host, headers: [...lines, ...framing], version } }))

  return {
    path: shown(path),
    query: shown(query),
    tool: shown(tool),
    mcp: shown(mcp),
    json: shown(json),
    headers: shown(headers)
  }
}

function post (target: string, body: string, headers: readonly string[] = []): Attack {
  return {
    method: 'POST',
    target,
    head: { headers: [JSON_TYPE, 'Accept: application/json, text/event-stream', ...headers], body }
  }
}

/** A call in the shape of a dialect, as its example in the OpenAPI document has it. */
function callIn (dialect: string, name: string, args: unknown): unknown {
  switch (dialect) {
    case 'openai-legacy': return { role: 'assistant', function_call: { name, arguments: args } }
    case 'openai-responses': return { type: 'function_call', call_id: 'c', name, arguments: args }
    case 'anthropic': return { type: 'tool_use', id: 'c', name, input: args }
    case 'gemini': return { functionCall: { name, args } }
    case 'gemini-snake-case': return { function_call: { name, args } }
    case 'mcp': return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
    default: return { id: 'c', type: 'function', function: { name, arguments: args } }
  }
}

/** Of the older revision, or of the newer one with what has to be in its headers. */
function mcpRequest ({ method, params }: {
  readonly method: string
  readonly params: unknown
}, modern: boolean): Attack {
  if (!modern) return post('/mcp', text({ jsonrpc: '2.0', id: 1, method, params }))
  const given: Readonly<Record<string, unknown>> = typeof params === 'object' && params !== null &&
    !Array.isArray(params)
    ? { ...params }
    : {}
  const name = method === 'resources/read' ? given['uri'] : given['name']
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}
  }
  return post('/mcp', text({ jsonrpc: '2.0', id: 1, method, params: { _meta: meta, ...given } }), [
    'MCP-Protocol-Version: 2026-07-28',
    `Mcp-Method: ${method}`,
    ...typeof name === 'string' && /^[!-~]+$/.test(name) ? [`Mcp-Name: ${name}`] : []
  ])
}

/** JSON, or nearly, that is large, deep, or means other things to other parsers. */
function jsonBombs (): Arbitrary<string> {
  const depth = fc.constantFrom(1, 60, 63, 64, 65, 66, 5_000, 200_000)
  const leaf = fc.constantFrom('1', '"x"', 'null', '{}', '[]', '1e400', '-0', '9'.repeat(400), '0.1e-9999',
    '"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '', '01', 'NaN', "'x'", '"')
  const key = fc.constantFrom('a', '__proto__', 'constructor', 'prototype', 'toString', 'toJSON', 'then', 'length',
    'skill_name', 'name', 'function', 'arguments')
  const polluted = fc.tuple(fc.array(key, { minLength: 1, maxLength: 30 }), leaf).map(([keys, inner]) =>
    keys.reduce((value, name) => `{"${name}":${value},"polluted":true,"${name}":${value.length < 1_000 ? value : 1}}`,
      inner))
  return fc.oneof(
    fc.tuple(depth, leaf).map(([levels, inner]) => '['.repeat(levels) + inner + ']'.repeat(levels)),
    fc.tuple(fc.integer({ min: 1, max: 70 }), key, leaf).map(([levels, name, inner]) =>
      `{"${name}":`.repeat(levels) + inner + '}'.repeat(levels)),
    fc.tuple(depth, fc.constantFrom('[', '{"a":', '[{"a":', '"')).map(([levels, unit]) =>
      unit.repeat(Math.min(levels, 100_000))),
    fc.constantFrom(100, 100_000).map((count) => `[${'0,'.repeat(count)}0]`),
    fc.tuple(fc.constantFrom(100, 40_000), key).map(([count, name]) =>
      `{${Array.from({ length: count }, (_, i) => `"${name}${i}":0`).join(',')}}`),
    fc.tuple(fc.constantFrom(100, 40_000), key).map(([count, name]) =>
      `{${Array.from({ length: count }, () => `"${name}":0`).join(',')}}`),
    fc.tuple(fc.constantFrom('a', '\\ud800', '\\', '\\"', '\u6f22', '../'), fc.constantFrom(1_000, 150_000)).map(
      ([unit, count]) => `{"skill_name":"${unit.repeat(count)}","file_path":"x"}`),
    polluted, leaf
  )
}

/** Values of headers that take quadratic parsers long, within what a head may hold. */
function headerFloods (): Arbitrary<string> {
  const unit = fc.constantFrom('"a",', 'W/"a", ', '"', ',', ' ', '\t', '0-0,', '-1,', 'a/b;q=0.1,', '*/*;q=0,', 'q=',
    ';', ';q=1', 'application/json;', 'a', '(', '\\"', '=', '/')
  return fc.tuple(fc.constantFrom('', 'bytes=', '*/*', 'W/"', '"', 'bytes=0-', 'application/json',
    'http://localhost:'), unit, fc.constantFrom(1, 100, 12_000), fc.constantFrom('', '"', 'x', '*'))
    .map(([start, repeated, characters, end]) =>
      start + repeated.repeat(Math.floor(characters / repeated.length) || 1) + end)
}

/** So that a report of a failure holds a request of any size in a few lines. */
function shown (attacks: Arbitrary<Attack>): Arbitrary<Attack> {
  return attacks.map((attack) => Object.assign(attack, { [fc.toStringMethod]: () => describeAttack(attack) }))
}

export function describeAttack ({ method, target, head }: Attack): string {
  const whole = JSON.stringify({ method, target, ...head })
  return whole.length > 1_500 ? `${whole.slice(0, 1_500)}… (${whole.length})` : whole
}
