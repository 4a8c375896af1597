// Adds `operationId`, `tags`, `hide` and the like to the type of a route's schema.
import type {} from '@fastify/swagger'
import type { TSchema } from '@sinclair/typebox'
import { exampleOf, reference } from '../schemas/typebox.ts'

/** An answer of a route, for the OpenAPI document; Fastify serializes by the schemas in it. */
interface Answer {
  readonly description: string
  readonly headers: Readonly<Record<string, object>>
  readonly content: Content
}

type Content = Readonly<Record<string, { readonly schema: object, readonly examples: Examples }>>
type Examples = Readonly<Record<string, { readonly value: unknown } | { readonly $ref: string }>>

const HEADERS = {
  etag: 'Strong, derived from the content alone, and so the same on every replica',
  'cache-control': '`no-cache`: revalidate before each use',
  'accept-ranges': 'With bytes: `Range` is understood',
  'content-range': '`bytes first-last/size`',
  'skill-revision': 'The revision of the skill that the answer belongs to: answers of one revision fit together. Of ' +
    'documents, files and tool calls there when the request asks for one, by `revision` or `If-Match`',
  'catalog-revision': 'The revision of the whole catalog, any file of any skill: equal on replicas of equal content, ' +
    'and the id of the last event. Absent until all skills have been read once, and while a change is compared',
  vary: 'The answer depends on the Accept header; from 1 KiB on also on Accept-Encoding'
} as const

type HeaderName = keyof typeof HEADERS

/** The beginning of a main file. */
export const DOCUMENT_EXAMPLE = '---\nname: calculator\ndescription: Basic arithmetic\n---\n# Calculator Skill\n'

/** Length of the example of a range, taken from the example of the whole answer. */
const PART_CHARACTERS = 14

/** The answer to a GET, with the headers that all have that can be revalidated. */
export function answer (description: string, content: Content, ...more: readonly HeaderName[]): Answer {
  return { description, headers: headers('etag', 'cache-control', ...more), content }
}

/** The answer to a POST: JSON that nobody can revalidate. */
export function resultAnswer (schema: TSchema, description: string, examples?: Examples): Answer {
  return { description, headers: headers('cache-control', 'skill-revision'), content: json(schema, examples) }
}

/** An answer that nobody keeps: of a probe, or a stream. */
export function uncachedAnswer (description: string, content: Content): Answer {
  return { description, headers: { 'cache-control': header('`no-store`: the answer is not kept') }, content }
}

/** Bytes under these media types, whole and as a range. `others` are forms that have no ranges. */
export function bytesAnswers (
  types: readonly string[], example: string, description: string, others: Content = {},
  ...more: readonly HeaderName[]
): { 200: Answer, 206: Answer } {
  const content = (value: string) => Object.assign({}, ...types.map((type) =>
    text(type, value, type.startsWith('text/') ? { type: 'string' } : {})))
  return {
    200: answer(description, { ...others, ...content(example) }, 'accept-ranges', ...more),
    206: answer(
      'The range asked for', content(example.slice(0, PART_CHARACTERS)), 'accept-ranges', 'content-range', ...more
    )
  }
}

/** JSON of a shared schema; default: with its example. */
export function json (schema: TSchema, examples: Examples = { example: { value: exampleOf(schema) } }): Content {
  return { 'application/json': { schema: reference(schema), examples } }
}

/** Another media type. */
export function text (type: string, value: unknown, schema: object = { type: 'string' }): Content {
  return { [type]: { schema, examples: { example: { value } } } }
}

/** A JSON body; `x-examples` is how @fastify/swagger takes the examples of a body. */
export function requestBody (schema: TSchema, examples: Examples): object {
  return { ...schema, 'x-examples': examples }
}

function headers (...names: readonly HeaderName[]): Readonly<Record<string, object>> {
  return Object.fromEntries(names.map((name) => [name, header(HEADERS[name])]))
}

function header (description: string): object {
  return { type: 'string', description }
}
