import type { Response, ResponseOutputItem } from 'openai/resources/responses/responses'
import { BadRequest, type Exchange, type FakeModel, nextTurn } from './script.mts'

interface Request {
  readonly input: readonly Item[]
  readonly tools: ReadonlyArray<{ readonly name: string }>
}

interface Item {
  readonly type?: string
  readonly role?: string
  readonly content?: string
  readonly call_id?: string
  readonly name?: string
  readonly arguments?: string
  readonly output?: string
}

/** OpenAI Responses. */
export const openaiResponses: FakeModel = {
  path: /^\/v1\/responses$/,

  answer (request) {
    const { input, tools } = request as Request
    const turn = nextTurn({
      question: input.find(({ role }) => role === 'user')?.content ?? '',
      tools: tools.map(({ name }) => name),
      exchanges: readExchanges(input)
    })
    const said: ResponseOutputItem = {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'text' in turn ? turn.text : 'Let me see.', annotations: [] }]
    }
    const response: Omit<Response, 'output_text'> = {
      id: 'resp_1',
      object: 'response',
      created_at: 0,
      completed_at: 0,
      status: 'completed',
      model: 'scripted',
      error: null,
      incomplete_details: null,
      instructions: null,
      metadata: null,
      parallel_tool_calls: true,
      temperature: null,
      top_p: null,
      tool_choice: 'auto',
      tools: [],
      output: [
        { type: 'reasoning', id: 'rs_1', summary: [] },
        said,
        ...'calls' in turn
          ? turn.calls.map(
            ({ id, name, args }) => ({
              type: 'function_call' as const,
              id: `fc_${id}`,
              call_id: id,
              name,
              arguments: JSON.stringify(args),
              status: 'completed' as const
            }))
          : []
      ]
    }
    return response
  },

  error: (message) => ({ error: { message, type: 'invalid_request_error', param: 'input', code: null } })
}

/** Each function call has an output with its `call_id`, and each output a call. */
function readExchanges (input: readonly Item[]): Exchange[] {
  const calls = input.filter(({ type }) => type === 'function_call')
  const outputs = input.filter(({ type }) => type === 'function_call_output')
  for (const { call_id: id } of outputs) {
    if (!calls.some((call) => call.call_id === id)) {
      throw new BadRequest(`No tool call found for function call output with call_id ${id}.`)
    }
  }
  return calls.map(({ call_id: id, name = '', arguments: args = '' }) => {
    const found = outputs.find((output) => output.call_id === id)
    if (found?.output === undefined) throw new BadRequest(`No tool output found for function call ${id}.`)
    return { name, args: JSON.parse(args) as Exchange['args'], result: found.output }
  })
}
