import type { ContentBlock, Message as Answer } from '@anthropic-ai/sdk/resources/messages/messages'
import { BadRequest, type Exchange, type FakeModel, nextTurn } from './script.mts'

interface Request {
  readonly messages: readonly Message[]
  readonly tools: ReadonlyArray<{ readonly name: string }>
}

interface Message {
  readonly role: string
  readonly content: string | readonly Block[]
}

interface Block {
  readonly type: string
  readonly id?: string
  readonly name?: string
  readonly input?: Exchange['args']
  readonly tool_use_id?: string
  readonly content?: string
}

/** Anthropic Messages. */
export const anthropic: FakeModel = {
  path: /^\/v1\/messages$/,

  answer (request) {
    const { messages, tools } = request as Request
    const question = messages.find(({ role }) => role === 'user')?.content
    const turn = nextTurn({
      question: typeof question === 'string' ? question : '',
      tools: tools.map(({ name }) => name),
      exchanges: readExchanges(messages)
    })
    const said: ContentBlock = { type: 'text', text: 'text' in turn ? turn.text : 'Let me see.', citations: null }
    const answer: Answer = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'scripted',
      container: null,
      diagnostics: null,
      stop_details: null,
      stop_reason: 'text' in turn ? 'end_turn' : 'tool_use',
      stop_sequence: null,
      usage: {
        input_tokens: 0,
        output_tokens: 0,
        cache_creation: null,
        cache_creation_input_tokens: null,
        cache_read_input_tokens: null,
        inference_geo: null,
        output_tokens_details: null,
        server_tool_use: null,
        service_tier: null,
        speed: null
      },
      content: [said, ...'calls' in turn
        ? turn.calls.map(({ id, name, args }) =>
          ({ type: 'tool_use' as const, id, name, input: args, caller: { type: 'direct' as const } }))
        : []]
    }
    return answer
  },

  error: (message) => ({ type: 'error', error: { type: 'invalid_request_error', message } })
}

/** A message with tool uses is followed by a user message that begins with a result for each of them. */
function readExchanges (messages: readonly Message[]): Exchange[] {
  return messages.flatMap(({ content }, index) => {
    const uses = blocksOf(content).filter(({ type }) => type === 'tool_use')
    const next = messages[index + 1]
    const results = next?.role === 'user' ? blocksOf(next.content).slice(0, uses.length) : []
    return uses.map(({ id, name = '', input = {} }) => {
      const result = results.find((block) => block.type === 'tool_result' && block.tool_use_id === id)
      if (result === undefined) {
        throw new BadRequest(
          `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${id}`)
      }
      return { name, args: input, result: result.content ?? '' }
    })
  })
}

function blocksOf (content: Message['content']): readonly Block[] {
  return typeof content === 'string' ? [] : content
}
