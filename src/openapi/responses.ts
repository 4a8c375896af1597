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

export const DOCUMENT_EXAMPLE = '---\nname: calculator\ndescription: Basic arithmetic\n---\n# Calculator Skill\n'

/** Number of characters of the example of a range, which is the beginning of the whole example. */
const PART_CHARACTERS = 14

/** Describes the answer to a GET that clients can revalidate. */
export function answer (description: string, content: Content, ...more: readonly HeaderName[]): Answer {
  return { description, headers: headers('etag', 'cache-control', ...more), content }
}

/** Describes the answer to a POST: JSON without an ETag. */
export function resultAnswer (schema: TSchema, description: string, examples?: Examples): Answer {
  return { description, headers: headers('cache-control', 'skill-revision'), content: json(schema, examples) }
}

/** Describes an answer that is never cached: of a probe, or a stream. */
export function uncachedAnswer (description: string, content: Content): Answer {
  return { description, headers: { 'cache-control': header('`no-store`: the answer is not kept') }, content }
}

/** Describes bytes of these media types, whole and as a range. `others` are representations without ranges. */
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

/** Describes JSON of a shared schema; by default with the schema's own example. */
export function json (schema: TSchema, examples: Examples = { example: { value: exampleOf(schema) } }): Content {
  return { 'application/json': { schema: reference(schema), examples } }
}

/** Describes content of another media type. */
export function text (type: string, value: unknown, schema: object = { type: 'string' }): Content {
  return { [type]: { schema, examples: { example: { value } } } }
}

/** Describes a JSON body with examples, which @fastify/swagger reads from `x-examples`. */
export function requestBody (schema: TSchema, examples: Examples): object {
  return { ...schema, 'x-examples': examples }
}

function headers (...names: readonly HeaderName[]): Readonly<Record<string, object>> {
  return Object.fromEntries(names.map((name) => [name, header(HEADERS[name])]))
}

function header (description: string): object {
  return { type: 'string', description }
}
