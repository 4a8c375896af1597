/**
 * Stands in for a model, so that the agent loops run without a provider and a key:
 *
 *   npx tsx examples/fake-model.mts [PORT]        PORT defaults to 8081, 0 takes any free port
 *
 * It speaks OpenAI Chat Completions and Responses, Anthropic Messages and Gemini, and answers from the conversation
 * alone: see examples/fake-models/script.mts. Like a real one it refuses a conversation in which a tool call has no
 * result.
 */
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { anthropic } from './fake-models/anthropic.mts'
import { gemini } from './fake-models/gemini.mts'
import { openaiChat } from './fake-models/openai-chat.mts'
import { openaiResponses } from './fake-models/openai-responses.mts'
import { BadRequest } from './fake-models/script.mts'

const MODELS = [openaiChat, openaiResponses, anthropic, gemini]

const server = createServer((request, response) => {
  void respond(request).then(({ status, body }) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
})
server.listen(Number(process.argv[2] ?? 8081), '127.0.0.1', () => {
  console.log(`the scripted model listens at http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})

async function respond (request: IncomingMessage): Promise<{ status: number, body: object }> {
  const model = MODELS.find(({ path }) => path.test(request.url?.split('?')[0] ?? ''))
  if (model === undefined) return { status: 404, body: { error: { message: `no model answers at ${request.url}` } } }
  try {
    return { status: 200, body: model.answer(await json(request)) }
  } catch (error) {
    const { message } = error as Error
    return { status: error instanceof BadRequest ? 400 : 500, body: model.error(message) }
  }
}
