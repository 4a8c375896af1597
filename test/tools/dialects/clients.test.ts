import t from 'tap'
import { openEnvelope } from '../../../src/tools/dialects/envelope.ts'
import { ToolOutcome } from '../../../src/tools/tool.ts'
import { openCalls } from './open-calls.ts'

const DONE = new ToolOutcome({}, 'done')
const FAILED = new ToolOutcome({}, 'no', true)
const NAME = 'get_skill'
const ARGS = { skill_name: 'weather' }
const FUNCTION = { name: NAME, arguments: JSON.stringify(ARGS) }
const TEXT = { type: 'text', text: 'Let me see.' }

interface Row {
  readonly title: string
  readonly dialect: string
  /** Bodies of the same call, `c1` where it has an id. */
  readonly bodies: readonly unknown[]
  readonly args?: unknown
  readonly done: object
  readonly failed: object
}

const bedrock = { toolUse: { toolUseId: 'c1', name: NAME, input: ARGS } }
const vercel = { type: 'tool-call', toolCallId: 'c1', toolName: NAME, input: ARGS }
const langchain = { name: NAME, args: ARGS, id: 'c1', type: 'tool_call' }
const interaction = { type: 'function_call', id: 'c1', name: NAME, arguments: ARGS }
const chat = { id: 'c1', type: 'function', function: FUNCTION }

const ROWS: readonly Row[] = [
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
    done: { toolResult: { toolUseId: 'c1', content: [{ text: 'done' }], status: 'success' } },
    failed: { toolResult: { toolUseId: 'c1', content: [{ text: 'no' }], status: 'error' } }
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
    done: { role: 'tool', toolCallId: 'c1', name: NAME, content: 'done' },
    failed: { role: 'tool', toolCallId: 'c1', name: NAME, content: 'no' }
  },
  {
    title: "Cohere's SDK",
    dialect: 'cohere-sdk',
    bodies: [{ id: 'r1', finishReason: 'TOOL_CALL', message: { role: 'assistant', toolPlan: 'x', toolCalls: [chat] } }],
    args: FUNCTION.arguments,
    done: { role: 'tool', toolCallId: 'c1', content: 'done' },
    failed: { role: 'tool', toolCallId: 'c1', content: 'no' }
  },
  {
    title: "Vercel's AI SDK",
    dialect: 'vercel-ai-sdk',
    bodies: [
      vercel, [vercel], {
        role: 'assistant', content: [TEXT, vercel, { ...vercel, toolCallId: 'c2', providerExecuted: true }]
      }, { text: '', toolCalls: [vercel] },
      { type: 'tool-call', toolCallId: 'c1', toolName: NAME, args: ARGS }
    ],
    done: { type: 'tool-result', toolCallId: 'c1', toolName: NAME, output: { type: 'text', value: 'done' } },
    failed: { type: 'tool-result', toolCallId: 'c1', toolName: NAME, output: { type: 'error-text', value: 'no' } }
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
    done: { type: 'tool', role: 'tool', tool_call_id: 'c1', name: NAME, content: 'done', status: 'success' },
    failed: { type: 'tool', role: 'tool', tool_call_id: 'c1', name: NAME, content: 'no', status: 'error' }
  },
  {
    title: 'Gemini Interactions',
    dialect: 'gemini-interactions',
    bodies: [interaction, [
      interaction
    ], { steps: [{ type: 'thought', summary: [] }, interaction] }, { outputs: [{ ...TEXT }, interaction] }],
    done: { type: 'function_result', call_id: 'c1', name: NAME, result: 'done' },
    failed: { type: 'function_result', call_id: 'c1', name: NAME, result: 'no', is_error: true }
  },
  {
    title: 'Ollama',
    dialect: 'ollama',
    bodies: [{
      model: 'm',
      created_at: 'x',
      message: {
        role: 'assistant', content: '', tool_calls: [{ id: 'c1', function: { index: 0, name: NAME, arguments: ARGS } }]
      },
      done: true
    }],
    done: { role: 'tool', tool_call_id: 'c1', tool_name: NAME, content: 'done' },
    failed: { role: 'tool', tool_call_id: 'c1', tool_name: NAME, content: 'no' }
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
    done: { tool_call_id: 'c1', output: 'done' },
    failed: { tool_call_id: 'c1', output: 'no' }
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
    done: { type: 'function_call_output', call_id: 'c1', output: 'done' },
    failed: { type: 'function_call_output', call_id: 'c1', output: 'no' }
  }
]

for (const { title, dialect, bodies, args = ARGS, done, failed } of ROWS) {
  t.test(`K34: ${title}: one call, answered in its own form`, async (t) => {
    for (const body of bodies) {
      const envelope = openCalls(body)
      t.equal(envelope.dialect.name, dialect, JSON.stringify(body))
      t.match(envelope.calls, [{ id: 'c1', name: NAME, args, problem: undefined }])
      t.equal(envelope.calls.length, 1)
      t.same(JSON.parse(JSON.stringify(envelope.dialect.writeResult(envelope.first, DONE))), done)
      t.same(JSON.parse(JSON.stringify(envelope.dialect.writeResult(envelope.first, FAILED))), failed)
    }
  })

  t.test(`${title}: its result, sent back by mistake, is told from a call`, async (t) => {
    if (dialect !== 'openai-assistants') {
      t.match(openEnvelope(done), { kind: 'unrecognised', detail: /^This is the result/ })
    }
  })
}

t.test('K34: a call of a custom tool is answered beside function calls, in its own form', async (t) => {
  const custom = { type: 'custom_tool_call', id: 'ctc_1', call_id: 'c1', name: NAME, input: 'weather' }
  const call = { type: 'function_call', call_id: 'c2', ...FUNCTION }
  for (const body of [{ output: [custom, call] }, [custom, call]]) {
    const { dialect, calls: [first, second] } = openCalls(body)
    t.match([first, second], [{ id: 'c1', problem: /free text/ }, { id: 'c2', problem: undefined }])
    if (first === undefined || second === undefined) continue
    t.equal(JSON.stringify(dialect.writeResult(first, FAILED)), '{"type":"custom_tool_call_output","call_id":"c1","output":"no"}')
    t.equal(JSON.stringify(dialect.writeResult(second, DONE)), '{"type":"function_call_output","call_id":"c2","output":"done"}')
  }
})

t.test('K37: LangChain: a call whose arguments are not JSON is answered in its own form', async (t) => {
  // Without `type`, as a message has it that was made of OpenAI's.
  const broken = { name: NAME, args: '{"skill_name', id: 'c2', error: 'Malformed args.' }
  const kwargs = {
    content: '',
    tool_calls: [langchain],
    invalid_tool_calls: [broken, { ...broken, id: 'c3', type: 'invalid_tool_call' }]
  }
  for (const body of [{ lc: 1, type: 'constructor', kwargs }, { type: 'ai', ...kwargs }]) {
    const { dialect, calls } = openCalls(body)
    t.equal(dialect.name, 'langchain')
    t.match(calls, [
      { id: 'c1', args: ARGS }, { id: 'c2', name: NAME, args: broken.args }, { id: 'c3', name: NAME, args: broken.args }
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
