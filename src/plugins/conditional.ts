import { Readable } from 'node:stream'
import compress from '@fastify/compress'
import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import { isTextType } from '../core/read/media-type.ts'
import { sha256 } from '../core/shared/digest.ts'
import { matchesEtag, strongEtag } from '../http/etag.ts'
import { addVary } from '../http/headers.ts'
import { HttpProblem } from '../http/problem.ts'
import { isUnwanted } from '../http/revision.ts'

/** Headers that describe a body, and go with it when the answer becomes 304 (RFC 9110 §15.4.5). */
const HEADERS_OF_BODY = ['content-type', 'content-length', 'content-range', 'content-disposition', 'accept-ranges']

/** Smallest body that is compressed, in bytes: less fits into one packet anyway. */
const MIN_COMPRESSED_BYTES = 1024

interface ConditionalOptions {
  /**
   * How long shared caches may answer without asking, and once more while they ask, in seconds. Only where everybody
   * sees the same.
   */
  readonly cacheSeconds: number
}

/** Revalidation for every GET and HEAD: `Cache-Control`, an ETag, 304 and 412. Compression for every answer. */
export const conditional = fp<ConditionalOptions>(async function conditional (app, { cacheSeconds }) {
  const cached = cacheSeconds === 0
    ? 'no-cache'
    : `public, max-age=0, s-maxage=${cacheSeconds}, stale-while-revalidate=${cacheSeconds}`

  app.addHook('onSend', (request, reply, payload, next) => {
    const { method, headers: { 'if-none-match': ifNoneMatch } } = request
    const { statusCode: status } = reply
    const isRead = method === 'GET' || method === 'HEAD'
    if (reply.getHeader('cache-control') === undefined) {
      reply.header('cache-control', status >= 400 ? 'no-store' : isRead ? cached : 'no-cache')
    }
    // Without this header the plugin also compresses what mime-db calls compressible: SVG and application/octet-stream.
    if (!isCompressible(String(reply.getHeader('content-type')))) request.headers['x-no-compression'] = 'true'
    else if (isLarge(reply, payload)) addVary(reply, 'accept-encoding')
    // Fastify's own hook for HEAD would read a stream to its end.
    if (method === 'HEAD' && payload instanceof Readable) {
      payload.destroy()
      payload = Readable.from([])
    }
    if (!isRead || (status !== 200 && status !== 206)) return next(null, payload)

    const etag = etagOf(reply, payload)
    if (etag === undefined) return next(null, payload)
    if (isUnwanted(request, reply, etag)) {
      discard(payload)
      return next(new HttpProblem('precondition_failed'))
    }
    // Not `If-Modified-Since`: its steps are whole seconds, and two edits can share one.
    if (ifNoneMatch === undefined || !matchesEtag(ifNoneMatch, etag)) return next(null, payload)
    discard(payload)
    // The form that the client has: caches compare the tag of a 304 with theirs.
    if (ifNoneMatch.includes(`W/${etag}`)) reply.header('etag', `W/${etag}`)
    reply.code(304)
    for (const name of HEADERS_OF_BODY) reply.removeHeader(name)
    // The hook for HEAD measures what is not a stream.
    next(null, method === 'HEAD' ? Readable.from([]) : null)
  })

  await app.register(compress, {
    globalDecompression: false,
    encodings: ['br', 'gzip'],
    threshold: MIN_COMPRESSED_BYTES,
    customTypes: isCompressible
  })

  // Compressed bytes may differ between replicas: their tag is the weak form of that of the content.
  app.addHook('onRoute', (route) => {
    route.onSend = [...[route.onSend ?? []].flat(), (_request, reply, payload, next) => {
      const etag = String(reply.getHeader('etag'))
      if (reply.hasHeader('content-encoding')) {
        if (etag.startsWith('"')) reply.header('etag', `W/${etag}`)
        // Ranges are ranges of the uncompressed bytes.
        reply.removeHeader('accept-ranges')
      }
      next(null, payload)
    }]
  })
}, { name: 'conditional' })

/** The ETag of the route, or that of the body. */
function etagOf (reply: FastifyReply, payload: unknown): string | undefined {
  const etag = reply.getHeader('etag')
  if (etag !== undefined) return String(etag)
  if (reply.getHeader('cache-control') === 'no-store' || !(typeof payload === 'string' || Buffer.isBuffer(payload))) {
    return undefined
  }
  const own = strongEtag(sha256(payload))
  reply.header('etag', own)
  return own
}

function isLarge (reply: FastifyReply, payload: unknown): boolean {
  // Of a part: a cache needs to know whether the whole is compressed.
  if (payload instanceof Readable || reply.statusCode === 206) return true
  return typeof payload === 'string' || Buffer.isBuffer(payload)
    ? Buffer.byteLength(payload) >= MIN_COMPRESSED_BYTES
    : false
}

/** Not images, and not events, which have to go out one by one. */
function isCompressible (contentType: string): boolean {
  const [type = ''] = contentType.toLowerCase().split(';', 1)
  return isTextType(type.trim()) && !type.startsWith('image/') && type.trim() !== 'text/event-stream'
}

function discard (payload: unknown): void {
  if (payload instanceof Readable) payload.destroy()
}
