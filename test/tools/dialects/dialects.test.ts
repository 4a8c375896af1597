import t from 'tap'
import { openEnvelope } from '../../../src/tools/dialects/envelope.ts'
import { gemini, geminiSnakeCase } from '../../../src/tools/dialects/wire/gemini.ts'
import { openaiLegacy } from '../../../src/tools/dialects/wire/openai-legacy.ts'
import { DIALECTS } from '../../../src/tools/dialects/index.ts'
import { ToolOutcome } from '../../../src/tools/tool.ts'
import { openCalls } from './open-calls.ts'

const DONE = new ToolOutcome({}, 'a "b"\n')
const FAILED = new ToolOutcome({}, 'no', true)
const NAME = { name: 'get_skill' }

interface Row {
  readonly title: string
  readonly call: object
  readonly read: object
  readonly done: string
  readonly failed: string
}

const CHAT_DONE = '{"role":"tool","tool_call_id":"call_abc","name":"get_skill","content":"a \\"b\\"\\n"}'
const CHAT_FAILED = '{"role":"tool","tool_call_id":"call_abc","name":"get_skill","content":"no"}'

const ROWS: readonly Row[] = [
  {
    title: 'K35: OpenAI chat',
    call: { id: 'call_abc', type: 'function', function: { ...NAME, arguments: '{"skill_name":"pdf"}' } },
    read: { id: 'call_abc', ...NAME, args: '{"skill_name":"pdf"}' },
    done: CHAT_DONE,
    failed: CHAT_FAILED
  },
  {
    title: 'K35: OpenAI chat with function.name only',
    call: { function: NAME },
    read: { ...NAME, args: undefined },
    done: '{"role":"tool","name":"get_skill","content":"a \\"b\\"\\n"}',
    failed: '{"role":"tool","name":"get_skill","content":"no"}'
  },
  {
    title: 'a bare call',
    call: { ...NAME, arguments: { a: 1 } },
    read: { ...NAME, args: { a: 1 } },
    done: '{"role":"tool","name":"get_skill","content":"a \\"b\\"\\n"}',
    failed: '{"role":"tool","name":"get_skill","content":"no"}'
  },
  {
    title: 'a bare call with input and an id',
    call: { id: 'call_abc', ...NAME, input: { a: 1 } },
    read: { id: 'call_abc', ...NAME, args: { a: 1 } },
    done: CHAT_DONE,
    failed: CHAT_FAILED
  },
  {
    title: 'a bare call with parameters, as Llama and Cohere v1 write it',
    call: { ...NAME, parameters: { a: 1 } },
    read: { ...NAME, args: { a: 1 } },
    done: '{"role":"tool","name":"get_skill","content":"a \\"b\\"\\n"}',
    failed: '{"role":"tool","name":"get_skill","content":"no"}'
  },
  {
    title: 'OpenAI legacy, on the assistant message',
    call: { role: 'assistant', content: null, function_call: { ...NAME, arguments: '{}' } },
    read: { ...NAME, args: '{}' },
    done: '{"role":"function","name":"get_skill","content":"a \\"b\\"\\n"}',
    failed: '{"role":"function","name":"get_skill","content":"no"}'
  },
  {
    title: 'OpenAI Responses',
    call: { type: 'function_call', id: 'fc_1', call_id: 'call_abc', ...NAME, arguments: '{}', status: 'completed' },
    read: { id: 'call_abc', ...NAME, args: '{}' },
    done: '{"type":"function_call_output","call_id":"call_abc","output":"a \\"b\\"\\n"}',
    failed: '{"type":"function_call_output","call_id":"call_abc","output":"no"}'
  },
  {
    title: 'OpenAI Responses as agent SDKs keep it',
    call: { type: 'function_call', callId: 'call_abc', ...NAME, arguments: '{}' },
    read: { id: 'call_abc', ...NAME, args: '{}' },
    done: '{"type":"function_call_output","call_id":"call_abc","output":"a \\"b\\"\\n"}',
    failed: '{"type":"function_call_output","call_id":"call_abc","output":"no"}'
  },
  {
    title: 'Anthropic',
    call: { type: 'tool_use', id: 'toolu_1', ...NAME, input: { a: 1 } },
    read: { id: 'toolu_1', ...NAME, args: { a: 1 } },
    done: '{"type":"tool_result","tool_use_id":"toolu_1","content":"a \\"b\\"\\n","is_error":false}',
    failed: '{"type":"tool_result","tool_use_id":"toolu_1","content":"no","is_error":true}'
  },
  {
    title: 'Gemini',
    call: { functionCall: { id: 'fc1', ...NAME, args: { a: 1 } } },
    read: { id: 'fc1', ...NAME, args: { a: 1 } },
    done: '{"functionResponse":{"id":"fc1","name":"get_skill","response":{"output":"a \\"b\\"\\n"}}}',
    failed: '{"functionResponse":{"id":"fc1","name":"get_skill","response":{"error":"no"}}}'
  },
  {
    title: 'Gemini in snake case, without id and args',
    call: { function_call: NAME },
    read: { ...NAME, args: undefined },
    done: '{"function_response":{"name":"get_skill","response":{"output":"a \\"b\\"\\n"}}}',
    failed: '{"function_response":{"name":"get_skill","response":{"error":"no"}}}'
  },
  {
    title: 'MCP',
    call: { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { ...NAME, arguments: { a: 1 } } },
    read: { id: 2, ...NAME, args: { a: 1 } },
    done: '{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[{"type":"text","text":"a ' +
      '\\"b\\"\\n"}],"isError":false}}',
    failed: '{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete",' +
      '"content":[{"type":"text","text":"no"}],"isError":true}}'
  }
]

for (const { title, call, read, done, failed } of ROWS) {
  t.test(`${title}: call and result are the reference's`, async (t) => {
    const envelope = openCalls(call)
    t.equal(envelope.batch, false)
    t.same(envelope.first, { id: undefined, ...read })
    t.equal(JSON.stringify(envelope.dialect.writeResult(envelope.first, DONE)), done)
    t.equal(JSON.stringify(envelope.dialect.writeResult(envelope.first, FAILED)), failed)
  })

  t.test(`${title}: tool_calls and an array hold it too (K34)`, async (t) => {
    for (const body of [[call, call], { tool_calls: [call, call] }]) {
      t.match(openEnvelope(body), { kind: 'calls', batch: true, calls: [read, read] })
    }
  })
}

t.test('containers give up their calls and leave out the rest', async (t) => {
  const chat = { id: 'a', type: 'function', function: { ...NAME, arguments: '{}' } }
  const use = { type: 'tool_use', id: 'a', ...NAME, input: {} }
  const item = { type: 'function_call', call_id: 'a', ...NAME, arguments: '{}' }
  const part = { functionCall: { id: 'a', ...NAME, args: {} } }
  const snake = { function_call: { id: 'a', ...NAME, args: {} } }
  const text = { type: 'text', text: 'thinking' }
  const rows: ReadonlyArray<readonly [body: object, dialect: string]> = [
    [{ role: 'assistant', content: [text], tool_calls: [chat] }, 'openai'],
    [{ choices: [{ message: { role: 'assistant', tool_calls: [chat] } }] }, 'openai'],
    [{
      role: 'assistant', content: [text, use, { type: 'server_tool_use', id: 'b', name: 'web', input: {} }]
    }, 'anthropic'],
    [{ type: 'message', role: 'assistant', content: [use] }, 'anthropic'],
    [{
      role: 'assistant',
      content: [{ text: 'x' }, {
        toolUse: { toolUseId: 'a', ...NAME, input: {} }
      }, { toolUse: { toolUseId: 'b', name: 'web', input: {}, type: 'server_tool_use' } }]
    }, 'bedrock'],
    [{ object: 'response', output: [{ type: 'reasoning' }, item] }, 'openai-responses'],
    [{ role: 'model', parts: [{ text: 'x' }, part] }, 'gemini'],
    [{ content: { role: 'model', parts: [part] } }, 'gemini'],
    [{ candidates: [{ content: { parts: [part, { text: 'x' }] } }] }, 'gemini'],
    [{ parts: [snake] }, 'gemini-snake-case'],
    [{
      candidates: [
        { content: { role: 'model', parts: [{ text: 'x', function_call: null }, { ...snake, text: null }] } }
      ]
    }, 'gemini-snake-case'],
    [{ message: { role: 'assistant', content: '', tool_calls: [chat] } }, 'openai'],
    [{ role: 'assistant', content: null, function_call: { ...NAME, arguments: '{}' }, tool_calls: [chat] }, 'openai']
  ]
  for (const [body, dialect] of rows) {
    const envelope = openCalls(body)
    t.match(envelope, { kind: 'calls', batch: true, dialect: { name: dialect }, calls: [{ id: 'a', ...NAME }] })
    t.equal(envelope.calls.length, 1)
  }
  t.match(openEnvelope({ choices: [{ message: { role: 'assistant', function_call: { ...NAME, arguments: '{}' } } }] }),
    { kind: 'calls', batch: true, dialect: openaiLegacy, calls: [NAME] })
})

t.test('the lists inside a response may be sent alone: what stands beside the calls gets no answer', async (t) => {
  const use = { type: 'tool_use', id: 'a', ...NAME, input: {} }
  const item = { type: 'function_call', call_id: 'a', ...NAME, arguments: '{}' }
  const part = { functionCall: { id: 'a', ...NAME, args: {} } }
  const rows: ReadonlyArray<readonly [list: readonly object[], dialect: string]> = [
    [[{
      type: 'thinking', thinking: 'x'
    }, { type: 'text', text: 'x' }, use, { type: 'server_tool_use', id: 'b', name: 'web', input: {} }], 'anthropic'],
    [[
      { type: 'reasoning', id: 'rs_1', summary: [] }, item, { type: 'message', role: 'assistant', content: [] }
    ], 'openai-responses'],
    [[{ text: 'x', thought: true }, {
      ...part, thoughtSignature: 'x'
    }, { executableCode: { code: 'x' } }, { text: 'y', functionCall: null }], 'gemini']
  ]
  for (const [list, dialect] of rows) {
    const envelope = openCalls(list)
    t.equal(envelope.dialect.name, dialect)
    t.match(envelope.calls, [{ id: 'a', ...NAME, problem: undefined }])
    t.equal(envelope.calls.length, 1)
    t.ok(envelope.batch)
  }
})

t.test('a broken call in such a list keeps its answer', async (t) => {
  const rows: ReadonlyArray<readonly [list: readonly unknown[], ids: readonly unknown[]]> = [
    [[{ type: 'tool_use', id: 'a', ...NAME }, { type: 'tool_use', id: 'b' }, null], ['a', 'b', undefined]],
    [[{
      type: 'function_call', call_id: 'a', ...NAME
    }, { type: 'function_call', id: 'b', ...NAME }, { id: 'c', function: NAME }], ['a', undefined, 'c']],
    [[{ functionCall: { id: 'a', ...NAME } }, { functionCall: { id: 'b' } }, 5], ['a', 'b', undefined]],
    [[
      { type: 'function_call', id: 'a', ...NAME, arguments: {} }, { id: 'b', ...NAME }, { type: 'thought' }
    ], ['a', 'b']]
  ]
  for (const [list, ids] of rows) t.same(openCalls(list).calls.map(({ id }) => id), ids)
})

t.test('near misses: Responses, Gemini in snake case and OpenAI legacy are told apart', async (t) => {
  t.match(openEnvelope({ function_call: { ...NAME, args: {} } }), { dialect: geminiSnakeCase })
  t.match(openEnvelope({ function_call: { ...NAME, arguments: '{}' } }), { dialect: openaiLegacy })
  t.match(openEnvelope({ functionCall: { ...NAME, args: {} } }), { dialect: gemini })
  for (const id of [{ call_id: 'a' }, { callId: 'a' }]) {
    t.match(openEnvelope({
      type: 'function_call', id: 'b', ...id, ...NAME, arguments: {}
    }), { dialect: { name: 'openai-responses' }, calls: [{ id: 'a' }] })
  }
  t.match(openEnvelope({ functionCall: { ...NAME }, role: 'model' }), { kind: 'unrecognised' })
})

t.test('what is no call is refused, with the accepted shapes', async (t) => {
  const rows: ReadonlyArray<readonly [body: unknown, detail: RegExp]> = [
    [undefined, /^No tool call was found\. Send one tool call/],
    [null, /^No tool call/],
    [5, /^No tool call/],
    [[], /^No tool call/],
    [{}, /^No tool call/],
    [{ tool_calls: [] }, /^No tool call/],
    [[[{ function: NAME }]], /^No tool call/],
    [[{ id: 'a', ...NAME, skill_name: 'x' }], /^A call by its bare name/],
    [{ role: 'assistant', content: [{ type: 'text', text: 'x' }] }, /^No tool call/],
    [{ output: [{ type: 'message' }] }, /^No tool call/],
    [{ parts: [{ text: 'x' }] }, /^No tool call/],
    ['{"function":{"name":"list_skills"}}', /^The body is a JSON string/],
    [{
      role: 'tool', tool_call_id: 'a', content: 'x', name: 'get_skill', arguments: '{}'
    }, /^This is the result of a tool call/],
    [{ type: 'tool_result', tool_use_id: 'a' }, /^This is the result/],
    [{ type: 'function_call_output', call_id: 'a' }, /^This is the result/],
    [{ functionResponse: { name: 'get_skill' } }, /^This is the result/],
    [[{ role: 'tool', content: 'x' }], /^This is the result/],
    [{ jsonrpc: '2.0', id: 1, result: { content: [] } }, /^This is the result/],
    [{ jsonrpc: '2.0', id: 1, error: { code: -32602, message: 'x' } }, /^This is the result/],
    [{ error: { code: 404, message: 'x' } }, /^No tool call/],
    [{ jsonrpc: '2.0', id: 1, method: 'tools/list', function: NAME }, /^The only JSON-RPC/],
    [
      { choices: [{ message: { role: 'assistant', content: 'Done.' } }] }, /^No tool call is in it\. Send one tool call/
    ],
    [{ type: 'message', role: 'assistant', content: [{ type: 'text', text: 'Done.' }] }, /^No tool call is in it/],
    [{ candidates: [{ content: { parts: [{ text: 'Done.' }] } }] }, /^No tool call is in it/],
    [{ jsonrpc: '2.0', id: 1, method: 'tools/list' }, /^The only JSON-RPC 2\.0 method here is tools\/call/],
    [{ jsonrpc: '1.0', method: 'tools/call', ...NAME, arguments: {} }, /^The only JSON-RPC/],
    [{ type: 'function_call', ...NAME, arguments: '{}' }, /^No tool call/],
    [{ type: 'server_tool_use', id: 'a', ...NAME, input: {} }, /^No tool call/],
    [{ function: { name: 5 } }, /^No tool call/],
    [{ function: 'get_skill' }, /^No tool call/],
    [
      { name: 'get_skill' }, /^A call by its bare name needs "arguments" next to it, \{\} for none\. Send one tool call/
    ],
    [{ name: 'get_skill', description: 'A definition', parameters: {} }, /^No tool call/],
    [JSON.parse('{"__proto__":{"function":{"name":"list_skills"}}}'), /^No tool call/],
    [Object.create({ function: NAME }), /^No tool call/]
  ]
  for (const [body, detail] of rows) {
    const envelope = openEnvelope(body)
    t.equal(envelope.kind, 'unrecognised')
    t.match(envelope, { detail })
  }
})

t.test('a batch has the shape of its first call; others in it keep their place and their id', async (t) => {
  const envelope = openCalls([
    { nothing: true },
    { id: 'a', function: NAME },
    { id: 'b', function: {} },
    { type: 'tool_use', id: 'c', ...NAME, input: {} },
    null
  ])
  t.equal(envelope.dialect.name, 'openai')
  t.same(envelope.calls.map(({ id, problem }) => [id, problem === undefined]), [
    [undefined, false], ['a', true], ['b', false], ['c', false], [undefined, false]
  ])
})

t.test('calls of every other dialect in a batch keep their id and their name', async (t) => {
  const others = [
    { id: 'a', type: 'function', function: NAME }, {
      type: 'function_call', call_id: 'a', ...NAME, arguments: '{}'
    }, { type: 'tool_use', id: 'a', ...NAME, input: {} },
    {
      functionCall: { id: 'a', ...NAME }
    }, { function_call: { id: 'a', ...NAME } }, { type: 'function_call', id: 'a', ...NAME, arguments: {} },
    { jsonrpc: '2.0', id: 'a', method: 'tools/call', params: NAME }, { toolUse: { toolUseId: 'a', ...NAME } },
    {
      type: 'tool-call', toolCallId: 'a', toolName: NAME.name, input: {}
    }, { ...NAME, args: {}, id: 'a', type: 'tool_call' }
  ]
  for (const first of others) {
    const { dialect, calls } = openCalls([first, ...others.filter((other) => other !== first)])
    t.match(calls, others.map(() => ({ id: 'a', ...NAME })), dialect.name)
    t.equal(calls.filter(({ problem }) => problem === undefined).length, 1, dialect.name)
  }
})

t.test('of a conversation, messages get no answer, and calls that have theirs get no second one', async (t) => {
  const item = (id: string) => ({ type: 'function_call', call_id: id, ...NAME, arguments: '{}' })
  const output = (id: string) => ({ type: 'function_call_output', call_id: id, output: 'x' })
  const custom = (id: string) => ({ type: 'custom_tool_call', call_id: id, ...NAME, input: 'x' })
  const customOutput = (id: string) => ({ type: 'custom_tool_call_output', call_id: id, output: 'x' })
  const step = (id: string) => ({ type: 'function_call', id, ...NAME, arguments: {} })
  const result = (id: string) => ({ type: 'function_result', call_id: id, ...NAME, result: 'x' })
  const user = { role: 'user', content: 'Hello' }
  const rows: ReadonlyArray<readonly [list: readonly object[], ids: readonly unknown[]]> = [
    [[user, item('a')], ['a']],
    [[user, item('a'), item('b'), output('a'), { role: 'assistant', content: 'x' }, item('c')], ['b', 'c']],
    [[user, custom('a'), item('b'), customOutput('a')], ['b']],
    [[user, step('a'), step('b'), result('a')], ['b']],
    [[user, { role: 'assistant', content: null, function_call: { ...NAME, arguments: '{}' } }], [undefined]],
    [[{ role: 'system', content: 'x' }, { id: 'a', function: NAME }], ['a']],
    [[{ id: 'a', function: NAME }, { role: 'assistant', tool_calls: [{ id: 'b', function: NAME }] }], ['a', undefined]]
  ]
  for (const [list, ids] of rows) t.same(openCalls(list).calls.map(({ id }) => id), ids)
  t.match(openEnvelope([user, item('a'), output('a')]), {
    kind: 'unrecognised', detail: /^Every tool call in it has its result/
  })
})

t.test('an OpenAI custom tool call carries free text and is refused', async (t) => {
  const body = { id: 'a', type: 'custom', custom: { ...NAME, input: 'free text' } }
  t.match(openEnvelope(body), { kind: 'calls', calls: [{ id: 'a', ...NAME, problem: /free text/ }] })
})

t.test('an id is echoed as it came, and what is no id is none', async (t) => {
  const rows: ReadonlyArray<readonly [id: unknown, written: string]> = [
    ['', '"tool_call_id":"",'],
    ['x'.repeat(10_000), `"tool_call_id":"${'x'.repeat(10_000)}",`],
    ['a"\n', '"tool_call_id":"a\\"\\n",'],
    [5, '"tool_call_id":5,'],
    [null, ''],
    [{}, ''],
    [Infinity, '']
  ]
  for (const [id, written] of rows) {
    const { dialect, first } = openCalls({ id, function: NAME })
    t.equal(JSON.stringify(dialect.writeResult(first, FAILED)), `{"role":"tool",${written}"name":"get_skill","content":"no"}`)
  }
})

t.test('an MCP request without an id is answered with a null one', async (t) => {
  const { dialect, first } = openCalls({ jsonrpc: '2.0', method: 'tools/call', params: NAME })
  t.match(JSON.stringify(dialect.writeResult(first, DONE)), '{"jsonrpc":"2.0","id":null,')
})

t.test('a batch of more elements than any conversation has is refused before each of them is looked at', (t) => {
  const call = { name: 'get_skill', arguments: {} }
  for (const item of [{}, call]) {
    t.match(openEnvelope(new Array(10_001).fill(item)), {
      kind: 'too_many_calls', detail: '10001 elements in one request: the limit is 10000'
    })
  }
  let looks = 0
  const watched = new Proxy({}, {
    getOwnPropertyDescriptor () {
      looks++
      return undefined
    }
  })
  openEnvelope(new Array(300_000).fill(watched))
  t.equal(looks, 0)
  t.equal(openEnvelope(new Array(10_000).fill(call)).kind, 'calls')
  t.end()
})

t.test('each dialect reads what it does not recognise without throwing', async (t) => {
  for (const dialect of DIALECTS) {
    for (const value of [
      null, undefined, 5, 'x', [], {}, { function: 5, function_call: [], functionCall: 'x', params: null, id: {} }
    ]) {
      t.match(dialect.readCall(value), { name: '' })
    }
  }
})
