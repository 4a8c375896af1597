import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { PassThrough, Readable } from 'node:stream'
import type { Client, Resource } from '@modelcontextprotocol/client'
import { type Skill, SkillsClient } from '@modelcontextprotocol/client/ext/skills'
import t from 'tap'
import { SILENT } from '../../src/core/shared/log.ts'
import { serveMcpOverStdio } from '../../src/mcp/stdio.ts'
import { buildService, type Files, type Service } from '../helper/build.ts'
import { type Answer, connectClient, ERAS, legacyRequest, modernRequest, sendMessage } from '../helper/mcp.ts'
import { skill, skills } from '../helper/skills.ts'

function document (name: string, description = `About ${name}`): string {
  return `---\nname: ${name}\ndescription: ${description}\n---\n# ${name}\n`
}

const BINARY = Buffer.from([0, 1, 2, 0xff, 0xfe, 0x80])
const ODD_NAMES = [
  'a b.md', '[a] b#c?%.md', '100%.txt', '%2e%2e', 'é.md', 'e\u0301.md', 'a+b;c,d@e!.txt', 'œufs/出汁.md',
  "it's (odd) *~.md"
]

function oddFiles (): Files {
  return {
    'SKILL.md': document('odd'),
    'bom.txt': '\uFEFFmarked',
    'empty.txt': '',
    'data.bin': BINARY,
    'crlf.txt': 'a\r\nb\r\n',
    œufs: { '出汁.md': 'œufs/出汁.md' },
    ...Object.fromEntries(ODD_NAMES.filter((name) => !name.includes('/')).map((name) => [name, name]))
  }
}

const FILES: Files = {
  odd: oddFiles(),
  plain: { 'SKILL.md': document('plain'), docs: { deep: { 'a.md': 'A' }, 'b.md': 'B' }, 'z.json': '{}' },
  // What no strict client would accept, each for a reason of its own.
  broken: { 'SKILL.md': 'no frontmatter' },
  listed: { 'SKILL.md': '---\nname: listed\ndescription: x\nmetadata:\n  tags: [a]\n---\n' },
  upper: { 'SKILL.MD': document('upper') },
  'no-main': { 'a.txt': 'a' }
}

async function readAll (client: Client): Promise<{
  readonly skills: readonly Skill[], readonly files: ReadonlyMap<string, Buffer>
}> {
  const reader = new SkillsClient(client)
  const { skills } = await reader.list()
  const files = new Map<string, Buffer>()
  for (const skill of skills) {
    t.not(skill.resources, 'dynamic')
    if (skill.resources === 'dynamic') continue
    for (const { uri } of skill.resources) {
      const { bytes } = await reader.read(skill, uri)
      files.set(uri, Buffer.from(bytes))
    }
  }
  return { skills, files }
}

for (const era of ERAS) {
  t.test(`the official client, ${era === 'auto' ? '2026-07-28' : '2025-11-25'}`, async (t) => {
    const service = await buildService(t, { files: FILES })
    const client = await connectClient(t, service.url, era)

    t.test('it learns who answers, and what there is', async (t) => {
      t.equal(client.getNegotiatedProtocolVersion(), era === 'auto' ? '2026-07-28' : '2025-11-25')
      t.match(client.getServerVersion(), { name: 'skillserve' })
      const { tools } = await client.listTools()
      for (const { name } of tools) t.match(client.getInstructions(), new RegExp(`\\b${name} `), name)
      t.match(
        client.getServerCapabilities(), { extensions: { 'io.modelcontextprotocol/skills': { directoryRead: true } } }
      )
    })

    t.test('every skill that a strict client takes is listed, and every file of it read and verified', async (t) => {
      const { skills, files } = await readAll(client)
      t.same(skills.map(({ uri }) => uri), ['skill://odd/SKILL.md', 'skill://plain/SKILL.md'])
      t.equal(files.size, ODD_NAMES.length + 5 + 4)
      t.same(files.get('skill://odd/data.bin'), BINARY)
      t.equal(files.get('skill://odd/bom.txt')?.toString(), '\uFEFFmarked')
      t.equal(files.get('skill://odd/crlf.txt')?.toString(), 'a\r\nb\r\n')
      for (const name of ODD_NAMES) {
        t.equal(files.get(`skill://odd/${name.split('/').map(encodeURIComponent).join('/')}`)?.toString(), name)
      }
    })

    t.test('K58 an entry is what the manifest says, its revision too, and skills/get gives the same one', async (t) => {
      const reader = new SkillsClient(client)
      const { skill } = await reader.get('skill://plain/SKILL.md')
      const manifest = await service.skills.read('plain', (skill) => skill.manifest())
      t.same(skill.frontmatter, { name: 'plain', description: 'About plain' })
      t.same(skill.resources, manifest.files.map(({ path, digest, size_bytes: size }) =>
        ({ uri: `skill://plain/${path}`, digest, size })))
      t.same(skill._meta, { 'skillserve/revision': manifest.revision })
      t.same((await reader.list()).skills.find(({ uri }) => uri === skill.uri), skill)
    })

    t.test('skills/get says why a skill is not listed', async (t) => {
      const reader = new SkillsClient(client)
      const reasons = {
        broken: /no frontmatter/, listed: /metadata/, upper: /is called 'SKILL\.MD'/, missing: /not found/
      }
      for (const [name, reason] of Object.entries(reasons)) {
        await t.rejects(reader.get(`skill://${name}/SKILL.md`), { code: -32602, message: reason }, name)
      }
      await t.rejects(reader.get('skill://plain/z.json'), { code: -32602 })
    })

    t.test('folders are read with their children, files and folders', async (t) => {
      const reader = new SkillsClient(client)
      const names = ({ resources }: { readonly resources: readonly Resource[] }) =>
        resources.map(({ name, mimeType }) => [name, mimeType])
      const [markdown, folder, json] = ['text/markdown', 'inode/directory', 'application/json']
      t.same(names(await reader.readDirectory('skill://plain')),
        [['SKILL.md', markdown], ['docs', folder], ['z.json', json]])
      t.same(names(await reader.readDirectory('skill://plain/docs')), [['b.md', markdown], ['deep', folder]])
      t.match(await reader.readDirectory('skill://odd/%C5%93ufs'), {
        resources: [{ uri: 'skill://odd/%C5%93ufs/%E5%87%BA%E6%B1%81.md', size: 15 }]
      })
      for (const uri of ['skill://plain/z.json', 'skill://plain/nope', 'skill://nope', 'file:///etc',
        'skill://plain/docs/']) {
        await t.rejects(reader.readDirectory(uri), { code: -32602 }, uri)
      }
    })

    t.test('the tools are there, read-only, and a result is its text and nothing else', async (t) => {
      const { tools } = await client.listTools()
      t.same(tools.map(({ name }) => name), service.registry.list('explore').map(({ name }) => name))
      for (const tool of tools) {
        t.match(tool.annotations, { readOnlyHint: true, idempotentHint: true, openWorldHint: false })
        t.same(tool.inputSchema.required, service.registry.find(tool.name)?.parameters.required)
        t.equal(tool.outputSchema, undefined, 'hosts would show the model an object instead of the text')
      }
      t.equal(tools[0]?.inputSchema['additionalProperties'], false, 'a tool without parameters takes none')
      const calls = [
        ['list_skills', {}],
        ['get_skill', { skill_name: 'plain' }],
        ['read_file_in_skill', { skill_name: 'plain', file_path: 'docs/b.md' }],
        ['search_skills', { query: 'plain' }],
        ['list_skill_files', { skill_name: 'plain' }]
      ] as const
      for (const [name, args] of calls) {
        const result = await client.callTool({ name, arguments: args })
        const [rest] = (await service.post('/agent/tool-call', [{ function: { name, arguments: args } }])).json() as [{
          content: string
        }]
        t.match(result.content, [{ type: 'text', text: rest.content }], `${name}: the text of POST /agent/tool-call`)
        t.equal(result.structuredContent, undefined)
        t.equal(result._meta?.['skillserve/revision'], undefined, 'K58: no revision that was not asked for')
      }
    })

    t.test('what a model can fix is an error result, an unknown tool an error', async (t) => {
      for (const [name, args, text] of [
        ['get_skill', { skill_name: 'nope' }, '{"error": "Skill \'nope\' not found in skills folder"}'],
        ['get_skill', { skill_name: 5 }, /must be a string/],
        ['read_file_in_skill', { skill_name: 'plain', file_path: '../odd/SKILL.md' }, /^ERROR: Path traversal detected/]
      ] as const) {
        t.match(await client.callTool({ name, arguments: args }), { isError: true, content: [{ text }] })
      }
      for (const name of ['nope', 'Skill', '__proto__']) {
        await t.rejects(client.callTool({ name }), { code: -32602, message: /^Unknown tool: .*list_skills/ }, name)
      }
    })

    t.test('K39: a call leaves its two lines, with the id of the request', async (t) => {
      await client.callTool({ name: 'get_skill', arguments: { skill_name: 'plain' } })
      const lines = service.log().filter(({ msg }) => /\[Tool (?:Call|Result)\]/.test(String(msg))).slice(-2)
      const [call, result] = ['[Tool Call] get_skill(skill_name="plain")', /^\[Tool Result\]/]
      t.match(lines, [{ msg: call, reqId: /./ }, { msg: result, reqId: lines[0]?.['reqId'] }])
    })

    t.test('every main file is a resource; other files follow the template', async (t) => {
      const { resources } = await client.listResources()
      const names = ['broken', 'listed', 'odd', 'plain', 'upper']
      t.same(resources.map(({ uri }) => uri), names.map((name) => `skill://${name}/SKILL.md`))
      t.match(resources[3], { name: 'plain', description: 'About plain', mimeType: 'text/markdown' })
      t.match(await client.listResourceTemplates(), { resourceTemplates: [{ uriTemplate: 'skill://{name}/{+path}' }] })
    })

    t.test('a resource is text or a blob, under its media type', async (t) => {
      for (const [uri, content] of [
        ['skill://odd/data.bin', { mimeType: 'application/octet-stream', blob: BINARY.toString('base64') }],
        ['skill://upper/SKILL.md', { mimeType: 'text/markdown', text: /upper/ }],
        ['skill://odd/empty.txt', { mimeType: 'text/plain', text: '' }]
      ] as const) t.match(await client.readResource({ uri }), { contents: [{ uri, ...content }] }, uri)
    })

    t.test('a resource that is not there is -32602, whatever its URI tries', async (t) => {
      const uris = [
        'skill://nope/SKILL.md', 'skill://plain/nope', 'skill://plain', 'skill://plain/docs', 'skill://plain/',
        'skill://', 'skill:///etc/passwd', 'skill://plain/../odd/SKILL.md', 'skill://plain/%2e%2e/odd/SKILL.md',
        'skill://plain/..%2fodd%2fSKILL.md', 'skill://plain/%00', 'skill://plain/%zz', 'skill://plain/z.json?x',
        'skill://plain/z.json#x', 'skill://../etc/passwd', 'skill://%2e%2e/x', 'SKILL://plain/z.json',
        'file:///etc/passwd', '', `skill://${'a'.repeat(9000)}/x`
      ]
      for (const uri of uris) await t.rejects(client.readResource({ uri }), { code: -32602 }, uri.slice(0, 60))
    })

    t.test('each valid skill is a prompt', async (t) => {
      const { prompts } = await client.listPrompts()
      t.strictSame(prompts.map(({ name }) => name), ['listed', 'odd', 'plain', 'upper'])
      t.match(prompts[2], { description: 'About plain', arguments: [{ name: 'task', required: false }] })
      const [first, second] = [document('plain'), 'Do it'].map((text) =>
        ({ role: 'user', content: { type: 'text', text } }))
      t.strictSame((await client.getPrompt({ name: 'plain' })).messages, [first])
      t.strictSame((await client.getPrompt({ name: 'plain', arguments: { task: 'Do it' } })).messages, [first, second])
      for (const name of ['broken', 'nope', '../odd']) {
        await t.rejects(client.getPrompt({ name }), { code: -32602 }, name)
      }
    })

    t.test('K51: an edit is in the next answer, and entry and bytes are of one state', async (t) => {
      const reader = new SkillsClient(client)
      const { skill: before } = await reader.get('skill://plain/SKILL.md')
      writeFileSync(join(service.root, 'plain/z.json'), '{"new":true}')
      await t.rejects(reader.read(before, 'z.json'), { name: 'SkillVerificationError' })
      const { skill: after } = await reader.get('skill://plain/SKILL.md')
      t.match(await reader.read(after, 'z.json'), { text: '{"new":true}' })
      writeFileSync(join(service.root, 'plain/z.json'), '{}')
    })
  })
}

t.test('pages survive changes between them', async (t) => {
  const names = Array.from({ length: 250 }, (_, i) => `skill-${String(i).padStart(3, '0')}`)
  const service = await buildService(t, { files: skills(...names) })
  const client = await connectClient(t, service.url, 'auto')
  const lists = { resources: 'resources/list', prompts: 'prompts/list', skills: 'skills/list' }

  async function follow (method: string, member: string, between: () => void): Promise<string[]> {
    const seen: string[] = []
    let cursor: string | undefined
    let changed = false
    do {
      const request = modernRequest({ method, params: cursor === undefined ? {} : { cursor } })
      const { result } = await (await fetch(`${service.url}/mcp`, request)).json() as {
        result: Record<string, Array<{ name?: string, frontmatter?: { name: string } }>> & { nextCursor?: string }
      }
      seen.push(...(result[member] ?? []).map((item) => item.name ?? item.frontmatter?.name ?? ''))
      cursor = result.nextCursor
      if (!changed) between()
      changed = true
    } while (cursor !== undefined)
    return seen
  }

  await t.test('nothing is twice or left out when names up to the cursor go and one comes', async (t) => {
    for (const [member, method] of Object.entries(lists)) {
      // The cursor names the last one.
      const away = ['skill-000', 'skill-199']
      const seen = await follow(method, member, () => {
        for (const name of away) renameSync(join(service.root, name), join(service.root, `.${name}`))
        mkdirSync(join(service.root, 'aaa'))
        writeFileSync(join(service.root, 'aaa/SKILL.md'), document('aaa'))
      })
      t.same(seen, names, method)
      rmSync(join(service.root, 'aaa'), { recursive: true })
      for (const name of away) renameSync(join(service.root, `.${name}`), join(service.root, name))
    }
  })

  await t.test('a cursor that is none of ours is -32602', async (t) => {
    const encode = (text: string) => Buffer.from(text).toString('base64url')
    for (const cursor of ['', 'x', '2', encode('skill-1'), `${encode('after:a')}=`, 'é', '\0', 'a'.repeat(10_000)]) {
      const params = { cursor }
      const asked = [() => client.listResources(params), () => client.listPrompts(params),
        () => new SkillsClient(client).list(params)]
      for (const ask of asked) {
        await t.rejects(async () => await ask(), { code: -32602, message: /Invalid cursor/ },
          JSON.stringify(cursor.slice(0, 20)))
      }
    }
  })
})

const JSON_RPC = { jsonrpc: '2.0', id: 1 }
const INITIALIZE = {
  ...JSON_RPC,
  id: 'start',
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
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
  const post = async (request: RequestInit) => (await sendMessage(service.url, request)).body
  const legacy = (message: object) => legacyRequest({ ...JSON_RPC, ...message })

  t.test('K88: wrong parameters and cursors are -32602 with one sentence, over HTTP', async (t) => {
    for (const { method, params, problem } of [...WRONG, ...INITIALIZE_WRONG]) {
      const name = `${method} ${JSON.stringify(params)}`
      const { error } = await post(legacy({ method, params }))
      t.match(error, { code: -32602, message: problem }, name)
      t.notMatch(error?.message, /[\n{]/, name)
      if (method === 'initialize' || Array.isArray(params)) continue
      const modern = await post(modernRequest({ method, params: (params ?? {}) as Record<string, unknown> }))
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
      t.ok((await post(legacy({ method, params }))).result, `${method} ${JSON.stringify(params)}`)
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
  const bad: ReadonlyArray<{ name: string, line: string, code: number, id?: unknown }> = [
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
    const overHttp = await Promise.all(messages.map((message) => sendMessage(service.url, legacyRequest(message))))
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
