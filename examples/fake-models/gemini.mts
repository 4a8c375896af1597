import type { Candidate, Part as AnswerPart } from '@google/genai'
import { BadRequest, type Exchange, type FakeModel, nextTurn } from './script.mts'

interface Request {
  readonly contents: readonly Content[]
  readonly tools: ReadonlyArray<{ readonly functionDeclarations: ReadonlyArray<{ readonly name: string }> }>
}

interface Content {
  readonly role: string
  readonly parts: readonly Part[]
}

interface Part {
  readonly text?: string
  readonly functionCall?: { readonly id?: string, readonly name: string, readonly args?: Exchange['args'] }
  readonly functionResponse?: {
    readonly id?: string
    readonly name: string
    readonly response: { readonly output?: string, readonly error?: string }
  }
}

/** Gemini's generateContent. */
export const gemini: FakeModel = {
  path: /^\/v1beta\/models\/[\w.-]+:generateContent$/,

  answer (request) {
    const { contents, tools } = request as Request
    const turn = nextTurn({
      question: contents.find(({ role }) => role === 'user')?.parts[0]?.text ?? '',
      tools: tools.flatMap(({ functionDeclarations }) => functionDeclarations.map(({ name }) => name)),
      exchanges: readExchanges(contents)
    })
    const parts: AnswerPart[] = 'text' in turn
      ? [{ text: turn.text }]
      : [{ text: 'Let me see.', thought: true },
          ...turn.calls.map((functionCall) => ({ functionCall: { ...functionCall }, thoughtSignature: 'eA==' }))]
    const candidate: Omit<Candidate, 'finishReason'> & { finishReason: string } = {
      index: 0, content: { role: 'model', parts }, finishReason: 'STOP'
    }
    return { candidates: [candidate], modelVersion: 'scripted', usageMetadata: { totalTokenCount: 0 } }
  },

  error: (message) => ({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } })
}

/** A content with function calls is followed by one with as many function responses and nothing else. */
function readExchanges (contents: readonly Content[]): Exchange[] {
  return contents.flatMap(({ parts }, index) => {
    const calls = parts.flatMap(({ functionCall }) => functionCall ?? [])
    const next = contents[index + 1]?.parts ?? []
    const responses = next.flatMap(({ functionResponse }) => functionResponse ?? [])
    if (calls.length > 0 && (responses.length !== calls.length || next.length !== calls.length)) {
      throw new BadRequest(
        'Please ensure that the number of function response parts is equal to the number of function call parts of ' +
          'the function call turn.')
    }
    return calls.map(({ id, name, args = {} }) => {
      const { response } = responses.find((each) => each.id === id && each.name === name) ?? {}
      if (response === undefined) throw new BadRequest(`There is no function response for ${name}.`)
      return { name, args, result: response.output ?? response.error ?? '' }
    })
  })
}
