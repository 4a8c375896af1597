import type { Message } from '@anthropic-ai/sdk/resources/messages/messages'
import { type Content, FinishReason, GenerateContentResponse } from '@google/genai'
import { isCallToolResult, isJSONRPCErrorResponse, isJSONRPCResultResponse, isSpecType, type JSONRPCRequest } from '@modelcontextprotocol/client'
import type { ChatCompletion, ChatCompletionMessage } from 'openai/resources/chat/completions/completions'
import type { Response } from 'openai/resources/responses/responses'
import t from 'tap'
import { buildService, type Service } from '../../helper/build.ts'
import { skill, skillText } from '../../helper/skills.ts'

/** What each of the two calls of a response comes to: one succeeds, one fails. */
const DOCUMENT = JSON.stringify({ skill_name: 'demo', documentation: skillText('demo') }).replaceAll('":"', '": "').replace('","', '", "')
const NOT_FOUND = '{"error": "Skill \'nope\' not found in skills folder"}'

const assistant: ChatCompletionMessage = {
  role: 'assistant',
  content: 'Let me see.',
  refusal: null,
  annotations: [],
  tool_calls: [
    { id: 'call_1', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"demo"}' } },
    { id: 'call_2', type: 'function', function: { name: 'get_skill', arguments: '{"skill_name":"nope"}' } }
  ]
}

const chat: ChatCompletion = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, finish_reason: 'tool_calls', logprobs: null, message: assistant }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
}

const responses: Response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  completed_at: 1,
  status: 'completed',
  model: 'm',
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: null,
  parallel_tool_calls: true,
  temperature: null,
  top_p: null,
  tool_choice: 'auto',
  tools: [{ type: 'function', name: 'get_skill', parameters: {}, strict: false }],
  output_text: '',
  output: [
    { type: 'reasoning', id: 'rs_1', summary: [] },
    { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Let me see.', annotations: [] }] },
    { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'get_skill', arguments: '{"skill_name":"demo"}', status: 'completed' },
    { type: 'function_call', id: 'fc_2', call_id: 'call_2', name: 'get_skill', arguments: '{"skill_name":"nope"}', status: 'completed' }
  ]
}

const message: Message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  container: null,
  diagnostics: null,
  stop_details: null,
  stop_reason: 'tool_use',
  stop_sequence: null,
  usage: {
    input_tokens: 1,
    output_tokens: 1,
    cache_creation: null,
    cache_creation_input_tokens: null,
    cache_read_input_tokens: null,
    inference_geo: null,
    output_tokens_details: null,
    server_tool_use: null,
    service_tier: null,
    speed: null
  },
  content: [
    { type: 'thinking', thinking: 'Hm.', signature: 'x' },
    { type: 'text', text: 'Let me see.', citations: null },
    { type: 'tool_use', id: 'call_1', caller: { type: 'direct' }, name: 'get_skill', input: { skill_name: 'demo' } },
    { type: 'server_tool_use', id: 'srv_1', caller: { type: 'direct' }, name: 'web_search', input: {} },
    { type: 'tool_use', id: 'call_2', caller: { type: 'direct' }, name: 'get_skill', input: { skill_name: 'nope' } }
  ]
}

const content: Content = {
  role: 'model',
  parts: [
    { text: 'Let me see.', thought: true },
    { functionCall: { id: 'call_1', name: 'get_skill', args: { skill_name: 'demo' } }, thoughtSignature: 'eA==' },
    { functionCall: { id: 'call_2', name: 'get_skill', args: { skill_name: 'nope' } } }
  ]
}

/** As the SDK has it: an object with getters, of which JSON keeps the properties. */
const gemini = Object.assign(new GenerateContentResponse(), {
  modelVersion: 'm',
  sdkHttpResponse: { headers: { 'content-type': 'application/json' } },
  candidates: [{ index: 0, finishReason: FinishReason.STOP, content }]
})

/** As the Python SDK of Gemini dumps it: every absent member is null. */
const empty = { text: null, thought: null, thought_signature: null, inline_data: null, function_response: null }
const snakeCase = [
  { ...empty, text: 'Let me see.', function_call: null },
  { ...empty, function_call: { id: null, name: 'get_skill', args: { skill_name: 'demo' } } },
  { ...empty, function_call: { id: 'call_2', name: 'get_skill', args: { skill_name: 'nope' } } }
]
const dump = { candidates: [{ content: { parts: snakeCase, role: 'model' }, finish_reason: 'STOP' }], parsed: null }

/** Whole responses as the SDKs have them, what carries calls in them, and the results of the two calls. */
const ROWS: ReadonlyArray<readonly [sdk: string, bodies: readonly unknown[], results: readonly object[]]> = [
  ['OpenAI chat', [chat, assistant, { tool_calls: assistant.tool_calls }, assistant.tool_calls], [
    { role: 'tool', tool_call_id: 'call_1', name: 'get_skill', content: DOCUMENT },
    { role: 'tool', tool_call_id: 'call_2', name: 'get_skill', content: NOT_FOUND }
  ]],
  ['OpenAI Responses', [responses, responses.output], [
    { type: 'function_call_output', call_id: 'call_1', output: DOCUMENT },
    { type: 'function_call_output', call_id: 'call_2', output: NOT_FOUND }
  ]],
  ['Anthropic', [message, { role: message.role, content: message.content }, message.content], [
    { type: 'tool_result', tool_use_id: 'call_1', content: DOCUMENT, is_error: false },
    { type: 'tool_result', tool_use_id: 'call_2', content: NOT_FOUND, is_error: true }
  ]],
  ['Gemini', [gemini, content, { content }, content.parts], [
    { functionResponse: { id: 'call_1', name: 'get_skill', response: { output: DOCUMENT } } },
    { functionResponse: { id: 'call_2', name: 'get_skill', response: { error: NOT_FOUND } } }
  ]],
  ['Gemini in snake case', [dump, { parts: snakeCase, role: 'model' }, snakeCase], [
    { function_response: { name: 'get_skill', response: { output: DOCUMENT } } },
    { function_response: { id: 'call_2', name: 'get_skill', response: { error: NOT_FOUND } } }
  ]]
]

t.test('one service', async (t) => {
  const service = await buildService(t, { files: { demo: skill('demo') } })

  for (const [sdk, bodies, results] of ROWS) {
    t.test(`K34: ${sdk}: a whole response and each part of it with the calls get the results for the next request`, async (t) => {
      for (const body of bodies) t.same(await post(service, body), results)
    })
  }

  t.test('K34: MCP: requests get JSON-RPC responses that the SDK of the protocol takes', async (t) => {
    const request = (id: number | string, name: string, args?: object): JSONRPCRequest =>
      ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, ...args && { arguments: args } } })
    const answers = await post<unknown[]>(service, [
      request(1, 'get_skill', { skill_name: 'demo' }), request('b', 'get_skill', { skill_name: 'nope' }), request(3, 'list_skills'), request(4, 'nope')
    ])
    const [done, failed, bare, unknown] = answers
    for (const answer of [done, failed, bare]) t.ok(isJSONRPCResultResponse(answer) && isCallToolResult(answer.result))
    t.ok(isJSONRPCErrorResponse(unknown))
    t.match(answers, [
      { id: 1, result: { content: [{ type: 'text', text: DOCUMENT }], isError: false } },
      { id: 'b', result: { content: [{ type: 'text', text: NOT_FOUND }], isError: true } },
      { id: 3, result: { isError: false } },
      { id: 4, error: { code: -32602 } }
    ])
    const definitions = (await service.fetch('/agent/tools?format=mcp&toolset=all')).json() as unknown[]
    t.equal(definitions.filter(isSpecType.Tool).length, 7)
  })

  t.test('K38: a response in which the model made no call is 400, and says so', async (t) => {
    for (const body of [
      { ...chat, choices: [{ ...chat.choices[0], message: { role: 'assistant', content: 'Done.' } }] },
      { ...responses, output: responses.output.slice(0, 2) },
      { ...message, content: message.content.slice(0, 2) },
      { candidates: [{ content: { role: 'model', parts: [{ text: 'Done.' }] } }] }
    ]) {
      const answer = await service.post('/agent/tool-call', body)
      t.equal(answer.status, 400)
      t.match(answer.json(), { code: 'unrecognised_tool_call', error: /^No tool call is in it\. / })
    }
  })

  t.test('K37: malformed arguments seen in the wild get an error with the schema, under the id of the call', async (t) => {
    const wild = [
      '{}""', '"{\\"skill_name\\":\\"demo\\"}"', '```json\n{"skill_name":"demo"}\n```', '{"skill_name":"demo"} I will now read it', '{skill_name:"demo"}',
      "{'skill_name':'demo'}", '{"skill_name":"demo",}', '{"skill_name":"de', '[]', '5', 'true', '{"name":"demo"}', '{"skill_name":5}', '{"skill_name":["demo"]}',
      '{"skill_name":"demo"}{"skill_name":"nope"}', '<skill_name>demo</skill_name>', 'skill_name=demo', 'None', '{"skill_name":None}', '\ufeff{}', '{}', '', 'null'
    ]
    const calls = wild.map((args, index) => ({ id: `call_${index}`, type: 'function', function: { name: 'get_skill', arguments: args } }))
    for (const [index, { tool_call_id: id, content }] of (await post<ToolMessage[]>(service, calls)).entries()) {
      t.equal(id, `call_${index}`)
      t.match(JSON.parse(content), { error: /^Invalid tool arguments: [^]*\n\nParameters: \{"type":"object","properties":\{"skill_name":/ }, wild[index] ?? '')
    }
  })
})

interface ToolMessage {
  readonly tool_call_id: string
  readonly content: string
}

async function post<Results> (service: Service, body: unknown): Promise<Results> {
  const answer = await service.post('/agent/tool-call', body)
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.json() as Results
}
