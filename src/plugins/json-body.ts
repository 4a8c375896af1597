import fp from 'fastify-plugin'
import { jsonDepthExceeds } from '../core/json.ts'
import { MAX_BODY_BYTES } from '../http/limits.ts'
import { MAX_JSON_DEPTH } from '../tools/limits.ts'
import { decodeUtf8 } from '../core/text.ts'
import { HttpProblem } from '../http/problem.ts'

const MEDIA_TYPE = 'application/json'
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

/** The one body that the service takes: `application/json` in UTF-8, uncompressed. Everything else is 415. */
export const jsonBody = fp(function jsonBody (app, _options, done) {
  app.removeAllContentTypeParsers()

  app.addContentTypeParser(MEDIA_TYPE, { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES }, (request, body: Buffer, next) => {
    const { 'content-type': contentType, 'content-encoding': encoding } = request.headers
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
      next(new HttpProblem('unsupported_media_type', 'Send the body without Content-Encoding'))
      return
    }
    if (contentType !== undefined && hasForeignCharset(contentType)) {
      next(new HttpProblem('unsupported_media_type', 'Send the body in UTF-8'))
      return
    }
    next(null, parseBody(body))
  })

  done()
}, { name: 'json-body', fastify: '5.x' })
