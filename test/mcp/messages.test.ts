import { createInterface } from 'node:readline'
import { PassThrough, Readable } from 'node:stream'
import t from 'tap'
import { SILENT } from '../../src/core/shared/log.ts'
import { serveMcpOverStdio } from '../../src/mcp/stdio.ts'
import { buildService, type Service } from '../helper/build.ts'
import { modernRequest } from '../helper/mcp.ts'
import { skill } from '../helper/skills.ts'

const JSON_RPC = { jsonrpc: '2.0', id: 1 }
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const INITIALIZE = {
  ...JSON_RPC,
  id: 'start',
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
}

interface Answer {
  readonly id: unknown
  readonly error?: { readonly code: number, readonly message: string }
  readonly result?: { readonly content?: ReadonlyArray<{ readonly text: string }>, readonly isError?: boolean }
}

async function post (service: Service, init: RequestInit): Promise<Answer> {
  const response = await fetch(`${service.url}/mcp`, init)
  const text = await response.text()
  return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text) as Answer
}

/** Sends bytes to the server over standard input, and returns its answers by id when there are `count` of them. */
async function pipe (
  { skills, registry }: Service, input: Iterable<string | Buffer>, count: number
): Promise<ReadonlyMap<unknown, Answer>> {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()]
  const options = { skills, registry, log: SILENT, version: '1', input: stdin, output: stdout }
  const server = serveMcpOverStdio(options)
  const answers = new Map<unknown, Answer>()
  Readable.from(input).pipe(stdin, { end: false })
  for await (const line of createInterface({ input: stdout })) {
    const answer = JSON.parse(line) as Answer
    answers.set(answer.id, answer)
    if (answers.size === count) break
  }
  await server.close()
  return answers
}

/** A message with parameters that its method does not take. */
const WRONG: ReadonlyArray<{ readonly method: string, readonly params?: unknown, readonly problem: RegExp }> = [
  { method: 'tools/call', params: {}, problem: /params must have required property 'name'/ },
  { method: 'tools/call', params: { name: 5 }, problem: /name must be string/ },
  { method: 'tools/call', params: { name: 'list_skills', arguments: [] }, problem: /arguments must be object/ },
  { method: 'tools/call', params: { name: 'nope' }, problem: /nope/ },
  { method: 'resources/read', params: {}, problem: /must have required property 'uri'/ },
  { method: 'resources/read', params: { uri: 5 }, problem: /uri must be string/ },
  { method: 'resources/read', params: { uri: null }, problem: /must have required property 'uri'/ },
  { method: 'prompts/get', problem: /must have required property 'name'/ },
  { method: 'prompts/get', params: { name: 'demo', arguments: { task: 5 } }, problem: /arguments.task must be string/ },
  { method: 'skills/get', params: { uri: [] }, problem: /uri must be string/ },
  { method: 'resources/directory/read', params: {}, problem: /must have required property 'uri'/ },
  ...['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list', 'skills/list'].flatMap((method) => [
    { method, params: { cursor: 5 }, problem: /cursor must be string/ },
    { method, params: { cursor: 'x' }, problem: /^Invalid cursor: / },
    { method, params: { cursor: '' }, problem: /^Invalid cursor: / },
    { method, params: [], problem: /params is not an object/ }
  ])
]

const INITIALIZE_WRONG = [
  { ...INITIALIZE.params, protocolVersion: null },
  { ...INITIALIZE.params, clientInfo: undefined },
  { ...INITIALIZE.params, clientInfo: { name: 5 } }
].map((params) => ({ method: 'initialize', params, problem: /^Invalid parameters of initialize: / }))

/** Clients in Go, Java and C# write `null` for what is absent. */
const NULLS: ReadonlyArray<{ readonly method: string, readonly params: unknown }> = [
  { method: 'tools/call', params: { name: 'list_skills', arguments: null } },
  { method: 'prompts/get', params: { name: 'demo', arguments: null } },
  { method: 'tools/list', params: { cursor: null } },
  { method: 'prompts/list', params: { cursor: null } },
  { method: 'resources/list', params: { cursor: null, _meta: null } },
  { method: 'resources/templates/list', params: { cursor: null } },
  { method: 'skills/list', params: { cursor: null } },
  { method: 'resources/list', params: null }
]

t.test('parameters', async (t) => {
  const service = await buildService(t, { files: { demo: skill('demo') } })
  const legacy = (message: object): RequestInit =>
    ({ method: 'POST', headers: HEADERS, body: JSON.stringify({ ...JSON_RPC, ...message }) })

  t.test('K88: wrong parameters and cursors are -32602 with one sentence, over HTTP', async (t) => {
    for (const { method, params, problem } of [...WRONG, ...INITIALIZE_WRONG]) {
      const name = `${method} ${JSON.stringify(params)}`
      const { error } = await post(service, legacy({ method, params }))
      t.match(error, { code: -32602, message: problem }, name)
      t.notMatch(error?.message, /[\n{]/, name)
      if (method === 'initialize' || Array.isArray(params)) continue
      const modern = await post(service, modernRequest({ method, params: (params ?? {}) as Record<string, unknown> }))
      t.match(modern.error, { code: -32602, message: problem }, `${name}, modern`)
    }
  })

  t.test('K88: wrong parameters and cursors are -32602 with one sentence, over standard input', async (t) => {
    const messages = WRONG.map(({ method, params }, id) => ({ jsonrpc: '2.0', id, method, params }))
    const lines = [INITIALIZE, ...messages].map((line) => `${JSON.stringify(line)}\n`)
    const answers = await pipe(service, lines, lines.length)
    for (const [id, { method, params, problem }] of WRONG.entries()) {
      t.match(answers.get(id)?.error, { code: -32602, message: problem }, `${method} ${JSON.stringify(params)}`)
    }
  })

  t.test('K37: null stands for an absent parameter, over HTTP and standard input', async (t) => {
    for (const { method, params } of NULLS) {
      t.ok((await post(service, legacy({ method, params }))).result, `${method} ${JSON.stringify(params)}`)
    }
    const lines = [INITIALIZE, ...NULLS.map((message, id) => ({ jsonrpc: '2.0', id: id + 1, ...message }))]
    const answers = await pipe(service, lines.map((line) => `${JSON.stringify(line)}\n`), lines.length)
    t.ok([...answers.values()].every(({ result }) => result !== undefined))
  })
})

const HALF = { 'SKILL.md': '---\nname: half\ndescription: "half \\uD800"\n---\n' }

t.test('K88: each line of standard input has its answer', async (t) => {
  const service = await buildService(t, { files: { demo: skill('demo', { 'big.txt': '"'.repeat(6_000_000) }), half: HALF } })
  const ping = { ...JSON_RPC, method: 'ping' }
  const bad: ReadonlyArray<{
    readonly name: string
    readonly line: string
    readonly code: number
    readonly id?: unknown
  }> = [
    { name: 'no JSON', line: 'hello', code: -32700 },
    { name: 'deep nesting', line: `${'['.repeat(200_000)}${']'.repeat(200_000)}`, code: -32600 },
    {
      name: 'a request with deep nesting',
      line: `{"jsonrpc":"2.0","id":8,"method":"ping","params":{"a":${'['.repeat(65)}${']'.repeat(65)}}}`,
      code: -32600,
      id: 8
    },
    { name: 'half a message', line: JSON.stringify(ping).slice(0, -2), code: -32700 },
    { name: 'a batch', line: JSON.stringify([ping]), code: -32600 },
    { name: 'null', line: 'null', code: -32600 },
    { name: 'no method', line: JSON.stringify({ ...JSON_RPC, id: 7 }), code: -32600, id: 7 },
    { name: 'another version', line: JSON.stringify({ ...ping, jsonrpc: '1.0' }), code: -32600 },
    { name: 'an id that is no integer', line: JSON.stringify({ ...ping, id: 1.5 }), code: -32600 },
    { name: 'an id that loses digits', line: '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', code: -32600 },
    { name: 'an id that is null', line: JSON.stringify({ ...ping, id: null }), code: -32600 },
    { name: 'a line of 11 MiB', line: JSON.stringify({ ...ping, x: 'x'.repeat(11 * 1_048_576) }), code: -32600 }
  ]
  for (const { name, line, code, id = null } of bad) {
    const input = [`${JSON.stringify(INITIALIZE)}\n`, line, '\n', `${JSON.stringify(ping)}\n`]
    const answers = await pipe(service, input, 3)
    t.match(answers.get(id), { error: { code } }, name)
    t.match(answers.get(1), { result: {} }, `${name}: and the session goes on`)
  }

  t.test('half a surrogate pair leaves as U+FFFD: in ids, keys, addresses and frontmatter', async (t) => {
    const messages = [
      { ...ping, id: '\ud800' },
      { ...JSON_RPC, id: 2, method: 'resources/read', params: { uri: 'skill://\udfff/SKILL.md', '\ud800': 1 } },
      { ...JSON_RPC, id: 3, method: 'skills/list', params: {} }
    ]
    const lines = [INITIALIZE, ...messages].map((line) => `${JSON.stringify(line)}\n`)
    const answers = await pipe(service, lines, lines.length)
    const send = (message: object) => post(service, { method: 'POST', headers: HEADERS, body: JSON.stringify(message) })
    const overHttp = await Promise.all(messages.map(send))
    t.strictSame(answers.get('\ufffd')?.result, {})
    t.match(answers.get(3)?.result, { skills: [{}, { frontmatter: { description: 'half \ufffd' } }] })
    t.notMatch(JSON.stringify([...answers.values(), ...overHttp]), /\\ud[89a-f]/)
  })

  t.test('a byte order mark, CRLF and single bytes are read', async (t) => {
    const bytes = Buffer.from(`\uFEFF${JSON.stringify(INITIALIZE)}\r\n${JSON.stringify({ ...ping, id: 'ü' })}\r\n`)
    const answers = await pipe(service, [...bytes].map((byte) => Buffer.from([byte])), 2)
    t.match([answers.get('start'), answers.get('ü')], [{ result: {} }, { result: {} }])
  })

  t.test('a result that does not fit into a message is an error, and the session goes on', async (t) => {
    const params = { name: 'read_file_in_skill', arguments: { skill_name: 'demo', file_path: 'big.txt' } }
    const call = { ...JSON_RPC, id: 2, method: 'tools/call', params }
    const lines = [INITIALIZE, call, { ...ping, id: 3 }].map((line) => `${JSON.stringify(line)}\n`)
    const answers = await pipe(service, lines, lines.length)
    t.match(answers.get(2)?.error, {
      code: -32603, message: /^The result has \d+ bytes, and a message has at most 10485760/
    })
    t.ok(answers.get(3)?.result)
  })
})
