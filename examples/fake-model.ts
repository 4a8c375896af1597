/**
 * Stands in for a model, so that the agent loops run without a provider and a key:
 *
 *   npx tsx examples/fake-model.ts [PORT]        PORT defaults to 8081, 0 takes any free port
 *
 * It answers POST /v1/chat/completions from the conversation alone: lists the skills, reads the one that the question
 * names, reads the files that this one names, and says what it has read. Like a real one it refuses a conversation in
 * which a tool call has no result.
 */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

interface ToolCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string, readonly arguments: string }
}

interface Message {
  readonly role: string
  readonly content: string | null
  readonly tool_calls?: readonly ToolCall[]
  readonly tool_call_id?: string
}

interface CompletionRequest {
  readonly messages: readonly Message[]
  readonly tools: ReadonlyArray<{ readonly function: { readonly name: string } }>
}

class BadRequest extends Error {}

/** A file's name as a skill writes it: `docs/api.md`, but not `0.1`. */
const NAMED_FILE = /`([\w./-]+\.[a-z]\w*)`/g

const server = createServer((request, response) => {
  void respond(request).then(({ status, body }) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
})
server.listen(Number(process.argv[2] ?? 8081), '127.0.0.1', () => {
  console.log(`the scripted model listens at http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`)
})

async function respond (request: IncomingMessage): Promise<{ status: number, body: object }> {
  try {
    const message = nextMessage(JSON.parse(await text(request)) as CompletionRequest)
    return { status: 200, body: { object: 'chat.completion', choices: [{ index: 0, message, finish_reason: message.tool_calls ? 'tool_calls' : 'stop' }] } }
  } catch (error) {
    return { status: error instanceof BadRequest ? 400 : 500, body: { error: { message: String(error) } } }
  }
}

function nextMessage ({ messages, tools }: CompletionRequest): Message {
  checkTools(tools)
  checkResults(messages)
  const calls = messages.flatMap((message) => message.tool_calls ?? [])
  const resultsOf = (tool: string) => calls.filter((call) => call.function.name === tool).map((call) => ({
    args: JSON.parse(call.function.arguments) as Readonly<Record<string, string>>,
    content: messages.find((message) => message.tool_call_id === call.id)?.content ?? ''
  }))

  const [list] = resultsOf('list_skills')
  if (list === undefined) return callTools(calls.length, [['list_skills', {}]])

  const [document] = resultsOf('get_skill')
  if (document === undefined) {
    const question = messages.find(({ role }) => role === 'user')?.content ?? ''
    const { skills } = JSON.parse(list.content) as { readonly skills: readonly string[] }
    const skill = skills.find((name) => question.includes(name))
    if (skill === undefined) return { role: 'assistant', content: `There is no skill for this, only ${skills.join(', ')}.` }
    return callTools(calls.length, [['get_skill', { skill_name: skill }]])
  }

  const skill = document.args['skill_name'] ?? ''
  const named = [...new Set(Array.from(document.content.matchAll(NAMED_FILE), ([, path = '']) => path))]
  const files = resultsOf('read_file_in_skill')
  if (files.length === 0 && named.length > 0) {
    return callTools(calls.length, named.map((path) => ['read_file_in_skill', { skill_name: skill, file_path: path }]))
  }
  const read = files.map(({ args, content }) => `${args['file_path']} (${content.length} characters)`)
  return { role: 'assistant', content: `I have read the skill ${skill}${read.map((file) => `, ${file}`).join('')}.` }
}

function callTools (first: number, calls: ReadonlyArray<readonly [tool: string, args: object]>): Message {
  return {
    role: 'assistant',
    content: null,
    tool_calls: calls.map(([name, args], index) =>
      ({ id: `call_${first + index}`, type: 'function', function: { name, arguments: JSON.stringify(args) } }))
  }
}

function checkTools (tools: CompletionRequest['tools']): void {
  for (const name of ['list_skills', 'get_skill', 'read_file_in_skill']) {
    if (!tools.some((tool) => tool.function.name === name)) throw new BadRequest(`no tool ${name} was given`)
  }
}

/** Each message with tool calls is followed by one result for each of them. */
function checkResults (messages: readonly Message[]): void {
  for (const [index, message] of messages.entries()) {
    const calls = message.tool_calls ?? []
    const results = messages.slice(index + 1, index + 1 + calls.length)
    for (const { id } of calls) {
      if (!results.some((result) => result.role === 'tool' && result.tool_call_id === id)) throw new BadRequest(`the tool call ${id} has no result`)
    }
  }
}
