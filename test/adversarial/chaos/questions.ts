import { createHash } from 'node:crypto'
import { jsonRequest, request, type RawResponse } from '../../helper/raw-http.ts'

const file = (name: string, path: string) => `/skills/${name}/files/${path}`

/** The questions that are a GET: what they accept, and their target. */
const GETS = {
  list: ['application/json', () => '/skills'],
  document: ['application/json', (name: string) => `/skills/${name}`],
  'document bytes': ['text/markdown', (name: string) => `/skills/${name}`],
  manifest: ['application/json', (name: string) => `/skills/${name}/files`],
  file: ['*/*', file],
  'file text': ['application/json', file]
} as const

/** Those that are a tool call: the arguments. */
const CALLS = {
  list_skills: () => ({}),
  get_skill: (name: string) => ({ skill_name: name }),
  Skill: (name: string) => ({ skill_name: name }),
  skill: (name: string) => ({ skill: name }),
  read_file_in_skill: (name: string, path: string) => ({ skill_name: name, file_path: path })
} as const

export type GetKind = keyof typeof GETS
export type CallKind = keyof typeof CALLS
export const GET_KINDS = Object.keys(GETS) as GetKind[]
export const CALL_KINDS = Object.keys(CALLS) as CallKind[]

/** What a reader asks, one kind for each API and form; name and path are empty where there is none. */
export interface Question<Kind = GetKind | CallKind> {
  readonly kind: Kind
  readonly name: string
  readonly path: string
}

/**
 * What an answer says, as a text to compare: `200 ` and the body, or its digest where it is bytes. Of an error it is
 * the status and the sentence, of a tool's message the content.
 */
export type Said = string

export function getRequest ({ kind, name, path }: Question<GetKind>, etag?: string): Buffer {
  const [accept, target] = GETS[kind]
  return request('GET', target(name, path),
    { headers: [`Accept: ${accept}`, ...etag === undefined ? [] : [`If-None-Match: ${etag}`]] })
}

/** One POST with a tool call for each question. */
export function toolCallRequest (questions: ReadonlyArray<Question<CallKind>>): Buffer {
  const calls = questions.map(({ kind, name, path }) =>
    ({ function: { name: kind, arguments: CALLS[kind](name, path) } }))
  return jsonRequest('POST', '/agent/tool-call', calls)
}

export function saidByResponse ({ kind }: Question, { status, body, text }: RawResponse): Said {
  if (status !== 200) return problem(status, (JSON.parse(text) as { error: string }).error)
  return success(kind === 'file' || kind === 'document bytes' ? digestOf(body) : text)
}

export function saidByTools (questions: readonly Question[], response: RawResponse): readonly Said[] {
  if (response.status !== 200) return questions.map(() => problem(response.status, response.text))
  const messages = response.json() as ReadonlyArray<{ readonly content: string }>
  return questions.map((question, index) => message(question, messages[index]?.content ?? ''))
}

export const success = (body: string): Said => `200 ${body}`
export const problem = (status: number, sentence: string): Said => `${status} ${sentence}`

/** A tool's message, without what it says of other skills: the catalog as a whole follows later (K52). */
export function message ({ kind }: Question, content: string): Said {
  if (kind !== 'Skill' || !content.startsWith('Error invoking')) return content
  return content.split('\n', 1)[0]?.replace(/' is invalid: .*$/, "' is invalid") ?? ''
}

const digests = new WeakMap<Buffer, string>()

/** `sha256:<hex>`, computed once for the same bytes. */
export function digestOf (bytes: Buffer): string {
  const digest = digests.get(bytes) ?? `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  digests.set(bytes, digest)
  return digest
}
