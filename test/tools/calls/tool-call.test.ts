import t from 'tap'
import { MAX_TOOL_CALLS, MAX_TOOL_RESULTS_BYTES, TOOL_CALL_CONCURRENCY } from '../../../src/tools/limits.ts'
import { createToolRegistry } from '../../../src/tools/registry.ts'
import { createTools } from '../../../src/tools/tools.ts'
import { createToolCallHandler, type ToolCallContext } from '../../../src/tools/calls/tool-call.ts'
import { type Tool, ToolOutcome } from '../../../src/tools/tool.ts'
import { FakeSource, fakeTool } from '../fake-source.ts'

const SKILLS = {
  calculator: { description: 'Calculates', files: { 'SKILL.md': '# Calculator', 'a.py': 'print(1)' } }, weather: {}
}
const NAMES = 'list_skills, get_skill, read_file_in_skill'

function setUp (tools: readonly Tool[] = createTools(), skills = new FakeSource(SKILLS)) {
  const lines: Array<readonly [fields: object, line: string]> = []
  const handle = createToolCallHandler({
    registry: createToolRegistry(tools),
    log: { info: (fields, line) => { lines.push([fields, line]) } }
  })
  return {
    lines,
    handle: (body: unknown) => handle(body, { skills, requestId: 'req-1' }),
    async answer (body: unknown, options: Pick<ToolCallContext, 'toolset' | 'skipOthers'> = {}): Promise<string> {
      const answer = await handle(body, { skills, requestId: 'req-1', ...options })
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

t.test('K35: the seeds\' examples, to the letter', async (t) => {
  const { answer } = setUp()
  t.equal(await answer({ id: 'call_abc123', type: 'function', function: { name: 'list_skills', arguments: '{}' } }),
    '{"role":"tool","tool_call_id":"call_abc123","name":"list_skills","content":"{\\"skills\\": [\\"calculator\\", ' +
      '\\"weather\\"]}"}')
  t.equal(await answer({
    id: 'call_xyz789', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name": "calculator"}' }
  }),
  '{"role":"tool","tool_call_id":"call_xyz789","name":"get_skill","content":"{\\"skill_name\\": \\"calculator\\", ' +
      '\\"documentation\\": \\"# Calculator\\"}"}')
  t.equal(await answer({
    function: { name: 'read_file_in_skill', arguments: '{"skill_name": "calculator", "file_path": "a.py"}' }
  }),
  '{"role":"tool","name":"read_file_in_skill","content":"print(1)"}')
  t.equal(await answer({
    function: {
      name: 'read_file_in_skill', arguments: '{"skill_name": "calculator", "file_path": "../../../etc/passwd"}'
    }
  }),
  '{"role":"tool","name":"read_file_in_skill","content":"ERROR: Path traversal detected: cannot access files ' +
      'outside skill folder"}')
})

t.test('K36: content per tool', async (t) => {
  const { answer } = setUp()
  const content = async (name: string, args: object): Promise<string> =>
    JSON.parse(await answer(chatCall(name, args))).content
  t.equal(await content(
    'Skill', { skill_name: 'calculator' }
  ), 'Skill: calculator (Type: project)\nPath: /srv/skills/calculator\n\n# Calculator')
  t.match(JSON.parse(await content('skill', { skill: 'calculator' })), [{ type: 'text' }, { isMeta: true }])
  t.equal(await content('skill', { skill: 'x' }), 'Skill "x" not found')
})

t.test('K34: a container or an array is answered by an array, in order', async (t) => {
  const { answer } = setUp()
  const calls = [chatCall(
    'list_skills', '{}', 'a'
  ), chatCall('nope', '{}', 'b'), chatCall('get_skill', '{', 'c'), chatCall('list_skills', '', 'd')]
  for (const body of [calls, { tool_calls: calls }, { role: 'assistant', content: null, tool_calls: calls }]) {
    t.match(JSON.parse(await answer(body)), [
      { role: 'tool', tool_call_id: 'a', content: '{"skills": ["calculator", "weather"]}' },
      { tool_call_id: 'b', content: /^Unknown tool: nope/ },
      { tool_call_id: 'c', content: /Invalid tool arguments/ },
      { tool_call_id: 'd', content: '{"skills": ["calculator", "weather"]}' }
    ])
  }
  t.equal(JSON.parse(await answer([chatCall('list_skills')])).length, 1)
})

t.test('K34: answers in the dialect of the call, with the same text', async (t) => {
  const { answer } = setUp()
  const content = '"{\\"error\\": \\"Skill \'x\' not found in skills folder\\"}"'
  const args = { skill_name: 'x' }
  t.equal(await answer({ type: 'function_call', call_id: 'a', name: 'get_skill', arguments: JSON.stringify(args) }),
    `{"type":"function_call_output","call_id":"a","output":${content}}`)
  t.equal(await answer({ role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'get_skill', input: args }] }),
    `[{"type":"tool_result","tool_use_id":"a","content":${content},"is_error":true}]`)
  t.equal(await answer({ parts: [{ functionCall: { name: 'get_skill', args } }] }),
    `[{"functionResponse":{"name":"get_skill","response":{"error":${content}}}}]`)
  t.equal(await answer({
    jsonrpc: '2.0', id: 'a', method: 'tools/call', params: { name: 'get_skill', arguments: args }
  }),
  '{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete",' +
      `"content":[{"type":"text","text":${content}}],"isError":true}}`)
})

t.test('K37: an unknown tool, in each dialect\'s error form', async (t) => {
  const { answer } = setUp()
  const message = `"Unknown tool: Nope. Available tools: ${NAMES}"`
  t.equal(await answer(chatCall('Nope')), `{"role":"tool","name":"Nope","content":${message}}`)
  t.equal(await answer({
    type: 'function_call', call_id: 'a', name: 'Nope'
  }), `{"type":"function_call_output","call_id":"a","output":${message}}`)
  t.equal(await answer({
    type: 'tool_use', id: 'a', name: 'Nope'
  }), `{"type":"tool_result","tool_use_id":"a","content":${message},"is_error":true}`)
  t.equal(await answer({
    functionCall: { name: 'Nope' }
  }), `{"functionResponse":{"name":"Nope","response":{"error":${message}}}}`)
  t.equal(await answer({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'Nope' } }),
    `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":${message}}}`)
})

t.test('K40: the errors of a toolset name only its own tools, and no other tool runs', async (t) => {
  const { answer } = setUp()
  const content = async (name: string, toolset?: ToolCallContext['toolset']): Promise<string> =>
    JSON.parse(await answer(chatCall(name), { toolset })).content
  t.equal(
    await content('nope', 'explore'), `Unknown tool: nope. Available tools: ${NAMES}, search_skills, list_skill_files`
  )
  t.equal(await content(
    'nope', 'all'
  ), `Unknown tool: nope. Available tools: ${NAMES}, Skill, skill, search_skills, list_skill_files`)
  t.equal(await content('list_skills', 'wave'), 'Unknown tool: list_skills. Available tools: Skill')
  t.equal(await content('list_skills', 'explore'), '{"skills": ["calculator", "weather"]}')
  t.match(await content('Skill'), 'skill_name parameter', 'without a toolset every tool runs')
  t.equal(JSON.parse(await answer(
    [chatCall('nope'), chatCall('skill', { skill: 'calculator' })], { toolset: 'neovate', skipOthers: true }
  )).length, 1)
})

t.test('K40: others=skip leaves calls of tools that are not ours unanswered', async (t) => {
  const { answer, lines } = setUp()
  const skip = { skipOthers: true }
  const mixed = [
    chatCall('get_weather', '{', 'a'), chatCall('list_skills', '{}', 'b'), chatCall('get_skill', '{', 'c'), {}
  ]
  t.match(JSON.parse(await answer(mixed, skip)), [
    { tool_call_id: 'b' }, { tool_call_id: 'c', content: /Invalid tool arguments/ }, { content: /^Not a tool call/ }
  ])
  t.equal(lines.filter(([, line]) => line.includes('get_weather')).length, 0)
  t.equal(await answer([chatCall('get_weather')], skip), '[]')
  t.equal(await answer(chatCall('get_weather'), skip), '[]', 'a single call too')
  t.equal(
    await answer({ output: [{ type: 'custom_tool_call', call_id: 'a', name: 'shell', input: 'ls' }] }, skip), '[]'
  )
  t.match(await answer(
    { output: [{ type: 'custom_tool_call', call_id: 'a', name: 'get_skill', input: 'x' }] }, skip
  ), 'free text')
})

t.test('what is no call in an MCP batch is an invalid request', async (t) => {
  const json = await setUp().answer([
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_skills' } },
    { jsonrpc: '2.0', id: 2, method: 'tools/list' }
  ])
  t.match(JSON.parse(json), [{ id: 1, result: { isError: false } }, { id: 2, error: { code: -32600 } }])
})

t.test('K37: malformed arguments come back in the tool\'s own form, with its schema', async (t) => {
  const { answer } = setUp()
  t.match(JSON.parse(
    JSON.parse(await answer(chatCall('get_skill', '{"skill_name"'))).content
  ), { error: /^Invalid tool arguments: .* JSON.*\n\nParameters: \{"type":"object"/ })
  t.match(JSON.parse(
    await answer(chatCall('read_file_in_skill', '['))
  ).content, /^ERROR: Invalid tool arguments: .*\n\nParameters: /)
  t.match(
    JSON.parse(await answer(chatCall('Skill', '['))).content,
    /^Error invoking skill '': Invalid tool arguments: .*\n\nParameters: /
  )
  t.match(JSON.parse(await answer(chatCall('skill', '['))).content, /^Invalid tool arguments: .*\n\nParameters: /)
  t.match(JSON.parse(
    await answer({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'skill', arguments: '[' } })
  ), { result: { isError: true } })
})

t.test('K37: no arguments in every form', async (t) => {
  const { answer } = setUp()
  for (const args of ['', ' ', 'null', null, undefined, '{}', {}]) {
    t.equal(JSON.parse(await answer(chatCall('list_skills', args))).content, '{"skills": ["calculator", "weather"]}')
  }
})

t.test('K38: neither what is no call nor too many calls run anything', async (t) => {
  const { handle, lines } = setUp()
  for (const body of [[], {}, { tool_calls: [] }, 'x', null]) t.equal((await handle(body)).kind, 'unrecognised')
  for (const count of [MAX_TOOL_CALLS + 1, 1_000]) {
    t.same(await handle(Array.from({ length: count }, () => chatCall('list_skills'))),
      { kind: 'too_many_calls', detail: `${count} tool calls in one request: the limit is 128` })
  }
  t.same(lines, [])
  t.equal(JSON.parse(await setUp()
    .answer(Array.from({ length: MAX_TOOL_CALLS }, () => chatCall('list_skills')))).length, MAX_TOOL_CALLS)
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
  const { answer } = setUp([slow])
  const pending = answer(Array.from({ length: 40 }, () => chatCall('slow')))
  await new Promise((resolve) => { setImmediate(resolve) })
  t.equal(release.length, TOOL_CALL_CONCURRENCY)
  for (let released = 0; released < 40; released++) {
    release[released]?.()
    await new Promise((resolve) => { setImmediate(resolve) })
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
  const results: Array<{ content: string }> = JSON.parse(await setUp([first, second])
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
  const { answer, lines } = setUp([large])
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

t.test('one failing call does not stop the rest', async (t) => {
  const broken = tool('broken', async () => { throw new TypeError('inside') })
  const fine = tool('fine', async () => new ToolOutcome({}, 'fine'))
  t.match(JSON.parse(await setUp([broken, fine]).answer([chatCall('broken'), chatCall('fine')])), [
    { content: 'FAILED The tool failed unexpectedly' }, { content: 'fine' }
  ])
})

t.test('K39: each call leaves two lines with the request id', async (t) => {
  const { answer, lines } = setUp()
  await answer(chatCall('read_file_in_skill', '{"skill_name": "calculator", "file_path": "a.py"}'))
  t.same(lines, [
    [{ reqId: 'req-1' }, '[Tool Call] read_file_in_skill(skill_name="calculator", file_path="a.py")'],
    [{ reqId: 'req-1' }, '[Tool Result] "print(1)"']
  ])
  lines.length = 0
  await answer(chatCall('evil\n', '{'))
  t.same(lines.map(([, line]) =>
    line), ['[Tool Call] "evil\\n"()', `[Tool Result] error "Unknown tool: evil\\\\u000a. Available tools: ${NAMES}"`])
  lines.length = 0
  await answer(chatCall('get_skill', '{'))
  t.equal(lines[0]?.[1], '[Tool Call] get_skill()')
  t.match(lines[1]?.[1], /^\[Tool Result\] error "/)
})

t.test('Skill and skill are two tools', async (t) => {
  const { answer } = setUp()
  t.match(
    JSON.parse(await answer(chatCall('Skill', { skill: 'calculator' }))).content, 'skill_name parameter is required'
  )
  t.match(JSON.parse(await answer(chatCall('skill', { skill: 'calculator' }))).content, 'calculator is running…')
})
