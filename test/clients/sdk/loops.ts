import {
  BedrockRuntimeClient, type ContentBlock, ConverseCommand, type Message as BedrockMessage, type Tool as BedrockTool
} from '@aws-sdk/client-bedrock-runtime'
import { GoogleGenAI, type Interactions } from '@google/genai'
import { AIMessage, ToolMessage, type ToolMessageFields } from '@langchain/core/messages'
import { Mistral } from '@mistralai/mistralai'
import type { ChatCompletionRequestMessage, Tool as MistralTool } from '@mistralai/mistralai/models/components'
import { generateText, jsonSchema, type ModelMessage, tool, type ToolResultPart, type ToolSet } from 'ai'
import { MockLanguageModelV3 } from 'ai/test'
import { type Cohere, CohereClientV2 } from 'cohere-ai'
import { type Message as OllamaMessage, Ollama, type Tool as OllamaTool } from 'ollama'
import OpenAI from 'openai'
import type { ResponseInputItem, Tool as OpenAITool } from 'openai/resources/responses/responses'
import { once } from 'node:events'
import { createServer as createHttp } from 'node:http'
import { createServer as createHttp2 } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { buildService, type Service } from '../../helper/build.ts'
import { skill, skillText } from '../../helper/skills.ts'

/**
 * A scripted model calls `get_skill` twice, for a skill that is there and for one that is not; then it says `Done.`.
 */
const FOUND = { skill_name: 'demo' }
const MISSING = { skill_name: 'nope' }
const DOCUMENT = JSON.stringify({ skill_name: 'demo', documentation: skillText('demo') }).replaceAll('":"',
  '": "').replace('","', '", "')
const NOT_FOUND = '{"error": "Skill \'nope\' not found in skills folder"}'
const QUESTION = { role: 'user', content: 'Hello' } as const

const name = 'get_skill'
const functionCalls = [['c1', FOUND], ['c2', MISSING]].map(([id, args]) =>
  ({ id, type: 'function', function: { name, arguments: JSON.stringify(args) } }))

t.test('one service', async (t) => {
  const service = await buildService(t, { files: { demo: skill('demo') } })

  t.test("K34: Mistral's SDK", async (t) => {
    const provider = await startProvider(t,
      [mistralCompletion({ content: '', tool_calls: functionCalls }), mistralCompletion({ content: 'Done.' })])
    const client = new Mistral({ apiKey: 'x', serverURL: provider.url })
    const tools = await definitions<MistralTool & { type: 'function' }>(service, 'openai')
    const messages: ChatCompletionRequestMessage[] = [QUESTION]
    const first = await client.chat.complete({ model: 'm', messages, tools })
    const results = await post<ChatCompletionRequestMessage[]>(service, first)
    const second = await client.chat.complete({
      model: 'm', messages: [...messages, { ...first.choices[0]?.message, role: 'assistant' }, ...results], tools
    })
    t.equal(second.choices[0]?.message?.content, 'Done.')
    t.match(provider.requests, [{ tools: { length: 3 } }, {
      messages: [{}, {}, { role: 'tool', tool_call_id: 'c1', name, content: DOCUMENT },
        { role: 'tool', tool_call_id: 'c2', name, content: NOT_FOUND }]
    }])
  })

  t.test("K34: Cohere's SDK", async (t) => {
    const message = { role: 'assistant', tool_calls: functionCalls }
    const provider = await startProvider(t, [
      { id: 'r1', finish_reason: 'TOOL_CALL', message }, {
        id: 'r2', finish_reason: 'COMPLETE', message: { role: 'assistant', content: [{ type: 'text', text: 'Done.' }] }
      }
    ])
    const client = new CohereClientV2({ token: 'x', environment: provider.url })
    const tools = await definitions<Cohere.ToolV2>(service, 'openai')
    const first = await client.chat({ model: 'm', messages: [QUESTION], tools })
    const results = await post<Cohere.ChatMessageV2.Tool[]>(service, first)
    const second = await client.chat({ model: 'm', messages: [QUESTION, first.message, ...results], tools })
    t.match(second.message.content, [{ text: 'Done.' }])
    t.match(provider.requests, [{ tools: { length: 3 } }, { messages: { length: 4 } }])
    t.same((provider.requests[1] as { messages: unknown[] }).messages.slice(2), [
      { role: 'tool', tool_call_id: 'c1', content: DOCUMENT }, { role: 'tool', tool_call_id: 'c2', content: NOT_FOUND }
    ])
  })

  t.test("K34: Ollama's SDK", async (t) => {
    const provider = await startProvider(t, [
      ollamaResponse({
        content: '', tool_calls: [FOUND, MISSING].map((args) => ({ function: { name, arguments: args } }))
      }), ollamaResponse({
        content: 'Done.'
      })
    ])
    const client = new Ollama({ host: provider.url })
    const tools = await definitions<OllamaTool>(service, 'openai')
    const first = await client.chat({ model: 'm', messages: [QUESTION], tools, stream: false })
    const results = await post<OllamaMessage[]>(service, first)
    const second = await client.chat({
      model: 'm', messages: [QUESTION, first.message, ...results], tools, stream: false
    })
    t.equal(second.message.content, 'Done.')
    t.match(provider.requests, [{ tools: { length: 3 } }, {
      messages: [{}, {}, { role: 'tool', tool_name: name, content: DOCUMENT },
        { role: 'tool', tool_name: name, content: NOT_FOUND }]
    }])
  })

  t.test('K34: Bedrock Converse', async (t) => {
    const blocks = [['c1', FOUND], ['c2', MISSING]].map(([toolUseId, input]) =>
      ({ toolUse: { toolUseId, name, input } }))
    const provider = await startProvider(t,
      [bedrockResponse('tool_use', [{ text: 'Let me see.' }, ...blocks]), bedrockResponse('end_turn', [{
        text: 'Done.'
      }])], {
        http2: true
      })
    const client = new BedrockRuntimeClient(
      { region: 'x', endpoint: provider.url, credentials: { accessKeyId: 'x', secretAccessKey: 'x' } })
    t.teardown(() => { client.destroy() })
    const toolConfig = { tools: await definitions<BedrockTool>(service, 'bedrock') }
    const messages: BedrockMessage[] = [{ role: 'user', content: [{ text: 'Hello' }] }]
    const first = await client.send(new ConverseCommand({ modelId: 'm', messages, toolConfig }))
    for (const body of [first, first.output?.message, first.output?.message?.content]) {
      const content = await post<ContentBlock[]>(service, body)
      t.same(content, [
        { toolResult: { toolUseId: 'c1', content: [{ text: DOCUMENT }], status: 'success' } },
        { toolResult: { toolUseId: 'c2', content: [{ text: NOT_FOUND }], status: 'error' } }
      ])
    }
    messages.push({ role: 'assistant', content: first.output?.message?.content },
      { role: 'user', content: await post<ContentBlock[]>(service, first) })
    const second = await client.send(new ConverseCommand({ modelId: 'm', messages, toolConfig }))
    t.match(second.output?.message?.content, [{ text: 'Done.' }])
    t.match(provider.requests,
      [{ toolConfig: { tools: { length: 3 } } },
        {
          messages: [{}, {},
            { content: [{ toolResult: { toolUseId: 'c1' } }, { toolResult: { toolUseId: 'c2', status: 'error' } }] }]
        }])
  })

  t.test('K34: Gemini Interactions', async (t) => {
    const steps = [['c1', FOUND], ['c2', MISSING]].map(([id, args]) =>
      ({ type: 'function_call', id, name, arguments: args }))
    const provider = await startProvider(t,
      [interaction('requires_action', steps),
        interaction('completed', [{ type: 'model_output', content: [{ type: 'text', text: 'Done.' }] }])])
    const client = new GoogleGenAI({ apiKey: 'x', httpOptions: { baseUrl: provider.url } })
    const first = await client.interactions.create({ model: 'm', input: 'Hello' })
    const results = await post<Interactions.FunctionResultStep[]>(service, first)
    await client.interactions.create({ model: 'm', input: results, previous_interaction_id: first.id })
    t.match(provider.requests[1], {
      input: [{ type: 'function_result', call_id: 'c1', name, result: DOCUMENT },
        { type: 'function_result', call_id: 'c2', result: NOT_FOUND, is_error: true }]
    })
  })

  t.test("K34: Vercel's AI SDK", async (t) => {
    const calls = [['c1', FOUND], ['c2', MISSING]].map(([id, args]) =>
      ({ type: 'tool-call' as const, toolCallId: String(id), toolName: name, input: JSON.stringify(args) }))
    const prompts: unknown[] = []
    const model = new MockLanguageModelV3({
      async doGenerate ({ prompt }) {
        prompts.push(prompt)
        const usage = {
          inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
          outputTokens: { total: 1, text: 1, reasoning: 0 }
        }
        return prompts.length === 1
          ? { content: calls, finishReason: { unified: 'tool-calls', raw: 'x' }, usage, warnings: [] }
          : {
              content: [{ type: 'text', text: 'Done.' }],
              finishReason: { unified: 'stop', raw: 'x' },
              usage,
              warnings: []
            }
      }
    })
    const given = await definitions<OpenAI.ChatCompletionFunctionTool>(service, 'openai')
    const tools = Object.fromEntries(given.map(({ function: { name, description = '', parameters = {} } }) =>
      [name,
        tool({ description, inputSchema: jsonSchema(parameters as Parameters<typeof jsonSchema>[0]) })])) as ToolSet
    const messages: ModelMessage[] = [QUESTION]
    const first = await generateText({ model, messages, tools })
    t.same(await post(service, first.response.messages[0]), await post(service, first.toolCalls),
      'the message, or its calls')
    messages.push(...first.response.messages,
      { role: 'tool', content: await post<ToolResultPart[]>(service, first.toolCalls) })
    t.equal((await generateText({ model, messages, tools })).text, 'Done.')
    t.match(prompts[1], [{}, {}, {
      role: 'tool',
      content: [
        { toolCallId: 'c1', toolName: name, output: { type: 'text', value: DOCUMENT } }, {
          toolCallId: 'c2', toolName: name, output: { type: 'error-text', value: NOT_FOUND }
        }
      ]
    }])
  })

  t.test('K34: LangChain', async (t) => {
    const message = new AIMessage({
      content: '',
      tool_calls: [{ id: 'c1', name, args: FOUND, type: 'tool_call' },
        { id: 'c2', name, args: MISSING, type: 'tool_call' }]
    })
    for (const body of [message, message.tool_calls, { tool_calls: message.tool_calls }]) {
      const results = (await post<ToolMessageFields[]>(service, body)).map((fields) => new ToolMessage(fields))
      t.match(results, [
        { type: 'tool', tool_call_id: 'c1', name, content: DOCUMENT, status: 'success' }, {
          type: 'tool', tool_call_id: 'c2', name, content: NOT_FOUND, status: 'error'
        }
      ])
      t.ok(results.every((result) => ToolMessage.isInstance(result)))
    }
  })

  t.test('K37: LangChain: arguments that are no JSON come back as a message that says so, under the ' +
    'id of the call', async (t) => {
    const call = { id: 'c1', type: 'function' as const, function: { name, arguments: '{"skill_name' } }
    const message = new AIMessage({ content: '', additional_kwargs: { tool_calls: [call] } })
    t.same(message.tool_calls, [], 'the SDK has put the call aside')
    const results = (await post<ToolMessageFields[]>(service, message)).map((fields) => new ToolMessage(fields))
    t.match(results, [{ tool_call_id: 'c1', name, content: /Invalid tool arguments: .*JSON/, status: 'error' }])
  })

  t.test('K34: OpenAI Responses with a custom tool beside the functions', async (t) => {
    const output = [
      { type: 'custom_tool_call', id: 'ctc_1', call_id: 'c1', name, input: 'demo' },
      { type: 'function_call', id: 'fc_2', call_id: 'c2', name, arguments: JSON.stringify(FOUND), status: 'completed' },
      { type: 'custom_tool_call', id: 'ctc_3', call_id: 'c3', name: 'shell', input: 'ls' }
    ]
    const provider = await startProvider(t,
      [{ id: 'r1', object: 'response', status: 'completed', output },
        { id: 'r2', object: 'response', status: 'completed', output: [] }])
    const client = new OpenAI({ apiKey: 'x', baseURL: provider.url })
    const tools = await definitions<OpenAITool>(service, 'openai-responses')
    const first = await client.responses.create({ model: 'm', input: 'Hello', tools })
    const results = await post<ResponseInputItem[]>(service, first, '?others=skip')
    await client.responses.create({ model: 'm', input: results, tools, previous_response_id: 'r1' })
    t.match(provider.requests[1], {
      input: [{ type: 'custom_tool_call_output', call_id: 'c1', output: /free text/ },
        { type: 'function_call_output', call_id: 'c2', output: DOCUMENT }]
    })
    t.equal(results.length, 2, 'the shell is not ours')
  })
})

function mistralCompletion (message: object): object {
  return {
    id: 'x',
    object: 'chat.completion',
    model: 'm',
    created: 1,
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', ...message } }]
  }
}

function ollamaResponse (message: object): object {
  return {
    model: 'm',
    created_at: '2026-01-01T00:00:00Z',
    message: { role: 'assistant', ...message },
    done: true,
    done_reason: 'stop'
  }
}

function bedrockResponse (stopReason: string, content: readonly object[]): object {
  return {
    output: { message: { role: 'assistant', content } },
    stopReason,
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
    metrics: { latencyMs: 1 }
  }
}

function interaction (status: string, steps: readonly object[]): object {
  return {
    id: 'i1',
    object: 'interaction',
    model: 'm',
    created: '2026-01-01T00:00:00Z',
    updated: '2026-01-01T00:00:00Z',
    status,
    steps
  }
}

async function definitions<Tool> (service: Service, format: string): Promise<Tool[]> {
  return (await service.fetch(`/agent/tools?format=${format}`)).json() as Tool[]
}

async function post<Results> (service: Service, body: unknown, query = ''): Promise<Results> {
  const response = await service.post(`/agent/tool-call${query}`, body)
  if (response.status !== 200) throw new Error(response.text)
  return response.json() as Results
}

interface ScriptedProvider {
  readonly url: string
  /** The bodies of the requests so far. */
  readonly requests: readonly unknown[]
}

/** Stands in for the API of a provider: gives these answers, one for each request. */
async function startProvider (t: Test, answers: readonly object[], { http2 = false } = {}): Promise<ScriptedProvider> {
  const requests: unknown[] = []
  async function answer (request: AsyncIterable<Uint8Array>): Promise<string> {
    requests.push(await json(request))
    return JSON.stringify(answers[requests.length - 1] ?? {})
  }
  const head = { 'content-type': 'application/json' }
  const server = http2
    ? createHttp2(
      (request, response) => { void answer(request).then((body) => { response.writeHead(200, head).end(body) }) })
    : createHttp(
      (request, response) => { void answer(request).then((body) => { response.writeHead(200, head).end(body) }) })
  server.listen(0, '127.0.0.1')
  t.teardown(() => { server.close() })
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}
