import type { FastifyRequest, preParsingHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { jsonDepthExceeds } from '../core/shared/json.ts'
import { MAX_BODY_BYTES } from '../http/limits.ts'
import { MAX_JSON_DEPTH } from '../tools/limits.ts'
import { decodeUtf8 } from '../core/read/decode.ts'
import { announcesBody, HttpProblem } from '../http/problem.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Media types of bodies that a route takes; default: JSON. Its `bodyLimit` counts for them. `*`: any bytes, whatever the headers call them. */
    bodyTypes?: readonly string[]
  }
}

const MEDIA_TYPE = 'application/json'
const ANY_TYPE = '*'
const BOM = '\uFEFF'
const CHARSET = /;\s*charset\s*=\s*"?([^\s;"]*)/gi

/** The charset parameters of a Content-Type: there is no JSON but in UTF-8 (RFC 8259 §8.1). */
function hasForeignCharset (contentType: string): boolean {
  if (contentType === MEDIA_TYPE) return false
  for (const [, charset] of contentType.matchAll(CHARSET)) {
    if (charset?.toLowerCase() !== 'utf-8') return true
  }
  return false
}

/** A leading BOM is ignored, as RFC 8259 §8.1 allows. `__proto__` becomes an own property, which is data. */
function parseBody (bytes: Buffer): unknown {
  const decoded = decodeUtf8(bytes)
  if (decoded === undefined) throw new HttpProblem('invalid_json', 'The body is not valid UTF-8')
  const text = decoded.startsWith(BOM) ? decoded.slice(BOM.length) : decoded
  if (text === '') throw new HttpProblem('invalid_json', 'The body is empty; send JSON, or no Content-Type')
  if (jsonDepthExceeds(text, MAX_JSON_DEPTH)) {
    throw new HttpProblem('json_too_deep', `The body nests arrays and objects deeper than ${MAX_JSON_DEPTH} levels`)
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new HttpProblem('invalid_json', `The body is not valid JSON: ${(error as SyntaxError).message}`)
  }
}

/** A coding or charset that the service does not read. */
export function problemOfCoding ({ headers: { 'content-type': contentType, 'content-encoding': encoding } }: FastifyRequest): HttpProblem | undefined {
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return new HttpProblem('unsupported_media_type', 'Send the body without Content-Encoding')
  }
  return contentType !== undefined && hasForeignCharset(contentType) ? new HttpProblem('unsupported_media_type', 'Send the body in UTF-8') : undefined
}

/** Whether the client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1). */
function awaitsContinue ({ headers, raw: { httpVersion, complete } }: FastifyRequest): boolean {
  return headers.expect !== undefined && httpVersion === '1.1' && !complete && announcesBody({ headers })
}

/** Refuses a body that has not been sent by what the headers say of it; other bodies are read first, and keep their connection. */
const answerExpectation: preParsingHookHandler = (request, reply, payload, next) => {
  if (!awaitsContinue(request)) return next(null, payload)
  const { 'content-type': contentType, 'content-length': length } = request.headers
  const { config: { bodyTypes = [MEDIA_TYPE] }, bodyLimit = MAX_BODY_BYTES } = request.routeOptions
  if (!bodyTypes.includes(ANY_TYPE)) {
    const isTaken = bodyTypes.includes(contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '')
    const problem = isTaken ? problemOfCoding(request) : new HttpProblem('unsupported_media_type')
    if (problem !== undefined) return next(problem)
  }
  if (Number(length) > bodyLimit) return next(new HttpProblem('body_too_large'))
  reply.raw.writeContinue()
  next(null, payload)
}

/** The body of nearly every route: `application/json` in UTF-8, uncompressed. Everything else is 415; a route may add parsers of its own. */
export const jsonBody = fp(function jsonBody (app, _options, done) {
  app.removeAllContentTypeParsers()

  app.addContentTypeParser(MEDIA_TYPE, { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES }, (request, body: Buffer, next) => {
    const problem = problemOfCoding(request)
    if (problem === undefined) next(null, parseBody(body))
    else next(problem)
  })

  // Not a hook of every route: a GET would pay for it.
  app.addHook('onRoute', (route) => {
    if (route.method !== 'POST') return
    const others = route.preParsing ?? []
    route.preParsing = [answerExpectation, ...Array.isArray(others) ? others : [others]]
  })

  done()
}, { name: 'json-body' })
