import fc from 'fast-check'
import t, { type Test } from 'tap'
import { createSecret } from '../../src/access/secret.ts'
import {
  MAX_LOG_LINE_CHARACTERS, MAX_TOOL_CALLS, MAX_TOOL_RESULTS_BYTES, TOOL_CALL_CONCURRENCY
} from '../../src/tools/limits.ts'
import { toolCallLine, toolResultLine } from '../../src/tools/calls/call-log.ts'
import { createToolRegistry } from '../../src/tools/registry.ts'
import { createToolCallHandler, type ToolCallContext } from '../../src/tools/calls/tool-call.ts'
import { type Tool, ToolOutcome } from '../../src/tools/tool.ts'
import { createTools } from '../../src/tools/tools.ts'
import { codePoint } from '../helper/code-point.ts'
import { skill, until } from '../helper/skills.ts'
import { checkTime } from '../helper/timing.ts'
import { fakeTool, startTools } from './set-up.ts'

const FILES = () => ({
  demo: skill('demo', { references: { 'a.md': 'a' } }), calculator: { 'SKILL.md': '# Calculator', 'a.py': 'print(1)' }
})
const LIST = '{"skills": ["calculator", "demo"]}'
const NAMES = 'list_skills, get_skill, read_file_in_skill'

async function setUp (t: Test, tools: readonly Tool[] = createTools()) {
  const { skills } = await startTools(t, FILES())
  const lines: Array<readonly [fields: object, line: string]> = []
  const handle = createToolCallHandler({
    registry: createToolRegistry(tools),
    log: { info: (fields, line) => { lines.push([fields, line]) } }
  })
  const context = { skills, requestId: 'req-1' }
  return {
    lines,
    handle: (body: unknown) => handle(body, context),
    async answer (body: unknown, options: Pick<ToolCallContext, 'toolset' | 'skipOthers'> = {}): Promise<string> {
      const answer = await handle(body, { ...context, ...options })
      if (answer.kind !== 'answer') throw new Error(answer.kind)
      return answer.json
    }
  }
}

function chatCall (name: string, args?: unknown, id?: string): object {
  return { ...id !== undefined && { id }, type: 'function', function: { name, arguments: args } }
}

/** A tool whose answers the test decides. */
function tool (name: string, run: Tool['run']): Tool {
  return fakeTool({ name, run })
}

t.test("K35: the seeds' examples, to the letter", async (t) => {
  const { answer } = await setUp(t)
  for (const [call, expected] of [
    [{ id: 'call_abc123', type: 'function', function: { name: 'list_skills', arguments: '{}' } },
      '{"role":"tool","tool_call_id":"call_abc123","name":"list_skills","content":"{\\"skills\\": ' +
        '[\\"calculator\\", \\"demo\\"]}"}'],
    [{ function: { name: 'get_skill', arguments: '{"skill_name": "calculator"}' } },
      '{"role":"tool","name":"get_skill","content":"{\\"skill_name\\": \\"calculator\\", \\"documentation\\": \\"# ' +
        'Calculator\\"}"}'],
    [{ function: { name: 'read_file_in_skill', arguments: '{"skill_name": "calculator", "file_path": "a.py"}' } },
      '{"role":"tool","name":"read_file_in_skill","content":"print(1)"}']
  ] as const) t.equal(await answer(call), expected)
})

t.test('K34: a container or an array is answered by an array, in order', async (t) => {
  const { answer } = await setUp(t)
  const calls = [
    chatCall('list_skills', '{}', 'a'), chatCall('nope', '{}', 'b'), chatCall('get_skill', '{', 'c'),
    chatCall('list_skills', '', 'd')
  ]
  for (const body of [calls, { tool_calls: calls }, { role: 'assistant', content: null, tool_calls: calls }]) {
    t.match(JSON.parse(await answer(body)), [
      { role: 'tool', tool_call_id: 'a', content: LIST },
      { tool_call_id: 'b', content: /^Unknown tool: nope/ },
      { tool_call_id: 'c', content: /Invalid tool arguments/ },
      { tool_call_id: 'd', content: LIST }
    ])
  }
  t.equal(JSON.parse(await answer([chatCall('list_skills')])).length, 1)
})

t.test('K37: an unknown tool, in each dialect\'s error form', async (t) => {
  const { answer } = await setUp(t)
  const message = `"Unknown tool: Nope. Available tools: ${NAMES}"`
  for (const [call, answered] of [
    [chatCall('Nope'), `{"role":"tool","name":"Nope","content":${message}}`],
    [{ type: 'function_call', call_id: 'a', name: 'Nope' },
      `{"type":"function_call_output","call_id":"a","output":${message}}`],
    [{ type: 'tool_use', id: 'a', name: 'Nope' },
      `{"type":"tool_result","tool_use_id":"a","content":${message},"is_error":true}`],
    [{ functionCall: { name: 'Nope' } }, `{"functionResponse":{"name":"Nope","response":{"error":${message}}}}`],
    [{ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'Nope' } },
      `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":${message}}}`]
  ] as const) t.equal(await answer(call), answered)
})

t.test('K40: others=skip leaves calls of tools that are not ours unanswered', async (t) => {
  const { answer, lines } = await setUp(t)
  const skip = { skipOthers: true }
  const mixed = [
    chatCall('get_weather', '{', 'a'), chatCall('list_skills', '{}', 'b'), chatCall('get_skill', '{', 'c'), {}
  ]
  t.match(JSON.parse(await answer(mixed, skip)), [
    { tool_call_id: 'b' }, { tool_call_id: 'c', content: /Invalid tool arguments/ }, { content: /^Not a tool call/ }
  ])
  t.notOk(lines.some(([, line]) => line.includes('get_weather')))
  const custom = (name: string) => ({ output: [{ type: 'custom_tool_call', call_id: 'a', name, input: 'ls' }] })
  for (const body of [[chatCall('get_weather')], chatCall('get_weather'), custom('shell')]) {
    t.equal(await answer(body, skip), '[]', 'a single call too')
  }
  t.match(await answer(custom('get_skill'), skip), 'free text')
})

t.test("K37: malformed arguments come back in the tool's own form, with its schema", async (t) => {
  const { answer } = await setUp(t)
  for (const [tool, content] of [
    ['get_skill', /^\{"error": "Invalid tool arguments: .* JSON.*\\n\\nParameters: \{\\"type\\":\\"object\\"/],
    ['read_file_in_skill', /^ERROR: Invalid tool arguments: .*\n\nParameters: /],
    ['Skill', /^Error invoking skill '': Invalid tool arguments: .*\n\nParameters: /],
    ['skill', /^Invalid tool arguments: .*\n\nParameters: /]
  ] as const) t.match(JSON.parse(await answer(chatCall(tool, '{"skill_name"'))), { content })
  const mcp = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'skill', arguments: '[' } }
  t.match(JSON.parse(await answer(mcp)), { result: { isError: true } })
})

t.test('K37: malformed arguments seen in the wild get an error with the schema, under the ' +
  'id of the call', async (t) => {
  const { answer } = await setUp(t)
  const wild = [
    '{}""', '"{\\"skill_name\\":\\"demo\\"}"', '```json\n{"skill_name":"demo"}\n```',
    '{"skill_name":"demo"} I will now read it',
    '{skill_name:"demo"}', "{'skill_name':'demo'}", '{"skill_name":"demo",}', '{"skill_name":"de', '[]', '5', 'true',
    '{"name":"demo"}', '{"skill_name":5}', '{"skill_name":["demo"]}', '{"skill_name":"demo"}{"skill_name":"nope"}',
    '<skill_name>demo</skill_name>', 'skill_name=demo', 'None', '{"skill_name":None}', '\ufeff{}', '{}', '', 'null'
  ]
  const error = /^Invalid tool arguments: [^]*\n\nParameters: \{"type":"object","properties":\{"skill_name":/
  const results: Array<{ tool_call_id: string, content: string }> =
    JSON.parse(await answer(wild.map((args, index) => chatCall('get_skill', args, `call_${index}`))))
  t.strictSame(results.map(({ tool_call_id: id }) => id), wild.map((_, index) => `call_${index}`))
  for (const [index, { content }] of results.entries()) t.match(JSON.parse(content), { error }, wild[index] ?? '')
})

t.test('K34: the calls of a batch run concurrently, and no more than the limit at once', async (t) => {
  let running = 0
  let most = 0
  const release: Array<() => void> = []
  const slow = tool('slow', async () => {
    most = Math.max(most, ++running)
    await new Promise<void>((resolve) => { release.push(resolve) })
    running--
    return new ToolOutcome({}, 'done')
  })
  const { answer } = await setUp(t, [slow])
  const pending = answer(Array.from({ length: 40 }, () => chatCall('slow')))
  for (let released = 0; released < 40; released++) {
    await until(() => release.length > released)
    if (released === 0) await until(() => release.length === TOOL_CALL_CONCURRENCY)
    release[released]?.()
  }
  t.equal(JSON.parse(await pending).length, 40)
  t.equal(most, TOOL_CALL_CONCURRENCY)
})

t.test('K34: results stand in the order of the calls, whichever is done first', async (t) => {
  let releaseFirst = () => {}
  const first = tool('first', async () => {
    await new Promise<void>((resolve) => { releaseFirst = resolve })
    return new ToolOutcome({}, 'first')
  })
  const second = tool('second', async () => {
    releaseFirst()
    return new ToolOutcome({}, 'second')
  })
  const results: Array<{ content: string }> = JSON.parse(await (await setUp(t, [first, second]))
    .answer([chatCall('first'), chatCall('second')]))
  t.same(results.map(({ content }) => content), ['first', 'second'])
})

t.test('K34: results past 32 MiB are errors that name the limit, and what has not begun does not run', async (t) => {
  let runs = 0
  const text = 'x'.repeat(10 * 1_048_576)
  const large = tool('large', async () => {
    runs++
    return new ToolOutcome({}, text)
  })
  const { answer, lines } = await setUp(t, [large])
  const json = await answer(Array.from({ length: MAX_TOOL_CALLS }, (_, i) => chatCall('large', '{}', `call-${i}`)))
  const results: Array<{ tool_call_id: string, content: string }> = JSON.parse(json)
  t.ok(Buffer.byteLength(json) < MAX_TOOL_RESULTS_BYTES + 128 * 512)
  t.same(results.map(({ tool_call_id: id }) => id), Array.from({ length: MAX_TOOL_CALLS }, (_, i) => `call-${i}`))
  t.ok(results.slice(0, 3).every(({ content }) => content.length === text.length))
  t.ok(results.slice(3).every(({ content }) =>
    content.startsWith(`FAILED The results of one request are limited to ${MAX_TOOL_RESULTS_BYTES} bytes`)))
  t.ok(runs <= 3 + TOOL_CALL_CONCURRENCY)
  t.equal(lines.length, 2 * MAX_TOOL_CALLS)
})

t.test('K34: one failing call does not stop the rest', async (t) => {
  const broken = tool('broken', async () => { throw new TypeError('inside') })
  const fine = tool('fine', async () => new ToolOutcome({}, 'fine'))
  t.match(JSON.parse(await (await setUp(t, [broken, fine])).answer([chatCall('broken'), chatCall('fine')])), [
    { content: 'FAILED The tool failed unexpectedly' }, { content: 'fine' }
  ])
})

const readTool = createTools().find(({ name }) => name === 'read_file_in_skill') ?? 'unknown'
const result = (text: string, isError = false) => new ToolOutcome({}, text, isError)

t.test('K39 K61: the lines of calls and results: quoted, cut, without secrets, and with sizes alone where there is ' +
  'an access file', async (t) => {
  const secret = createSecret('token')
  for (const [line, expected] of [
    [toolCallLine(readTool, { skill_name: 'calculator', file_path: 'examples/basic.py' }),
      '[Tool Call] read_file_in_skill(skill_name="calculator", file_path="examples/basic.py")'],
    [toolCallLine(readTool, {}), '[Tool Call] read_file_in_skill()'],
    [toolCallLine('evil\n[Tool Call] x', {}), '[Tool Call] "evil\\n[Tool Call] x"()'],
    [toolCallLine(readTool, { 'a\nb': 1 }), '[Tool Call] read_file_in_skill("a\\nb"=1)'],
    [toolCallLine(readTool, { a: [1], b: { c: 1 }, d: null, e: 5, f: true }),
      '[Tool Call] read_file_in_skill(a=[…], b={…}, d=null, e=5, f=true)'],
    [toolCallLine(readTool, { skill_name: secret }), '[Tool Call] read_file_in_skill(skill_name="-")'],
    [toolResultLine(result('\ndef add'), false), '[Tool Result] "\\ndef add"'],
    [toolResultLine(result("ERROR: File 'x'", true), false), '[Tool Result] error "ERROR: File \'x\'"'],
    [toolResultLine(result('x'.repeat(10_000_000)), false),
      `[Tool Result] "${'x'.repeat(MAX_LOG_LINE_CHARACTERS - 16)}…`],
    [toolResultLine(result('# Secret'), true), '[Tool Result] 8 characters'],
    [toolResultLine(result('ERROR: x', true), true), '[Tool Result] error 8 characters'],
    [toolResultLine(result('\u001b[31m\u007f\u0085\u009b\u2028\u2029\u202e\u2066'), false),
      '[Tool Result] "\\u001b[31m\\u007f\\u0085\\u009b\\u2028\\u2029\\u202e\\u2066"'],
    [toolResultLine(result(`Skill '${secret}' not found`, true), false), '[Tool Result] error "Skill \'-\' not found"']
  ] as const) t.equal(line, expected)
  const text = fc.string({ unit: codePoint, maxLength: 400 })
  fc.assert(fc.property(text, fc.dictionary(text, fc.oneof(text, fc.jsonValue())), (name, args) =>
    [toolCallLine(name, args), toolCallLine(readTool, args), toolResultLine(result(name, true), false)]
      .every((line) => line.length <= MAX_LOG_LINE_CHARACTERS && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(line))))
})

const noFile = (path: string) => `ERROR: File '${path}' not found in skill 'demo'`
const noSkill = (name: string) => `{"error": ${JSON.stringify(`Skill '${name}' not found in skills folder`)}}`

type Row = readonly [tool: string, args: unknown, text: string | RegExp]

const read = (path: unknown, text: string | RegExp): Row =>
  ['read_file_in_skill', { skill_name: 'demo', file_path: path }, text]
const get = (name: unknown, text: string | RegExp): Row => ['get_skill', { skill_name: name }, text]
const LONG = 'a'.repeat(1_000_000)

const ROWS: readonly Row[] = [
  read('..\\..\\etc\\passwd', 'ERROR: Path traversal detected: cannot access files outside skill folder'),
  ...['SKILL.md\0.png', 'a\u202eb', '~/.ssh/id_rsa', ' ', LONG].map((path) => read(path, noFile(path))),
  read('\ud800', noFile('\ufffd')),
  get(LONG, noSkill(LONG)),
  ...['demo\n', '__proto__', 'constructor'].map((name) => get(name, noSkill(name))),
  ...['constructor', '__proto__', ''].map((tool): Row =>
    [tool, {}, `Unknown tool: ${tool}. Available tools: ${NAMES}`]),
  ['get_skill', JSON.parse('{"skill_name":"demo","__proto__":{"p":1},"constructor":{"prototype":{"p":1}}}'),
    /Instructions of demo/],
  ['Skill', JSON.parse('{"skill_name":"demo","__proto__":{"p":1}}'), /unknown argument "__proto__"/]
]

for (const asText of [false, true]) {
  t.test(`K38: hostile arguments as ${asText ? 'text' : 'an object'}`, async (t) => {
    const { answer } = await setUp(t)
    for (const [tool, args, text] of ROWS) {
      const what = `${tool} ${JSON.stringify(args).slice(0, 60)}`
      const call = chatCall(tool, asText ? JSON.stringify(args) : args)
      const { content } = JSON.parse(await checkTime(t, 1_000, () => answer(call), what))
      if (typeof text === 'string') t.ok(content === text, what)
      else t.match(content, text, what)
    }
    t.notOk('p' in {}, 'Object.prototype is as it was')
  })
}

t.test('K38: odd JSON is answered within a second, and an id of 10 KB comes back whole, and is ' +
  'in no log line', async (t) => {
  const { answer, lines } = await setUp(t)
  const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, i]))
  const id = 'i'.repeat(10_240)
  for (const [body, expected] of [
    [JSON.parse(
      '{"__proto__":{"x":1},"constructor":{"prototype":{}},"function":{"name":"list_skills","__proto__":{"arguments":"{"}}}'), '"content":"{\\"skills\\": '],
    [JSON.parse('{"function":{"name":"x","name":"list_skills"}}'), '"name":"list_skills"'],
    [{ function: { name: 'list_skills', arguments: many } }, 'skills'],
    [{ ...many, function: { name: 'list_skills' } }, 'skills'],
    [JSON.parse('{"id":12345678901234567,"function":{"name":"get_skill","arguments":{"skill_name":1e400}}}'),
      'must be a string'],
    [{ id, function: { name: 'list_skills' } }, `"tool_call_id":"${id}"`]
  ] as const) t.match(await checkTime(t, 1_000, () => answer(body)), expected)
  t.notOk(lines.some((line) => JSON.stringify(line).includes(id.slice(0, 256))))
})

t.test('K34: each call of a batch has one result, in place, whatever its name and arguments', async (t) => {
  const { handle } = await setUp(t)
  const word = fc.constantFrom('list_skills', 'get_skill', 'Skill', 'demo', '{}', '{"skill_name":"demo"}', '', '..',
    '{')
  const call = fc.record({
    id: fc.string(), function: fc.record({ name: word, arguments: fc.oneof(word, fc.jsonValue()) })
  })
  await fc.assert(fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 20 }), async (calls) => {
    const answer = await handle({ tool_calls: calls })
    if (answer.kind !== 'answer') return false
    const results: Array<{ tool_call_id: string }> = JSON.parse(answer.json)
    return results.length === calls.length && results.every(({ tool_call_id: id }, i) => id === calls[i]?.id)
  }))
  t.notOk('p' in {})
})
