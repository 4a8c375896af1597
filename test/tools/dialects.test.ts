import t from 'tap'
import type { Dialect, ToolCall } from '../../src/tools/dialects/dialect.ts'
import { openEnvelope } from '../../src/tools/dialects/envelope.ts'
import { gemini, geminiSnakeCase } from '../../src/tools/dialects/wire/gemini.ts'
import { openaiLegacy } from '../../src/tools/dialects/wire/openai-legacy.ts'
import { DIALECTS } from '../../src/tools/dialects/index.ts'
import { ToolOutcome } from '../../src/tools/tool.ts'

const DONE = new ToolOutcome({}, 'a "b"\n')
const FAILED = new ToolOutcome({}, 'no', true)
const NAME = { name: 'get_skill' }
const name = NAME.name
const ARGS = { skill_name: 'weather' }
const FUNCTION = { ...NAME, arguments: JSON.stringify(ARGS) }
const TEXT = { type: 'text', text: 'Let me see.' }

/** The calls of a body that has some. */
function openCalls (body: unknown): { dialect: Dialect, calls: readonly ToolCall[], first: ToolCall, batch: boolean } {
  const envelope = openEnvelope(body)
  if (envelope.kind !== 'calls') throw new Error(envelope.detail)
  const [first] = envelope.calls
  if (first === undefined) throw new Error('no call')
  return { ...envelope, first }
}

interface Row {
  readonly title: string
  readonly dialect: string
  /** Bodies of the same call, with the id `c1` where it has one. */
  readonly bodies: readonly unknown[]
  readonly id?: string | number | undefined
  readonly args?: unknown
  readonly answer: (content: string, failed: boolean) => object
}

const bedrock = { toolUse: { toolUseId: 'c1', name, input: ARGS } }
const vercel = { type: 'tool-call', toolCallId: 'c1', toolName: name, input: ARGS }
const langchain = { name, args: ARGS, id: 'c1', type: 'tool_call' }
const interaction = { type: 'function_call', id: 'c1', name, arguments: ARGS }
const chat = { id: 'c1', type: 'function', function: FUNCTION }
const anthropic = { type: 'tool_use', id: 'c1', name, input: ARGS }

const ROWS: readonly Row[] = [
  { title: 'OpenAI chat', dialect: 'openai', bodies: [chat], args: FUNCTION.arguments, answer: (content) => ({ role: 'tool', tool_call_id: 'c1', name, content }) },
  { title: 'OpenAI chat with function.name only', dialect: 'openai', bodies: [{ function: NAME }], id: undefined, args: undefined, answer: (content) => ({ role: 'tool', name, content }) },
  {
    title: 'a bare call, as Llama and Cohere v1 write it too',
    dialect: 'openai',
    bodies: [{ name, arguments: ARGS }, { name, parameters: ARGS }],
    id: undefined,
    answer: (content) => ({ role: 'tool', name, content })
  },
  { title: 'a bare call with an id', dialect: 'openai', bodies: [{ id: 'c1', name, input: ARGS }], answer: (content) => ({ role: 'tool', tool_call_id: 'c1', name, content }) },
  {
    title: 'OpenAI legacy, on the assistant message',
    dialect: 'openai-legacy',
    bodies: [{ role: 'assistant', content: null, function_call: FUNCTION }],
    id: undefined,
    args: FUNCTION.arguments,
    answer: (content) => ({ role: 'function', name, content })
  },
  {
    title: 'OpenAI Responses, as agent SDKs keep it too',
    dialect: 'openai-responses',
    bodies: [{ type: 'function_call', id: 'fc_1', call_id: 'c1', ...FUNCTION, status: 'completed' }, { type: 'function_call', callId: 'c1', ...FUNCTION }],
    args: FUNCTION.arguments,
    answer: (output) => ({ type: 'function_call_output', call_id: 'c1', output })
  },
  { title: 'Anthropic', dialect: 'anthropic', bodies: [anthropic], answer: (content, failed) => ({ type: 'tool_result', tool_use_id: 'c1', content, is_error: failed }) },
  {
    title: 'Gemini',
    dialect: 'gemini',
    bodies: [{ functionCall: { id: 'c1', name, args: ARGS } }],
    answer: (text, failed) => ({ functionResponse: { id: 'c1', name, response: { [failed ? 'error' : 'output']: text } } })
  },
  {
    title: 'Gemini in snake case, without id and args',
    dialect: 'gemini-snake-case',
    bodies: [{ function_call: NAME }],
    id: undefined,
    args: undefined,
    answer: (text, failed) => ({ function_response: { name, response: { [failed ? 'error' : 'output']: text } } })
  },
  {
    title: 'MCP',
    dialect: 'mcp',
    bodies: [{ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name, arguments: ARGS } }],
    id: 2,
    answer: (text, isError) => ({ jsonrpc: '2.0', id: 2, result: { resultType: 'complete', content: [{ type: 'text', text }], isError } })
  },
  {
    title: 'Bedrock Converse',
    dialect: 'bedrock',
    bodies: [
      bedrock, [{ text: 'Let me see.' }, bedrock], { role: 'assistant', content: [{ text: 'Let me see.' }, bedrock] },
      {
        output: {
          message: { role: 'assistant', content: [{ reasoningContent: { reasoningText: { text: 'Hm.' } } }, bedrock] }
        },
        stopReason: 'tool_use'
      }
    ],
    answer: (text, failed) => ({ toolResult: { toolUseId: 'c1', content: [{ text }], status: failed ? 'error' : 'success' } })
  },
  {
    title: "Mistral's SDK",
    dialect: 'mistral-sdk',
    bodies: [
      { role: 'assistant', content: '', toolCalls: [{ id: 'c1', function: FUNCTION }] }, { toolCalls: [chat] },
      {
        object: 'chat.completion',
        choices: [{
          index: 0,
          message: { role: 'assistant', toolCalls: [{ id: 'c1', index: 0, function: FUNCTION }] },
          finishReason: 'tool_calls'
        }]
      }
    ],
    args: FUNCTION.arguments,
    answer: (content) => ({ role: 'tool', toolCallId: 'c1', name, content })
  },
  {
    title: "Cohere's SDK",
    dialect: 'cohere-sdk',
    bodies: [{ id: 'r1', finishReason: 'TOOL_CALL', message: { role: 'assistant', toolPlan: 'x', toolCalls: [chat] } }],
    args: FUNCTION.arguments,
    answer: (content) => ({ role: 'tool', toolCallId: 'c1', content })
  },
  {
    title: "Vercel's AI SDK",
    dialect: 'vercel-ai-sdk',
    bodies: [
      vercel, [vercel], {
        role: 'assistant', content: [TEXT, vercel, { ...vercel, toolCallId: 'c2', providerExecuted: true }]
      }, { text: '', toolCalls: [vercel] },
      { type: 'tool-call', toolCallId: 'c1', toolName: name, args: ARGS }
    ],
    answer: (value, failed) => ({ type: 'tool-result', toolCallId: 'c1', toolName: name, output: { type: failed ? 'error-text' : 'text', value } })
  },
  {
    title: 'LangChain',
    dialect: 'langchain',
    bodies: [
      langchain, [langchain], { type: 'ai', content: '', tool_calls: [langchain], invalid_tool_calls: [] },
      {
        lc: 1,
        type: 'constructor',
        id: ['langchain_core', 'messages', 'AIMessage'],
        kwargs: { content: '', tool_calls: [langchain], additional_kwargs: {} }
      }
    ],
    answer: (content, failed) => ({ type: 'tool', role: 'tool', tool_call_id: 'c1', name, content, status: failed ? 'error' : 'success' })
  },
  {
    title: 'Gemini Interactions',
    dialect: 'gemini-interactions',
    bodies: [interaction, [
      interaction
    ], { steps: [{ type: 'thought', summary: [] }, interaction] }, { outputs: [{ ...TEXT }, interaction] }],
    answer: (result, failed) => ({ type: 'function_result', call_id: 'c1', name, result, ...failed && { is_error: true } })
  },
  {
    title: 'Ollama',
    dialect: 'ollama',
    bodies: [{
      model: 'm',
      created_at: 'x',
      message: {
        role: 'assistant', content: '', tool_calls: [{ id: 'c1', function: { index: 0, name, arguments: ARGS } }]
      },
      done: true
    }],
    answer: (content) => ({ role: 'tool', tool_call_id: 'c1', tool_name: name, content })
  },
  {
    title: 'OpenAI Assistants',
    dialect: 'openai-assistants',
    bodies: [{
      object: 'thread.run',
      status: 'requires_action',
      required_action: { type: 'submit_tool_outputs', submit_tool_outputs: { tool_calls: [chat] } }
    }],
    args: FUNCTION.arguments,
    answer: (output) => ({ tool_call_id: 'c1', output })
  },
  {
    title: 'OpenAI Realtime',
    dialect: 'openai-responses',
    bodies: [{
      type: 'response.done',
      response: {
        object: 'realtime.response',
        output: [
          {
            id: 'item_1',
            object: 'realtime.item',
            type: 'function_call',
            status: 'completed',
            call_id: 'c1',
            ...FUNCTION
          }
        ]
      }
    }],
    args: FUNCTION.arguments,
    answer: (output) => ({ type: 'function_call_output', call_id: 'c1', output })
  }
]

for (const { title, dialect, bodies, answer, ...rest } of ROWS) {
  t.test(`K34 K35: ${title}: one call, alone and in a list, answered in its own form, which is no call`, async (t) => {
    const args = 'args' in rest ? rest.args : ARGS
    const id = 'id' in rest ? rest.id : 'c1'
    for (const body of bodies) {
      const envelope = openCalls(body)
      t.equal(envelope.dialect.name, dialect, JSON.stringify(body))
      t.same(envelope.calls.map(({ problem, ...call }) => call), [{ id, name, args }])
      t.equal(JSON.stringify(envelope.dialect.writeResult(envelope.first, DONE)), JSON.stringify(answer(DONE.text, false)))
      t.equal(JSON.stringify(envelope.dialect.writeResult(envelope.first, FAILED)), JSON.stringify(answer(FAILED.text, true)))
    }
    const [call] = bodies
    for (const body of [[call, call], { tool_calls: [call, call] }]) {
      if (openCalls(call).batch) break
      t.match(openEnvelope(body), { kind: 'calls', batch: true, calls: [{ id, name, args }, { id, name, args }] })
    }
    if (dialect !== 'openai-assistants') t.match(openEnvelope(answer('x', false)), { kind: 'unrecognised', detail: /^This is the result/ })
  })
}

t.test('K34: containers give up their calls and leave out the rest', async (t) => {
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

t.test('K34: a call of a custom tool is answered beside function calls, in its own form', async (t) => {
  const custom = { type: 'custom_tool_call', id: 'ctc_1', call_id: 'c1', name, input: 'weather' }
  const call = { type: 'function_call', call_id: 'c2', ...FUNCTION }
  for (const body of [{ output: [custom, call] }, [custom, call]]) {
    const { dialect, calls: [first, second] } = openCalls(body)
    t.match([first, second], [{ id: 'c1', problem: /free text/ }, { id: 'c2', problem: undefined }])
    if (first === undefined || second === undefined) continue
    t.equal(JSON.stringify(dialect.writeResult(first, FAILED)), '{"type":"custom_tool_call_output","call_id":"c1","output":"no"}')
    t.equal(JSON.stringify(dialect.writeResult(second, DONE)), '{"type":"function_call_output","call_id":"c2","output":"a \\"b\\"\\n"}')
  }
})

t.test('K37: LangChain: a call whose arguments are not JSON is answered in its own form', async (t) => {
  // Without `type`, as a message has it that was made of OpenAI's.
  const broken = { name, args: '{"skill_name', id: 'c2', error: 'Malformed args.' }
  const kwargs = {
    content: '',
    tool_calls: [langchain],
    invalid_tool_calls: [broken, { ...broken, id: 'c3', type: 'invalid_tool_call' }]
  }
  for (const body of [{ lc: 1, type: 'constructor', kwargs }, { type: 'ai', ...kwargs }]) {
    const { dialect, calls } = openCalls(body)
    t.equal(dialect.name, 'langchain')
    t.match(calls, [
      { id: 'c1', args: ARGS }, { id: 'c2', name, args: broken.args }, { id: 'c3', name, args: broken.args }
    ])
    t.ok(calls.every(({ problem }) => problem === undefined))
  }
  t.match(openCalls({ lc: 1, kwargs: { tool_calls: [], invalid_tool_calls: [broken] } }), {
    dialect: { name: 'langchain' }, calls: [{ id: 'c2' }]
  })
})

t.test("what lies in a provider's container keeps its answer, whatever it is", async (t) => {
  const rows: ReadonlyArray<readonly [body: object, dialect: string]> = [
    [{ message: { role: 'assistant', tool_calls: [chat, null, { id: 'c2', function: {} }] }, done: true }, 'ollama'],
    [{ role: 'assistant', toolCalls: [{ id: 'c0' }, chat, 'x'] }, 'mistral-sdk'],
    [{ message: { toolCalls: [chat, {}, []] } }, 'cohere-sdk'],
    [{ required_action: { submit_tool_outputs: { tool_calls: [null, chat, {}] } } }, 'openai-assistants']
  ]
  for (const [body, dialect] of rows) {
    const envelope = openCalls(body)
    t.equal(envelope.dialect.name, dialect)
    t.same(envelope.calls.map(({ problem }) => problem === undefined).sort(), [false, false, true])
  }
})

t.test('a response without a call is none, in every shape', async (t) => {
  const bodies = [
    {
      message: { role: 'assistant', content: 'Done.' }, done: true
    }, { choices: [{ message: { role: 'assistant', content: 'Done.', toolCalls: [] } }] },
    {
      message: { role: 'assistant', content: [TEXT], toolCalls: [] }
    }, { text: 'Done.', toolCalls: [] }, { steps: [{ type: 'model_output' }] },
    {
      output: { message: { role: 'assistant', content: [{ text: 'Done.' }] } }
    }, { lc: 1, kwargs: { content: 'Done.', tool_calls: [] } },
    { response: { output: [] } }, { required_action: { submit_tool_outputs: { tool_calls: [] } } }
  ]
  for (const body of bodies) {
    t.match(openEnvelope(body), { kind: 'unrecognised', detail: /^No tool call is in it/ }, JSON.stringify(body))
  }
})

t.test('near misses: the item of OpenAI Responses is none of Gemini Interactions', async (t) => {
  t.match(openEnvelope({ ...interaction, call_id: 'c1' }), { kind: 'calls', dialect: { name: 'openai-responses' } })
  t.match(
    openEnvelope({ ...interaction, arguments: '{}' }), { kind: 'unrecognised' }, 'text as arguments and no call_id'
  )
  t.match(openEnvelope({ output: [{ ...interaction, call_id: 'c1' }], steps: [interaction] }), {
    dialect: { name: 'openai-responses' }
  })
})
