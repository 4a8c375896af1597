import t from 'tap'
import type { Dialect, ToolCall } from '../../src/tools/dialects/dialect.ts'
import { openEnvelope } from '../../src/tools/dialects/envelope.ts'
import { openaiLegacy } from '../../src/tools/dialects/wire/openai-legacy.ts'
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
  /** By default, that of the dialect. */
  readonly title?: string
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
  {
    title: 'OpenAI chat',
    dialect: 'openai',
    bodies: [chat],
    args: FUNCTION.arguments,
    answer: (content) =>
      ({ role: 'tool', tool_call_id: 'c1', name, content })
  },
  {
    title: 'OpenAI chat with function.name only',
    dialect: 'openai',
    bodies: [{
      function: NAME
    }],
    id: undefined,
    args: undefined,
    answer: (content) => ({ role: 'tool', name, content })
  },
  {
    title: 'a bare call, as Llama and Cohere v1 write it too',
    dialect: 'openai',
    bodies: [{ name, arguments: ARGS }, { name, parameters: ARGS }],
    id: undefined,
    answer: (content) => ({ role: 'tool', name, content })
  },
  {
    title: 'a bare call with an id',
    dialect: 'openai',
    bodies: [{
      id: 'c1', name, input: ARGS
    }],
    answer: (content) => ({ role: 'tool', tool_call_id: 'c1', name, content })
  },
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
    bodies: [{ type: 'function_call', id: 'fc_1', call_id: 'c1', ...FUNCTION, status: 'completed' },
      { type: 'function_call', callId: 'c1', ...FUNCTION }],
    args: FUNCTION.arguments,
    answer: (output) => ({ type: 'function_call_output', call_id: 'c1', output })
  },
  {
    title: 'Anthropic',
    dialect: 'anthropic',
    bodies: [anthropic],
    answer: (content, failed) =>
      ({ type: 'tool_result', tool_use_id: 'c1', content, is_error: failed })
  },
  {
    dialect: 'gemini',
    bodies: [{ functionCall: { id: 'c1', name, args: ARGS } }],
    answer: (text, failed) =>
      ({ functionResponse: { id: 'c1', name, response: { [failed ? 'error' : 'output']: text } } })
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
    dialect: 'mcp',
    bodies: [{ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name, arguments: ARGS } }],
    id: 2,
    answer: (text, isError) =>
      ({ jsonrpc: '2.0', id: 2, result: { resultType: 'complete', content: [{ type: 'text', text }], isError } })
  },
  {
    dialect: 'bedrock',
    bodies: [
      bedrock, [{ text: 'Let me see.' }, bedrock], { role: 'assistant', content: [{ text: 'Let me see.' }, bedrock] },
      { output: { message: { role: 'assistant', content: [{ reasoningContent: {} }, bedrock] } } }
    ],
    answer: (text, failed) =>
      ({ toolResult: { toolUseId: 'c1', content: [{ text }], status: failed ? 'error' : 'success' } })
  },
  {
    dialect: 'mistral-sdk',
    bodies: [
      { role: 'assistant', content: '', toolCalls: [{ id: 'c1', function: FUNCTION }] }, { toolCalls: [chat] },
      { object: 'chat.completion', choices: [{ message: { role: 'assistant', toolCalls: [{ ...chat, index: 0 }] } }] }
    ],
    args: FUNCTION.arguments,
    answer: (content) => ({ role: 'tool', toolCallId: 'c1', name, content })
  },
  {
    dialect: 'cohere-sdk',
    bodies: [{ id: 'r1', finishReason: 'TOOL_CALL', message: { role: 'assistant', toolPlan: 'x', toolCalls: [chat] } }],
    args: FUNCTION.arguments,
    answer: (content) => ({ role: 'tool', toolCallId: 'c1', content })
  },
  {
    dialect: 'vercel-ai-sdk',
    bodies: [
      vercel, [vercel], { text: '', toolCalls: [vercel] },
      { type: 'tool-call', toolCallId: 'c1', toolName: name, args: ARGS },
      { role: 'assistant', content: [TEXT, vercel, { ...vercel, toolCallId: 'c2', providerExecuted: true }] }
    ],
    answer: (value,
      failed) => ({
      type: 'tool-result', toolCallId: 'c1', toolName: name, output: { type: failed ? 'error-text' : 'text', value }
    })
  },
  {
    dialect: 'langchain',
    bodies: [
      langchain, [langchain], { type: 'ai', content: '', tool_calls: [langchain], invalid_tool_calls: [] },
      { lc: 1, type: 'constructor', id: ['langchain_core'], kwargs: { content: '', tool_calls: [langchain] } }
    ],
    answer: (content, failed) =>
      ({ type: 'tool', role: 'tool', tool_call_id: 'c1', name, content, status: failed ? 'error' : 'success' })
  },
  {
    dialect: 'gemini-interactions',
    bodies: [interaction, [interaction], { steps: [{ type: 'thought' }, interaction] },
      { outputs: [TEXT, interaction] }],
    answer: (result, failed) =>
      ({ type: 'function_result', call_id: 'c1', name, result, ...failed && { is_error: true } })
  },
  {
    dialect: 'ollama',
    bodies: [{ message: { tool_calls: [{ id: 'c1', function: { name, arguments: ARGS } }] }, done: true }],
    answer: (content) => ({ role: 'tool', tool_call_id: 'c1', tool_name: name, content })
  },
  {
    dialect: 'openai-assistants',
    bodies: [{ object: 'thread.run', required_action: { submit_tool_outputs: { tool_calls: [chat] } } }],
    args: FUNCTION.arguments,
    answer: (output) => ({ tool_call_id: 'c1', output })
  },
  {
    title: 'OpenAI Realtime',
    dialect: 'openai-responses',
    bodies: [{ type: 'response.done', response: { output: [{ type: 'function_call', call_id: 'c1', ...FUNCTION }] } }],
    args: FUNCTION.arguments,
    answer: (output) => ({ type: 'function_call_output', call_id: 'c1', output })
  }
]

for (const { dialect, title = dialect, bodies, answer, ...rest } of ROWS) {
  t.test(`K34 K35: ${title}: one call, alone and in a list, answered in its own form, which is no call`, async (t) => {
    const args = 'args' in rest ? rest.args : ARGS
    const id = 'id' in rest ? rest.id : 'c1'
    for (const body of bodies) {
      const envelope = openCalls(body)
      t.equal(envelope.dialect.name, dialect, JSON.stringify(body))
      t.same(envelope.calls.map(({ problem, ...call }) => call), [{ id, name, args }])
      t.equal(JSON.stringify(envelope.dialect.writeResult(envelope.first, DONE)),
        JSON.stringify(answer(DONE.text, false)))
      t.equal(JSON.stringify(envelope.dialect.writeResult(envelope.first, FAILED)),
        JSON.stringify(answer(FAILED.text, true)))
    }
    const [call] = bodies
    for (const body of [[call, call], { tool_calls: [call, call] }]) {
      if (openCalls(call).batch) break
      t.match(openEnvelope(body), { kind: 'calls', batch: true, calls: [{ id, name, args }, { id, name, args }] })
    }
    if (dialect !== 'openai-assistants') {
      t.match(openEnvelope(answer('x', false)), { kind: 'unrecognised', detail: /^This is the result/ })
    }
  })
}

const use = { type: 'tool_use', id: 'a', ...NAME, input: {} }
const item = { type: 'function_call', call_id: 'a', ...NAME, arguments: '{}' }
const part = { functionCall: { id: 'a', ...NAME, args: {} } }
const snake = { function_call: { id: 'a', ...NAME, args: {} } }
const serverUse = { type: 'server_tool_use', id: 'b', name: 'web', input: {} }

t.test('K34: containers, and the lists in them, give up their calls and leave out the rest', async (t) => {
  const chat = { id: 'a', type: 'function', function: { ...NAME, arguments: '{}' } }
  const legacy = { role: 'assistant', content: null, function_call: { ...NAME, arguments: '{}' } }
  const message = { role: 'assistant', content: [TEXT], tool_calls: [chat] }
  const toolUse = { toolUseId: 'a', ...NAME, input: {} }
  const dumped = { role: 'model', parts: [{ text: 'x', function_call: null }, { ...snake, text: null }] }
  for (const [body, dialect] of [
    [message, 'openai'],
    [{ choices: [{ message }] }, 'openai'],
    [{ message: { role: 'assistant', content: '', tool_calls: [chat] } }, 'openai'],
    [{ ...legacy, tool_calls: [chat] }, 'openai'],
    [{ role: 'assistant', content: [TEXT, use, serverUse] }, 'anthropic'],
    [{ type: 'message', role: 'assistant', content: [use] }, 'anthropic'],
    [[{ type: 'thinking', thinking: 'x' }, TEXT, use, serverUse], 'anthropic'],
    [{ role: 'assistant', content: [{ text: 'x' }, { toolUse }, { toolUse: { ...toolUse, ...serverUse } }] },
      'bedrock'],
    [{ object: 'response', output: [{ type: 'reasoning' }, item] }, 'openai-responses'],
    [[{ type: 'reasoning' }, item, { type: 'message', role: 'assistant', content: [] }], 'openai-responses'],
    [{ role: 'model', parts: [{ text: 'x' }, part] }, 'gemini'],
    [{ content: { role: 'model', parts: [part] } }, 'gemini'],
    [{ candidates: [{ content: { parts: [part, { text: 'x' }] } }] }, 'gemini'],
    [[{ text: 'x', thought: true }, { ...part, thoughtSignature: 'x' }, { executableCode: { code: 'x' } }], 'gemini'],
    [{ parts: [snake] }, 'gemini-snake-case'],
    [{ candidates: [{ content: dumped }] }, 'gemini-snake-case']
  ] as const) {
    const { dialect: { name }, calls, batch } = openCalls(body)
    t.strictSame([name, batch, calls.length], [dialect, true, 1], JSON.stringify(body))
    t.match(calls, [{ id: 'a', ...NAME, problem: undefined }])
  }
  t.match(openCalls({ choices: [{ message: legacy }] }), { batch: true, dialect: openaiLegacy, calls: [NAME] })
})

t.test('K34: a broken call, or one of another dialect, keeps its place and its id', async (t) => {
  for (const [body, dialect, ids, whole = 1] of [
    [[use, { type: 'tool_use', id: 'b' }, null], 'anthropic', ['a', 'b', undefined], 2],
    [[item, { ...item, call_id: undefined }, { id: 'c', function: NAME }], 'openai-responses', ['a', undefined, 'c']],
    [[part, { functionCall: { id: 'b' } }, 5], 'gemini', ['a', 'b', undefined]],
    [[interaction, { id: 'b', ...NAME }, { type: 'thought' }], 'gemini-interactions', ['c1', 'b']],
    [[{ nothing: true }, chat, { id: 'b', function: {} }, use, null], 'openai', [undefined, 'c1', 'b', 'a', undefined]],
    [{ message: { tool_calls: [chat, null, { id: 'c2', function: {} }] }, done: true }, 'ollama',
      ['c1', undefined, 'c2']],
    [{ role: 'assistant', toolCalls: [{ id: 'c0' }, chat, 'x'] }, 'mistral-sdk', ['c0', 'c1', undefined]],
    [{ message: { toolCalls: [chat, {}, []] } }, 'cohere-sdk', ['c1', undefined, undefined]],
    [{ required_action: { submit_tool_outputs: { tool_calls: [null, chat] } } }, 'openai-assistants', [undefined, 'c1']]
  ] as const) {
    const envelope = openCalls(body)
    t.equal(envelope.dialect.name, dialect)
    t.same(envelope.calls.map(({ id }) => id), ids, dialect)
    t.equal(envelope.calls.filter(({ problem }) => problem === undefined).length, whole, dialect)
  }
  const others = [
    { id: 'a', type: 'function', function: NAME }, item, use, part, snake, { ...interaction, id: 'a' },
    { jsonrpc: '2.0', id: 'a', method: 'tools/call', params: NAME }, { toolUse: { toolUseId: 'a', ...NAME } },
    { ...vercel, toolCallId: 'a' }, { ...langchain, id: 'a' }
  ]
  for (const first of others) {
    const { dialect, calls } = openCalls([first, ...others.filter((other) => other !== first)])
    t.match(calls, others.map(() => ({ id: 'a', ...NAME })), dialect.name)
    t.equal(calls.filter(({ problem }) => problem === undefined).length, 1, dialect.name)
  }
})

t.test('K34: near misses: Responses, Gemini, its Interactions and OpenAI legacy are told apart', async (t) => {
  for (const [body, dialect] of [
    [{ function_call: { ...NAME, args: {} } }, 'gemini-snake-case'],
    [{ function_call: { ...NAME, arguments: '{}' } }, 'openai-legacy'],
    [{ functionCall: { ...NAME, args: {} } }, 'gemini'],
    [{ type: 'function_call', id: 'b', call_id: 'a', ...NAME, arguments: {} }, 'openai-responses'],
    [{ type: 'function_call', id: 'b', callId: 'a', ...NAME, arguments: {} }, 'openai-responses'],
    [{ ...interaction, call_id: 'c1' }, 'openai-responses'],
    [{ output: [{ ...interaction, call_id: 'c1' }], steps: [interaction] }, 'openai-responses']
  ] as const) t.equal(openCalls(body).dialect.name, dialect)
  for (const body of [{ functionCall: { ...NAME }, role: 'model' }, { ...interaction, arguments: '{}' }]) {
    t.match(openEnvelope(body), { kind: 'unrecognised' })
  }
})

t.test('K38: what is no call is refused, with the accepted shapes', async (t) => {
  const message = { role: 'assistant', content: [TEXT] }
  for (const [detail, bodies] of [
    [/^No tool call was found\. Send one tool call/, [
      undefined, null, 5, {}, [[{ function: NAME }]], { error: { code: 404, message: 'x' } },
      { type: 'function_call', ...NAME, arguments: '{}' }, { ...serverUse, ...NAME }, { function: { name: 5 } },
      { function: 'get_skill' }, { name: 'get_skill', description: 'A definition', parameters: {} },
      JSON.parse('{"__proto__":{"function":{"name":"list_skills"}}}'), Object.create({ function: NAME })
    ]],
    [/^No tool call is in it\. Send one tool call/, [
      [], { tool_calls: [] }, message, { output: [{ type: 'message' }] }, { parts: [{ text: 'x' }] },
      { choices: [{ message }] }, { type: 'message', ...message }, { candidates: [{ content: { parts: [TEXT] } }] },
      { message, done: true }, { choices: [{ message: { ...message, toolCalls: [] } }] }, { text: 'x', toolCalls: [] },
      { message: { ...message, toolCalls: [] } }, { steps: [{ type: 'model_output' }] }, { output: { message } },
      { lc: 1, kwargs: { content: 'Done.', tool_calls: [] } }, { response: { output: [] } },
      { required_action: { submit_tool_outputs: { tool_calls: [] } } }
    ]],
    [/^A call by its bare name needs "arguments" next to it, \{\} for none\. Send one tool call/, [
      NAME, [{ id: 'a', ...NAME, skill_name: 'x' }]
    ]],
    [/^The body is a JSON string/, ['{"function":{"name":"list_skills"}}']],
    [/^This is the result of a tool call/, [
      { role: 'tool', tool_call_id: 'a', content: 'x', ...NAME, arguments: '{}' }, [{ role: 'tool', content: 'x' }],
      { type: 'tool_result', tool_use_id: 'a' }, { type: 'function_call_output', call_id: 'a' }, {
        functionResponse: NAME
      },
      { jsonrpc: '2.0', id: 1, result: { content: [] } }, { jsonrpc: '2.0', id: 1, error: { code: 1, message: 'x' } }
    ]],
    [/^The only JSON-RPC 2\.0 method here is tools\/call/, [
      { jsonrpc: '2.0', id: 1, method: 'tools/list', function: NAME }, { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      { jsonrpc: '1.0', method: 'tools/call', ...NAME, arguments: {} }
    ]]
  ] as const) {
    for (const body of bodies) {
      t.match(openEnvelope(body), { kind: 'unrecognised', detail },
        JSON.stringify(body))
    }
  }
})

t.test('K34: of a conversation, messages get no answer, and calls that have theirs get no second one', async (t) => {
  const item = (id: string) => ({ type: 'function_call', call_id: id, ...NAME, arguments: '{}' })
  const output = (id: string) => ({ type: 'function_call_output', call_id: id, output: 'x' })
  const custom = (id: string) => ({ type: 'custom_tool_call', call_id: id, ...NAME, input: 'x' })
  const customOutput = (id: string) => ({ type: 'custom_tool_call_output', call_id: id, output: 'x' })
  const step = (id: string) => ({ type: 'function_call', id, ...NAME, arguments: {} })
  const result = (id: string) => ({ type: 'function_result', call_id: id, ...NAME, result: 'x' })
  const user = { role: 'user', content: 'Hello' }
  const call = (id: string) => ({ id, function: NAME })
  for (const [list, ids] of [
    [[user, item('a')], ['a']],
    [[user, item('a'), item('b'), output('a'), { role: 'assistant', content: 'x' }, item('c')], ['b', 'c']],
    [[user, custom('a'), item('b'), customOutput('a')], ['b']],
    [[user, step('a'), step('b'), result('a')], ['b']],
    [[user, { role: 'assistant', content: null, function_call: { ...NAME, arguments: '{}' } }], [undefined]],
    [[{ role: 'system', content: 'x' }, call('a')], ['a']],
    [[call('a'), { role: 'assistant', tool_calls: [call('b')] }], ['a', undefined]]
  ] as const) t.same(openCalls(list).calls.map(({ id }) => id), ids)
  const all = openEnvelope([user, item('a'), output('a')])
  t.match(all, { kind: 'unrecognised', detail: /^Every tool call in it has its result/ })
})

t.test('K35: an id is echoed as it came, and what is no id is none', async (t) => {
  for (const [id, written] of [
    ['', '"tool_call_id":"",'],
    ['x'.repeat(10_000), `"tool_call_id":"${'x'.repeat(10_000)}",`],
    ['a"\n', '"tool_call_id":"a\\"\\n",'],
    [5, '"tool_call_id":5,'],
    [null, ''],
    [{}, ''],
    [Infinity, '']
  ] as const) {
    const { dialect, first } = openCalls({ id, function: NAME })
    const result = `{"role":"tool",${written}"name":"get_skill","content":"no"}`
    t.equal(JSON.stringify(dialect.writeResult(first, FAILED)), result)
  }
  const { dialect, first } = openCalls({ jsonrpc: '2.0', method: 'tools/call', params: NAME })
  t.match(JSON.stringify(dialect.writeResult(first, DONE)), '{"jsonrpc":"2.0","id":null,')
})

t.test('K34: a batch of more elements than any conversation has is refused', async (t) => {
  const call = { name: 'get_skill', arguments: {} }
  const detail = '10001 elements in one request: the limit is 10000'
  for (const item of [{}, call]) t.match(openEnvelope(new Array(10_001).fill(item)), { kind: 'too_many_calls', detail })
  t.equal(openEnvelope(new Array(10_000).fill(call)).kind, 'calls')
})

t.test('K34: a call of a custom tool is answered next to function calls, in its own form', async (t) => {
  const chatCustom = { id: 'a', type: 'custom', custom: { ...NAME, input: 'free text' } }
  t.match(openEnvelope(chatCustom), { kind: 'calls', calls: [{ id: 'a', ...NAME, problem: /free text/ }] })
  const custom = { type: 'custom_tool_call', id: 'ctc_1', call_id: 'c1', name, input: 'weather' }
  const call = { type: 'function_call', call_id: 'c2', ...FUNCTION }
  for (const body of [{ output: [custom, call] }, [custom, call]]) {
    const { dialect, calls } = openCalls(body)
    t.match(calls, [{ id: 'c1', problem: /free text/ }, { id: 'c2', problem: undefined }])
    t.same(calls.map((each) => dialect.writeResult(each, FAILED)), [
      { type: 'custom_tool_call_output', call_id: 'c1', output: 'no' },
      { type: 'function_call_output', call_id: 'c2', output: 'no' }
    ])
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
      { id: 'c1', args: ARGS, problem: undefined }, { id: 'c2', name, args: broken.args, problem: undefined },
      { id: 'c3', name, args: broken.args, problem: undefined }
    ])
  }
  const only = { lc: 1, kwargs: { tool_calls: [], invalid_tool_calls: [broken] } }
  t.match(openCalls(only), { dialect: { name: 'langchain' }, calls: [{ id: 'c2' }] })
})
