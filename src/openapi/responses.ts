// Adds `operationId`, `tags`, `hide` and the like to the type of a route's schema.
import type {} from '@fastify/swagger'
import type { TSchema } from '@sinclair/typebox'
import { reference } from '../schemas/typebox.ts'
import { httpProblems, type ProblemCode, ProblemSchema, skillProblems } from '../schemas/problem.ts'

/** What a route may answer: JSON as Fastify's response schema, from which it compiles a serializer. */
interface ResponseObject {
  readonly description: string
  readonly content?: Readonly<Record<string, MediaTypeObject>>
  readonly headers?: Headers
  readonly type?: 'null'
}

/** By status. */
type Answers = Readonly<Record<string, Partial<ResponseObject>>>

interface MediaTypeObject {
  readonly schema: object
  readonly examples?: Examples
}

type Headers = Readonly<Record<string, object>>
type Example = { readonly summary?: string, readonly value: unknown } | { readonly $ref: string }
export type Examples = Readonly<Record<string, Example>>

const CACHE_CONTROL = { type: 'string', description: '`no-cache`: revalidate before each use' }
const NO_STORE = { type: 'string', description: '`no-store`: an error is not kept' }
const ETAG = { type: 'string', description: 'Strong, derived from the content alone, and so the same on every replica' }
const VALIDATORS: Headers = { etag: ETAG, 'cache-control': CACHE_CONTROL }
const VARY = {
  type: 'string', description: 'The answer depends on the Accept header; from 1 KiB on also on Accept-Encoding'
}
const ACCEPT_RANGES = { type: 'string', description: 'With bytes: `Range` is understood' }

const SKILL_REVISION = {
  type: 'string',
  description: 'The revision of the skill that the answer belongs to: answers of one revision fit together'
}
const ASKED_REVISION = {
  ...SKILL_REVISION,
  description: `${SKILL_REVISION.description}. There when the request asks for one, by \`revision\` or \`If-Match\``
}

const CATALOG_REVISION = {
  type: 'string',
  description: 'The revision of the whole catalog, any file of any skill: equal on replicas of equal content, and ' +
    'the id of the last event. Absent until all skills have been read once, and while a change is compared'
}

const CONTENT_RANGE = { type: 'string', description: '`bytes first-last/size`' }

const NOT_MODIFIED: ResponseObject = {
  description: 'The content is the one that If-None-Match names', headers: VALIDATORS, type: 'null'
}

/** Of the example of a whole answer, in that of a part. */
const PART_CHARACTERS = 14

/** The answer to a GET: JSON of a shared schema, with the first example of the schema. */
export function jsonAnswer (schema: TSchema, description: string): ResponseObject {
  return { description, headers: VALIDATORS, content: { 'application/json': mediaTypeObject(schema) } }
}

/** As `jsonAnswer`, of an answer that belongs to one revision of a skill. */
export function withRevision (response: ResponseObject): ResponseObject {
  return { ...response, headers: { ...response.headers, 'skill-revision': SKILL_REVISION } }
}

/** As `jsonAnswer`, of a list that belongs to one revision of the whole catalog. */
export function withCatalogRevision (response: ResponseObject): ResponseObject {
  return { ...response, headers: { ...response.headers, 'catalog-revision': CATALOG_REVISION } }
}

/** The answer to a probe: JSON that nobody keeps. */
export function probeAnswer (schema: TSchema, description: string): ResponseObject {
  const headers = { 'cache-control': { type: 'string', description: '`no-store`: the state of one process' } }
  return { description, headers, content: { 'application/json': mediaTypeObject(schema) } }
}

/** The answer to a POST: JSON that nobody can revalidate. */
export function resultAnswer (schema: TSchema, description: string, examples?: Examples): ResponseObject {
  const headers = { 'cache-control': CACHE_CONTROL, 'skill-revision': ASKED_REVISION }
  return { description, headers, content: { 'application/json': mediaTypeObject(schema, examples) } }
}

/** The answer of a route whose bytes may be a JSON file, besides the JSON of a shared schema. */
export function jsonOrFileAnswer (schema: TSchema, description: string): ResponseObject {
  const file = { title: 'A JSON file', description: 'The bytes of a file that is JSON itself' }
  const content = { ...mediaTypeObject(schema), schema: { anyOf: [reference(schema), file] } }
  return { description, headers: VALIDATORS, content: { 'application/json': content } }
}

/** Text or bytes under one media type, whole and never in part. */
export function textAnswer (type: string, example: unknown, description?: string, schema: object = { type: 'string' }) {
  const content = { [type]: { schema, examples: { example: { value: example } } } }
  return { 200: { ...description !== undefined && { description }, headers: VALIDATORS, content } }
}

/** Bytes under these media types, whole and as a range. */
export function bytesAnswers (types: readonly string[], example: string, description?: string) {
  const content = (value: string) => Object.fromEntries(types.map((type) =>
    [type, { schema: type.startsWith('text/') ? { type: 'string' } : {}, examples: { text: { value } } }]))
  const headers = { ...VALIDATORS, 'accept-ranges': ACCEPT_RANGES }
  return {
    200: { ...description !== undefined && { description }, headers, content: content(example) },
    206: {
      description: 'The range asked for',
      headers: { ...headers, 'content-range': CONTENT_RANGE },
      content: content(example.slice(0, PART_CHARACTERS))
    }
  }
}

/** What becomes of `bytesAnswers` where `Accept` chooses, and a revision may be asked for. */
export function negotiated (answers: Answers): Answers {
  const headers = { 'skill-revision': ASKED_REVISION, vary: VARY }
  return Object.fromEntries(Object.entries(answers).map(([status, answer]) =>
    [status, { ...answer, headers: { ...answer.headers, ...headers } }]))
}

/** A stream of server-sent events. */
export function eventStreamAnswer (description: string, example: string): Answers {
  const headers = {
    'cache-control': { type: 'string', description: '`no-store`: a stream is not kept' },
    'x-accel-buffering': { type: 'string', description: '`no`: a proxy passes each event on immediately' }
  }
  const content = { 'text/event-stream': { schema: { type: 'string' }, examples: { events: { value: example } } } }
  return { 200: { description, headers, content } }
}

/** All answers of a route: those of `response`, those of `bytes`, and 304 where there is an ETag to compare. */
export function allAnswers (response: Answers, bytes: Answers = {}): Answers {
  const answers: Record<string, Partial<ResponseObject>> = { ...response }
  for (const [status, answer] of Object.entries(bytes)) {
    const { headers, content, ...rest } = answers[status] ?? {}
    answers[status] = {
      ...rest, ...answer, headers: { ...headers, ...answer.headers }, content: { ...content, ...answer.content }
    }
  }
  const isRevalidated = answers['200']?.headers?.['etag'] !== undefined
  return isRevalidated ? { ...answers, 304: NOT_MODIFIED } : answers
}

/** A JSON body; `x-examples` is how @fastify/swagger takes the examples of a body. */
export function requestBody (schema: TSchema, examples: Examples): object {
  return { ...schema, 'x-examples': examples }
}

const PROBLEMS = { ...skillProblems, ...httpProblems }

/** What any request can meet, whatever its route. */
const COMMON_PROBLEMS: readonly ProblemCode[] = ['bad_request', 'bad_query', 'host_not_allowed']
/** Where an access file is in force. */
const ACCESS_PROBLEMS: readonly ProblemCode[] = [
  'unauthenticated', 'invalid_token', 'token_expired', 'invalid_credentials', 'insufficient_scope'
]
const OTHER_PROBLEMS: readonly ProblemCode[] = [
  'request_timeout', 'precondition_failed', 'headers_too_large', 'internal_error', 'transfer_encoding_unsupported',
  'rate_limited', 'overloaded', 'audit_unavailable', 'issuer_unavailable'
]

declare module 'fastify' {
  interface FastifySchema {
    /** For the document: what requests of the route can meet besides what any can. Problems are sent as bytes. */
    problems?: readonly ProblemCode[]
    /** For the document: answers that are text or bytes, from which no serializer is compiled. By status. */
    bytes?: Answers
  }
}

/**
 * Error answers, all of one shape: these codes by their statuses, and `default` for what HTTP itself refuses.
 * @param isOpen whether the route answers callers without credentials, whatever the access file says
 */
export function problemAnswers (
  codes: readonly ProblemCode[], isOpen: boolean
): Readonly<Record<string, ResponseObject>> {
  const byStatus = new Map<number, ProblemCode[]>()
  for (const code of new Set([...codes, ...isOpen ? [] : ACCESS_PROBLEMS, ...COMMON_PROBLEMS])) {
    const { status } = PROBLEMS[code]
    byStatus.set(status, [...byStatus.get(status) ?? [], code])
  }
  return {
    ...Object.fromEntries([...byStatus].map(([status, group]) => [status, problem(group, status)])),
    default: problem(OTHER_PROBLEMS)
  }
}

/** The answer to one code, with members of its own: `schema` has them besides those of `Problem`. */
export function extendedProblemAnswer (code: ProblemCode, schema: TSchema): Readonly<Record<string, ResponseObject>> {
  const { status } = PROBLEMS[code]
  return { [status]: { ...problem([code], status), content: { 'application/problem+json': mediaTypeObject(schema) } } }
}

function problem (codes: readonly ProblemCode[], status?: number): ResponseObject {
  const examples = Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]))
  return {
    description: codes.map((code) => `${PROBLEMS[code].title} (\`${code}\`)`).join(', '),
    headers: {
      'cache-control': NO_STORE,
      ...status === 401 && {
        'www-authenticate': {
          type: 'string',
          description: '`Bearer`, with what is wrong (RFC 6750 §3) and where OAuth clients begin (RFC 9728 §5.1)'
        }
      },
      ...status === 416 && { 'content-range': { type: 'string', description: '`bytes */size`' } },
      ...(status === 429 || status === 503) && { 'retry-after': { type: 'integer', description: 'In seconds' } }
    },
    content: { 'application/problem+json': { schema: reference(ProblemSchema), examples } }
  }
}

function mediaTypeObject (schema: TSchema, examples: Examples = firstExample(schema)): MediaTypeObject {
  return { schema: reference(schema), examples }
}

function firstExample (schema: TSchema): Examples {
  const [value] = (schema['examples'] ?? []) as readonly unknown[]
  return value === undefined ? {} : { example: { value } }
}
