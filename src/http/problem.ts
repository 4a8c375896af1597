import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { RevisionChangedError, SkillError } from '../core/shared/errors.ts'
import { maskSecrets } from '../secrets.ts'
import { REVISION_HEADER } from './headers.ts'
import { type HttpProblemCode, type Problem, problems } from '../schemas/problem.ts'

export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

/** Of a 503. */
const RETRY_AFTER_SECONDS = 5

/** Characters that clients send in URLs although RFC 3986 forbids them there, and stray percent signs. */
const NOT_IN_A_URI_PATH = /%(?![\da-f]{2})|[^\w\-.~:/@!$&'()*+,;=%]/gi

/** The origin at the beginning of a request target in absolute form. */
export const TARGET_ORIGIN = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i

/** A route that a sentence of the service names. */
const ADDRESS = /\bGET (?=\/)/g

/** The main file, as sentences of the tools name it. */
export const MAIN_FILE = /SKILL\.MD(?= (?:not found|too large|contains|for skill) )/

/** Headers of the answer that a route had prepared, which do not apply to the error. */
const HEADERS_OF_CONTENT = [
  'etag', 'accept-ranges', 'content-range', 'content-disposition', 'content-encoding', 'www-authenticate'
]

/** Our codes for Fastify's errors, by error code, else by status. */
const FASTIFY_PROBLEMS: ReadonlyMap<unknown, HttpProblemCode> = new Map<unknown, HttpProblemCode>([
  ['FST_ERR_BAD_URL', 'bad_url'],
  ['FST_ERR_CTP_INVALID_JSON_BODY', 'invalid_json'],
  [404, 'route_not_found'],
  [413, 'body_too_large'],
  [414, 'uri_too_long'],
  [415, 'unsupported_media_type']
])

/** An error of HTTP, as opposed to `SkillError`. Nothing in it may be secret. */
export class HttpProblem extends Error {
  override readonly name = 'HttpProblem'
  readonly code: HttpProblemCode
  /** Response headers, names in lower case: `allow`, `content-range`. */
  readonly headers: Readonly<Record<string, string>>
  /** Extension members of the problem (RFC 9457 §3.2). */
  readonly members: Readonly<Record<string, unknown>>

  /** @param detail a sentence without a full stop that tells the caller what to do; default: the code's own. */
  constructor (
    code: HttpProblemCode, detail: string = problems[code].text,
    headers: Readonly<Record<string, string>> = {}, members: Readonly<Record<string, unknown>> = {}
  ) {
    super(detail)
    this.code = code
    this.headers = headers
    this.members = members
  }
}

/** @param basePath path prefix of the routes, for the addresses in sentences of ours */
export function toProblem (error: SkillError | HttpProblem, url: string, requestId?: string, basePath = ''): Problem {
  const isSkillError = error instanceof SkillError
  const { status, title, text: hint } = problems[error.code]
  const below = (sentence: string): string => sentence.replace(ADDRESS, `$&${basePath}`)
  // Sentences quote the request, which may contain a secret.
  const text = maskSecrets(error.message)
  const message = isSkillError ? text : below(text)
  const [, name = ':name'] = /\/skills\/([^/]+)/.exec(toInstance(url)) ?? []
  return {
    type: `urn:skillserve:problem:${error.code}`,
    title,
    status,
    detail: isSkillError
      ? `${message.replace(MAIN_FILE, 'SKILL.md')}. ${below(hint).replace(':name', () => name)}`
      : message,
    instance: toInstance(url),
    error: message,
    code: error.code,
    ...requestId !== undefined && { requestId },
    ...!isSkillError && error.members
  }
}

/** Turns an error into a problem, and sets status and headers. The log alone describes an unexpected error. */
export function problemOf (error: unknown, request: FastifyRequest, reply: FastifyReply): Problem {
  const known = toKnownError(error)
  const problem = toProblem(known, request.url, request.id, request.server.prefix)
  request.problemCode = known.code
  if (problem.status === 500) request.log.error({ err: error }, 'request failed')
  for (const name of HEADERS_OF_CONTENT) reply.removeHeader(name)
  reply.code(problem.status).header('cache-control', 'no-store')
  if (known instanceof HttpProblem) reply.headers(known.headers)
  if (known instanceof RevisionChangedError && known.present !== undefined) reply.header(REVISION_HEADER, known.present)
  if (problem.status === 503) reply.header('retry-after', RETRY_AFTER_SECONDS)
  // Otherwise Node would read the rest of the body, up to its announced length.
  const { complete, headers } = request.raw
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
  if (hasBody && !complete) reply.header('connection', 'close')
  return problem
}

export function statusOf (error: unknown): number {
  return problems[toKnownError(error).code].status
}

/** Answers with the problem of an error. Returns the body. @param suggestion what the caller may have meant */
export function renderProblem (
  error: unknown, request: FastifyRequest, reply: FastifyReply, suggestion?: string
): Buffer {
  const problem = problemOf(error, request, reply)
  const hint = suggestion === undefined ? '' : `. Did you mean ${JSON.stringify(suggestion)}?`
  reply.type(PROBLEM_MEDIA_TYPE)
  // As bytes: to a string Fastify would append `; charset=utf-8`, which this media type does not define.
  return Buffer.from(JSON.stringify({ ...problem, detail: `${problem.detail}${hint}` }))
}

/** Replaces the messages of Fastify's errors: some repeat the URL. */
function toKnownError (error: unknown): SkillError | HttpProblem {
  if (error instanceof SkillError || error instanceof HttpProblem) return error
  const { code, statusCode = 500 }: Partial<FastifyError> = error instanceof Error ? error : {}
  const known = FASTIFY_PROBLEMS.get(code) ?? FASTIFY_PROBLEMS.get(statusCode)
  return new HttpProblem(known ?? (statusCode >= 400 && statusCode < 500 ? 'bad_request' : 'internal_error'))
}

/** Returns the encoded path as the URI reference that RFC 9457 wants; no query, which may contain secrets. */
export function toInstance (url: string): string {
  const path = maskSecrets(url).replace(TARGET_ORIGIN, '').split(/[?#]/, 1)[0] ?? ''
  return path.replace(NOT_IN_A_URI_PATH, encodeURIComponent)
}
