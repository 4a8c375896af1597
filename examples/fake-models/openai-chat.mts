import type { ChatCompletion, ChatCompletionMessage } from 'openai/resources/chat/completions'
import { BadRequest, type Exchange, type FakeModel, nextTurn } from './script.mts'

interface Request {
  readonly messages: readonly Message[]
  readonly tools: ReadonlyArray<{ readonly function: { readonly name: string } }>
}

interface Message {
  readonly role: string
  readonly content: string | null
  readonly tool_calls?: ReadonlyArray<{
    readonly id: string
    readonly function: { readonly name: string, readonly arguments: string }
  }>
  readonly tool_call_id?: string
}

/** OpenAI Chat Completions. */
export const openaiChat: FakeModel = {
  path: /^\/v1\/chat\/completions$/,

  answer (request) {
    const { messages, tools } = request as Request
    const turn = nextTurn({
      question: messages.find(({ role }) => role === 'user')?.content ?? '',
      tools: tools.map((tool) => tool.function.name),
      exchanges: readExchanges(messages)
    })
    const message: ChatCompletionMessage = {
      role: 'assistant',
      refusal: null,
      content: 'text' in turn ? turn.text : null,
      ...'calls' in turn && {
        tool_calls: turn.calls.map(({ id, name, args }) =>
          ({ id, type: 'function', function: { name, arguments: JSON.stringify(args) } }))
      }
    }
    const completion: ChatCompletion = {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 0,
      model: 'scripted',
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'text' in turn ? 'stop' : 'tool_calls' }]
    }
    return completion
  },

  error: (message) => ({ error: { message, type: 'invalid_request_error', param: 'messages', code: null } })
}

/** Each message with tool calls is followed by one tool message for each of them. */
function readExchanges (messages: readonly Message[]): Exchange[] {
  return messages.flatMap(({ tool_calls: calls = [] }, index) => {
    const results = messages.slice(index + 1, index + 1 + calls.length)
    return calls.map(({ id, function: { name, arguments: args } }) => {
      const result = results.find((message) => message.role === 'tool' && message.tool_call_id === id)
      if (result === undefined) {
        throw new BadRequest("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. " +
          `The following tool_call_ids did not have response messages: ${id}`)
      }
      return { name, args: JSON.parse(args) as Exchange['args'], result: result.content ?? '' }
    })
  })
}
