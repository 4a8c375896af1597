import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { decodeUtf8 } from '../core/read/decode.ts'
import { isDeeperThan } from '../core/shared/json.ts'
import { HttpProblem } from '../http/problem.ts'
import { MAX_JSON_DEPTH } from '../tools/limits.ts'

/** Returns the problem of a request with a content coding that the service cannot read. */
export function problemOfCoding ({ headers }: FastifyRequest): HttpProblem | undefined {
  const { 'content-encoding': encoding = 'identity' } = headers
  if (encoding.toLowerCase() === 'identity') return undefined
  return new HttpProblem('unsupported_media_type', 'Send the body without Content-Encoding')
}

/** Parses JSON like Fastify, but refuses deep nesting and invalid UTF-8, which Fastify would read as U+FFFD. */
export const jsonBody = fp(function jsonBody (app, _options, done) {
  const parse = app.getDefaultJsonParser('ignore', 'ignore')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, bytes, next) => {
    const text = decodeUtf8(bytes)
    const problem = problemOfCoding(request)
    if (problem !== undefined) return next(problem)
    if (text === undefined) return next(new HttpProblem('invalid_json', 'The body is not valid UTF-8'))
    if (text === '') return next(new HttpProblem('invalid_json', 'The body is empty; send JSON, or no Content-Type'))
    void parse(request, text, (error, value) => {
      const isTooDeep = error === null && isDeeperThan(value, MAX_JSON_DEPTH)
      const detail = `The body nests arrays and objects deeper than ${MAX_JSON_DEPTH} levels`
      next(isTooDeep ? new HttpProblem('json_too_deep', detail) : error, value)
    })
  })
  done()
}, { name: 'json-body' })
