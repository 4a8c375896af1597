import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { sha256 } from '../core/digest.ts'
import { matchesEtag, matchesStrongly, strongEtag } from '../http/etag.ts'
import { REVISION_HEADER } from '../http/headers.ts'
import { HttpProblem } from '../http/problem.ts'

/** Headers that describe a body, and go with it when the answer becomes 304 (RFC 9110 §15.4.5). */
const HEADERS_OF_BODY = ['content-type', 'content-length', 'content-range', 'content-encoding', 'content-disposition', 'accept-ranges']

/**
 * By `If-None-Match` alone. `If-Modified-Since` is not answered with 304: its steps are whole seconds, and an edit in
 * the second of the last answer, or one that puts the time back, would stay unseen.
 */
function isFresh (request: FastifyRequest, etag: string | undefined): boolean {
  const ifNoneMatch = request.headers['if-none-match']
  return ifNoneMatch !== undefined && etag !== undefined && matchesEtag(ifNoneMatch, etag)
}

/** A route that knows revisions has made the same comparison, and has put the revision into the answer. */
function isUnwanted (request: FastifyRequest, reply: FastifyReply, etag: string): boolean {
  const ifMatch = request.headers['if-match']
  if (ifMatch === undefined) return false
  const revision = reply.getHeader(REVISION_HEADER)
  return !matchesStrongly(ifMatch, etag, ...revision === undefined ? [] : [`"${String(revision)}"`])
}

function isStream (payload: unknown): payload is Readable {
  return payload instanceof Readable
}

/** Revalidation for every GET and HEAD: a default `Cache-Control`, an ETag where the route gives none, 304 and 412. */
export const conditional = fp(function conditional (app, _options, done) {
  app.addHook('onSend', (request, reply, payload, next) => {
    const status = reply.statusCode
    if (reply.getHeader('cache-control') === undefined) reply.header('cache-control', status < 400 ? 'no-cache' : 'no-store')
    const isHead = request.method === 'HEAD'
    if ((status !== 200 && status !== 206) || !(isHead || request.method === 'GET')) {
      next(null, payload)
      return
    }

    let etag = reply.getHeader('etag') as string | undefined
    if (etag === undefined && (typeof payload === 'string' || Buffer.isBuffer(payload))) {
      etag = strongEtag(sha256(payload))
      reply.header('etag', etag)
    }
    if (etag !== undefined && isUnwanted(request, reply, etag)) {
      if (isStream(payload)) payload.destroy()
      next(new HttpProblem('precondition_failed'))
      return
    }
    const fresh = isFresh(request, etag)
    if (fresh) {
      reply.code(304)
      for (const name of HEADERS_OF_BODY) reply.removeHeader(name)
    }
    if (isStream(payload) && (fresh || isHead)) payload.destroy()

    // Fastify's HEAD routes run one more hook, which measures any payload except a stream, and reads that to its end.
    if (isHead && (fresh || isStream(payload))) next(null, Readable.from([]))
    else next(null, fresh ? null : payload)
  })

  done()
}, { name: 'conditional', fastify: '5.x' })
