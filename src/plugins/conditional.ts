import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { sha256 } from '../core/shared/digest.ts'
import { type Encoding, encodedEtag, matchingEtag, strongEtag } from '../http/etag.ts'
import { HttpProblem } from '../http/problem.ts'
import { isUnwanted } from '../http/revision.ts'
import { chooseEncoding, compressed } from '../http/send/compressed.ts'

/** Headers that describe a body, and go with it when the answer becomes 304 (RFC 9110 §15.4.5). */
const HEADERS_OF_BODY = ['content-type', 'content-length', 'content-range', 'content-encoding', 'content-disposition', 'accept-ranges']

/**
 * The ETag that the client has, by `If-None-Match` alone. `If-Modified-Since` is not answered with 304. Its steps are whole
 * seconds: an edit in the second of the last answer, or one that puts the time back, would stay unseen.
 */
function presentEtag (request: FastifyRequest, etag: string | undefined): string | undefined {
  const ifNoneMatch = request.headers['if-none-match']
  return ifNoneMatch === undefined || etag === undefined ? undefined : matchingEtag(ifNoneMatch, etag)
}

function send (payload: unknown, encoding: Encoding | undefined, etag: string | undefined, next: (error: Error | null, payload?: unknown) => void): void {
  const body = encoding === undefined ? payload : compressed(payload, encoding, etag)
  if (body instanceof Promise) body.then((bytes: unknown) => { next(null, bytes) }, next)
  else next(null, body)
}

interface ConditionalOptions {
  /**
   * How long shared caches may answer without asking, in seconds, and once more that long while they ask. 0: never. Only where
   * everybody sees the same: a cache does not know callers. Default 0.
   */
  readonly cacheSeconds?: number
}

/**
 * Revalidation for every GET and HEAD: a default `Cache-Control`, an ETag where the route gives none, 304 and 412. Also compression,
 * of POST too: each form of an answer has an ETag of its own, and what becomes a 304 needs no form.
 */
export const conditional = fp<ConditionalOptions>(function conditional (app, { cacheSeconds = 0 }, done) {
  const cached = cacheSeconds === 0 ? 'no-cache' : `public, max-age=0, s-maxage=${cacheSeconds}, stale-while-revalidate=${cacheSeconds}`

  app.addHook('onSend', (request, reply, payload, next) => {
    const status = reply.statusCode
    const isHead = request.method === 'HEAD'
    const isRead = isHead || request.method === 'GET'
    if (reply.getHeader('cache-control') === undefined) reply.header('cache-control', status >= 400 ? 'no-store' : isRead ? cached : 'no-cache')
    const encoding = chooseEncoding(request, reply, payload)
    if ((status !== 200 && status !== 206) || !isRead) {
      send(payload, encoding, undefined, next)
      return
    }

    let etag = reply.getHeader('etag') as string | undefined
    if (etag === undefined && reply.getHeader('cache-control') !== 'no-store' && (typeof payload === 'string' || Buffer.isBuffer(payload))) {
      etag = strongEtag(sha256(payload))
      reply.header('etag', etag)
    }
    if (etag !== undefined && isUnwanted(request, reply, etag)) {
      if (payload instanceof Readable) payload.destroy()
      next(new HttpProblem('precondition_failed'))
      return
    }
    if (encoding !== undefined && etag !== undefined) {
      etag = encodedEtag(etag, encoding)
      reply.header('etag', etag)
    }
    const present = presentEtag(request, etag)
    const fresh = present !== undefined
    if (fresh) {
      reply.code(304).header('etag', present)
      // V8 takes as long to remove what is not there.
      for (const name of HEADERS_OF_BODY) if (reply.hasHeader(name)) reply.removeHeader(name)
    }
    if (payload instanceof Readable && (fresh || isHead)) payload.destroy()

    // Fastify's HEAD routes run one more hook, which measures any payload except a stream, and reads that to its end.
    if (isHead && (fresh || payload instanceof Readable)) next(null, Readable.from([]))
    else if (fresh) next(null, null)
    else send(payload, encoding, etag, next)
  })

  done()
}, { name: 'conditional' })
