import { createHash } from 'node:crypto'
import { jsonRequest, request, type RawResponse } from '../../helper/raw-http.ts'

/** What a reader asks, one kind for each door and form. */
export type Question =
  | { readonly kind: 'list' | 'list_skills' }
  | { readonly kind: 'document' | 'document bytes' | 'get_skill' | 'manifest' | 'Skill' | 'skill', readonly name: string }
  | { readonly kind: 'file' | 'file text' | 'read_file_in_skill', readonly name: string, readonly path: string }

export type Kind = Question['kind']

/**
 * What an answer says, as a text to compare: `200 ` and the body, or its digest where it is bytes. Of an error it is the status
 * and the sentence, of a tool's message the content.
 */
export type Said = string

export function isToolCall ({ kind }: Question): boolean {
  return TOOLS.has(kind)
}

const TOOLS: ReadonlySet<Kind> = new Set(['list_skills', 'get_skill', 'read_file_in_skill', 'Skill', 'skill'])
const BYTES: ReadonlySet<Kind> = new Set(['document bytes', 'file'])

/** The GET for a question that is no tool call. */
export function getRequest (question: Question, etag?: string): Buffer {
  return request('GET', targetOf(question), { headers: [`Accept: ${acceptOf(question)}`, ...etag === undefined ? [] : [`If-None-Match: ${etag}`]] })
}

/** One POST with a tool call for each question. */
export function toolCallRequest (questions: readonly Question[]): Buffer {
  const calls = questions.map((question) => ({ function: { name: question.kind, arguments: argumentsOf(question) } }))
  return jsonRequest('POST', '/agent/tool-call', calls)
}

function targetOf (question: Question): string {
  switch (question.kind) {
    case 'document':
    case 'document bytes': return `/skills/${question.name}`
    case 'manifest': return `/skills/${question.name}/files`
    case 'file':
    case 'file text': return `/skills/${question.name}/files/${question.path}`
    default: return '/skills'
  }
}

function acceptOf ({ kind }: Question): string {
  switch (kind) {
    case 'file': return '*/*'
    case 'document bytes': return 'text/markdown'
    default: return 'application/json'
  }
}

function argumentsOf (question: Question): object {
  switch (question.kind) {
    case 'get_skill':
    case 'Skill': return { skill_name: question.name }
    case 'skill': return { skill: question.name }
    case 'read_file_in_skill': return { skill_name: question.name, file_path: question.path }
    default: return {}
  }
}

export function saidByResponse ({ kind }: Question, { status, body, text }: RawResponse): Said {
  if (status !== 200) return problem(status, (JSON.parse(text) as { error: string }).error)
  return BYTES.has(kind) ? success(digestOf(body)) : success(text)
}

export function saidByTools (questions: readonly Question[], response: RawResponse): readonly Said[] {
  if (response.status !== 200) return questions.map(() => problem(response.status, response.text))
  const messages = response.json() as ReadonlyArray<{ readonly content: string }>
  return questions.map((question, index) => message(question, messages[index]?.content ?? ''))
}

export function success (body: string): Said {
  return `200 ${body}`
}

export function problem (status: number, sentence: string): Said {
  return `${status} ${sentence}`
}

/** A tool's message, without what it says of other skills: the catalog as a whole follows later (K52). */
export function message ({ kind }: Question, content: string): Said {
  if (kind !== 'Skill' || !content.startsWith('Error invoking')) return content
  return content.split('\n', 1)[0]?.replace(/' is invalid: .*$/, "' is invalid") ?? ''
}

const digests = new WeakMap<Buffer, string>()

/** `sha256:<hex>`, computed once for the same bytes. */
export function digestOf (bytes: Buffer): string {
  let digest = digests.get(bytes)
  if (digest === undefined) {
    digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
    digests.set(bytes, digest)
  }
  return digest
}
