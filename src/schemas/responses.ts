import { STATUS_CODES } from 'node:http'
import type { TSchema } from '@sinclair/typebox'
import { ProblemSchema } from './problem.ts'

/** What a route may answer, as Fastify's response schema: `content` by media type, so that bytes are never serialised. */
interface MediaTypeObject {
  readonly schema: object
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

interface ResponseObject {
  readonly description: string
  readonly content?: Readonly<Record<string, MediaTypeObject>>
  readonly headers?: Readonly<Record<string, object>>
  readonly type?: 'null'
}

const ETAG_HEADER = { etag: { type: 'string', description: 'Strong; derived from the content alone' } }

/** JSON of a shared schema, shown with the schema's first example. */
export function json (schema: TSchema, description: string): ResponseObject {
  return { description, headers: ETAG_HEADER, content: { 'application/json': mediaTypeObject(schema) } }
}

/** JSON, or the same content as bytes under one of these media types. */
export function jsonOr (schema: TSchema, description: string, types: readonly string[]): ResponseObject {
  const bytes = types.map((type) => [type, { schema: { type: 'string' } }] as const)
  return { ...json(schema, description), content: { 'application/json': mediaTypeObject(schema), ...Object.fromEntries(bytes) } }
}

/** Bytes under any media type, or JSON of a shared schema. */
export function binary (description: string, schema: TSchema): ResponseObject {
  return { description, headers: ETAG_HEADER, content: { '*/*': { schema: {} }, 'application/json': mediaTypeObject(schema) } }
}

/** Text under one media type. */
export function text (description: string, type: string): ResponseObject {
  return { description, headers: ETAG_HEADER, content: { [type]: { schema: { type: 'string' } } } }
}

export function partial (): ResponseObject {
  return {
    description: 'The range asked for',
    headers: { 'content-range': { type: 'string', description: '`bytes first-last/size`' } },
    content: { '*/*': { schema: {} } }
  }
}

export function notModified (): ResponseObject {
  return { description: 'The content is the one that If-None-Match names', headers: ETAG_HEADER, type: 'null' }
}

/** Error answers, all of one shape (K48). */
export function problems (...statuses: readonly number[]): Readonly<Record<number, ResponseObject>> {
  return Object.fromEntries(statuses.map((status) => [status, {
    description: STATUS_CODES[status] ?? 'Error',
    content: { 'application/problem+json': { schema: reference(ProblemSchema) } },
    ...status === 503 && { headers: { 'retry-after': { type: 'integer', description: 'In seconds' } } }
  }]))
}

/** A shared schema by its name, for Fastify and for the OpenAPI document alike. */
export function reference ({ $id }: TSchema): object {
  if ($id === undefined) throw new Error('a shared schema needs an $id')
  return { $ref: `${$id}#` }
}

function mediaTypeObject (schema: TSchema): MediaTypeObject {
  const example: unknown = (schema['examples'] as readonly unknown[] | undefined)?.[0]
  return { schema: reference(schema), ...example !== undefined && { examples: { example: { value: example } } } }
}
