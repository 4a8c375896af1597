import { Readable } from 'node:stream'
import compress from '@fastify/compress'
import type { FastifyReply, FastifyRequest, onSendHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { isTextType } from '../core/read/media-type.ts'
import { sha256 } from '../core/shared/digest.ts'
import { RevisionChangedError } from '../core/shared/errors.ts'
import { addVary, matchesEtag, REVISION_HEADER, strongEtag } from '../http/headers.ts'
import { HttpProblem } from '../http/problem.ts'
import type { Shutdown } from '../http/shutdown.ts'

interface ConditionalOptions {
  /** How long shared caches may answer without revalidation, and then as long again while they revalidate. */
  readonly cacheSeconds: number
  /** Whether answers depend on the caller: then no shared cache may keep them. */
  readonly hasAccess: boolean
  readonly shutdown: Pick<Shutdown, 'isStopping'>
}

/** Headers that describe a body; a 304 must not have them (RFC 9110 §15.4.5). */
const HEADERS_OF_BODY = ['content-type', 'content-length', 'content-range', 'content-disposition', 'accept-ranges']

const MIN_COMPRESSED_BYTES = 1_024

/** Answers conditional GET and HEAD (`Cache-Control`, ETag, 304, 412), compresses, and closes connections at a stop. */
export const conditional = fp<ConditionalOptions>(async function conditional (app, options) {
  const { cacheSeconds, hasAccess, shutdown } = options
  const cached = cacheSeconds === 0 || hasAccess
    ? 'no-cache'
    : `public, max-age=0, s-maxage=${cacheSeconds}, stale-while-revalidate=${cacheSeconds}`

  app.addHook('onSend', (request, reply, payload, next) => {
    const { method, headers } = request
    const { statusCode: status } = reply
    const isRead = method === 'GET' || method === 'HEAD'
    if (shutdown.isStopping) reply.header('connection', 'close')
    if (!reply.hasHeader('cache-control')) {
      reply.header('cache-control', status >= 400 ? 'no-store' : isRead ? cached : 'no-cache')
    }
    const revision = request.pinnedView?.onlyRevision
    if (revision !== undefined && status < 400) reply.header(REVISION_HEADER, revision)
    const isVarying = (status === 206 || !isShort(payload)) && isCompressible(String(reply.getHeader('content-type')))
    if (isVarying) addVary(reply, 'accept-encoding')
    // Without this header the plugin also compresses what mime-db calls compressible: SVG and application/octet-stream.
    if (!isVarying || headers['accept-encoding'] === undefined) headers['x-no-compression'] = 'true'
    if (!isRead || (status !== 200 && status !== 206)) return next(null, payload)

    const etag = etagOf(reply, payload)
    const problem = preconditionProblem(request, reply, etag)
    const { 'if-none-match': ifNoneMatch } = headers
    const isKnown = etag !== undefined && ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag)
    if (payload instanceof Readable && (problem !== undefined || isKnown || method === 'HEAD')) payload.destroy()
    if (problem !== undefined) return next(problem)
    if (isKnown) {
      // The form of the ETag that the client has, since caches compare the ETag of a 304 with theirs.
      if (ifNoneMatch.includes(`W/${etag}`)) reply.header('etag', `W/${etag}`)
      reply.code(304)
      for (const name of HEADERS_OF_BODY) reply.removeHeader(name)
      headers['x-no-compression'] = 'true'
    }
    if (method !== 'HEAD' || (!isKnown && isShort(payload))) return next(null, isKnown ? null : payload)
    // An empty stream gets the headers of compression without its work, and Fastify's own hook reads it to its end.
    if (!isKnown && hasLength(payload)) reply.header('content-length', Buffer.byteLength(payload))
    next(null, Readable.from([]))
  })

  await app.register(compress, {
    globalDecompression: false, encodings: ['br', 'gzip'], threshold: MIN_COMPRESSED_BYTES, customTypes: isCompressible
  })
  app.addHook('onRoute', (route) => {
    const hooks = [route.onSend ?? []].flat()
    const compressBody = hooks.splice(-1).map(weaklyTagged)
    // The hook before it is Fastify's, which drops the body of a HEAD: compression has to set its headers first.
    const dropBody = route.method === 'HEAD' ? hooks.splice(-1) : []
    route.onSend = [...hooks, ...compressBody, ...dropBody]
  })
}, { name: 'conditional' })

/** Runs the hook of @fastify/compress where compression is allowed, and makes the ETag of compressed bytes weak. */
function weaklyTagged (compressBody: onSendHookHandler): onSendHookHandler {
  return function (request, reply, payload, next) {
    if (request.headers['x-no-compression'] !== undefined) return next(null, payload)
    compressBody.call(this, request, reply, payload, (error?: Error | null, compressed?: unknown) => {
      if (reply.hasHeader('content-encoding')) {
        const etag = String(reply.getHeader('etag'))
        if (etag.startsWith('"')) reply.header('etag', `W/${etag}`)
        // Ranges refer to the uncompressed bytes.
        reply.removeHeader('accept-ranges')
      }
      if (error) next(error)
      else next(null, compressed)
    })
  }
}

/** Returns the ETag that the route has set, else that of the body. */
function etagOf (reply: FastifyReply, payload: unknown): string | undefined {
  if (!reply.hasHeader('etag') && reply.getHeader('cache-control') !== 'no-store' && hasLength(payload)) {
    reply.header('etag', strongEtag(sha256(payload)))
  }
  return reply.getHeader('etag')?.toString()
}

/** Returns the problem if `If-Match` matches neither the ETag nor the revision of the answer (RFC 9110 §13.1.1). */
function preconditionProblem ({ headers }: FastifyRequest, reply: FastifyReply, etag: string | undefined) {
  const { 'if-match': ifMatch } = headers
  if (ifMatch === undefined) return undefined
  const revision = reply.getHeader(REVISION_HEADER)?.toString()
  const tags = [etag ?? [], revision === undefined ? [] : `"${revision}"`].flat()
  if (tags.length === 0 || matchesEtag(ifMatch, ...tags)) return undefined
  return revision === undefined ? new HttpProblem('precondition_failed') : new RevisionChangedError(revision)
}

function hasLength (payload: unknown): payload is string | Buffer {
  return typeof payload === 'string' || Buffer.isBuffer(payload)
}

function isShort (payload: unknown): boolean {
  return hasLength(payload) && Buffer.byteLength(payload) < MIN_COMPRESSED_BYTES
}

/** Whether to compress a type: not images, and not event streams, whose events must be sent one by one. */
function isCompressible (contentType: string): boolean {
  const [type = ''] = contentType.toLowerCase().split(';', 1)
  return isTextType(type.trim()) && !type.startsWith('image/') && type.trim() !== 'text/event-stream'
}
