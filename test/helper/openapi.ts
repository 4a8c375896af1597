/**
 * Validates answers against the service's own OpenAPI document: a status, media type, header or body that the document
 * does not have is an error. `buildService` validates every request that goes through it.
 */

import { type AnySchema, Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { MAX_HASHED_FIRST_BYTES } from '../../src/core/read/file-cache.ts'

export interface Exchange {
  readonly method: string
  /** The request target as it was sent, query included. */
  readonly target: string
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Buffer
}

/** @throws {Error} that names the part of the answer that the document does not have */
export type ResponseCheck = (exchange: Exchange) => void

interface Response {
  readonly headers?: Readonly<Record<string, object>>
  readonly content?: Readonly<Record<string, { readonly schema?: AnySchema }>>
}

interface Operation {
  readonly responses: Readonly<Record<string, Response>>
}

const PROBLEM = 'application/problem+json'
const PROBLEM_SCHEMA = '#/components/schemas/Problem'

/** Answers that any request may get, without an operation that describes them. */
const NO_OPERATION_STATUSES = new Set([400, 403, 404, 405, 408, 414, 417, 429, 431, 501, 505])

/** Optional headers: they are sent with bytes only, or only for some requests. */
const OPTIONAL_HEADERS = new Set(['accept-ranges', 'catalog-revision', 'skill-revision'])

const ROOT = 'openapi'

/** Validators by the text of the document: compiling its schemas takes longer than most tests. */
const checks = new Map<string, ResponseCheck>()

/** @param text the OpenAPI document */
export function responseCheckOf (text: string): ResponseCheck {
  const check = checks.get(text) ?? createResponseCheck(JSON.parse(text) as object)
  checks.set(text, check)
  return check
}

function createResponseCheck (document: object): ResponseCheck {
  // Compiles without optimizing and inlining, which halves the time: each schema validates few answers.
  const ajv =
    new Ajv2020({ strict: false, allErrors: true, validateSchema: false, inlineRefs: false, code: { optimize: false } })
  ajv.addSchema(document, ROOT)
  const validators = new Map<string, ValidateFunction>()
  const paths = (document as { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> }).paths
  const templates = Object.keys(paths).map((template) => ({ template, pattern: toPattern(template) }))
    .sort((a, b) => a.template.split('{').length - b.template.split('{').length)

  return function check (exchange) {
    const { method, target, status, headers, body } = exchange
    // An absolute target without a path means the root (RFC 9112 §3.2.2).
    const path = decodeUnreserved(target.replace(/^https?:\/\/[^/?#]*/, '').split(/[?#]/, 1)[0] ?? '') || '/'
    if (path === '/docs' || path.startsWith('/docs/')) return
    const fail = (reason: string): never => {
      throw new Error(
        `${method} ${target} → ${status} ${headers['content-type'] ?? ''}: ${reason}\n${body.toString('utf8', 0, 300)}`)
    }
    const validate = (pointer: string) => {
      let validator = validators.get(pointer)
      if (validator === undefined) {
        validator = ajv.compile({ $ref: ROOT + pointer })
        validators.set(pointer, validator)
      }
      if (!validator(JSON.parse(body.toString('utf8')))) {
        fail(`the body is not as documented: ${ajv.errorsText(validator.errors)}`)
      }
    }

    if (status >= 400) checkProblem(exchange, () => validate(PROBLEM_SCHEMA), fail)
    const isHead = method === 'HEAD'
    const verb = isHead ? 'get' : method.toLowerCase()
    const { template } = templates.find(({ pattern }) => pattern.test(path)) ?? {}
    const operation = template === undefined ? undefined : paths[template]?.[verb]
    if (template === undefined || operation === undefined) {
      if (!NO_OPERATION_STATUSES.has(status)) fail('no operation of the document answers this')
      return
    }

    const key = String(status)
    const response = operation.responses[key]
    if (response === undefined) return status < 400 ? fail('the status is not documented') : undefined
    for (const name of Object.keys(response.headers ?? {})) {
      const isTooLarge = name === 'etag' &&
        Number(/\d+$/.exec(headers['content-range'] ?? headers['content-length'] ?? '')?.[0]) > MAX_HASHED_FIRST_BYTES
      if (headers[name] === undefined && !isTooLarge && !OPTIONAL_HEADERS.has(name)) {
        fail(`the documented header ${name} is missing`)
      }
    }
    if (response.content === undefined || isHead) {
      if (body.length > 0) fail('a body that the document does not know')
      if (!isHead) return
    }
    const mediaType = headers['content-type']?.split(';', 1)[0] ?? ''
    const type = [mediaType, '*/*'].find((name) => Object.hasOwn(response.content ?? {}, name))
    if (response.content !== undefined && type === undefined) return fail('the media type is not documented')
    if (!isHead && mediaType.endsWith('json')) {
      validate(`#/paths/${escape(template)}/${verb}/responses/${key}/content/${escape(type ?? '')}/schema`)
    }
  }
}

/** Members of problem documents that a schema cannot compare (K48). */
function checkProblem ({ method, status, headers, body }: Exchange, validate: () => void,
  fail: (reason: string) => never): void {
  if (headers['content-type'] !== PROBLEM) fail(`not ${PROBLEM}`)
  if (method === 'HEAD') return
  validate()
  const problem = JSON.parse(body.toString('utf8')) as {
    readonly type: string
    readonly status: number
    readonly code: string
  }
  if (problem.status !== status) fail('`status` is not the status')
  if (problem.type !== `urn:skillserve:problem:${problem.code}`) fail('`type` does not name `code`')
}

/** A parameter may be empty; the last one may contain slashes, if it is `path`. */
function toPattern (template: string): RegExp {
  const source = template.replaceAll(/[.$]/g, '\\$&').replace('{path}', '.*').replaceAll(/\{\w+\}/g, '[^/]*')
  return new RegExp(`^${source}$`, 's')
}

/** `/%73kills` is `/skills`; `%2F` stays, since it is no slash. */
function decodeUnreserved (path: string): string {
  return path.replaceAll(/%([2-7][\da-f])/gi, (escaped, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return /[\w.~-]/.test(character) ? character : escaped
  })
}

/** RFC 6901, inside a URI fragment. */
function escape (token: string): string {
  return encodeURIComponent(token.replaceAll('~', '~0').replaceAll('/', '~1'))
}
