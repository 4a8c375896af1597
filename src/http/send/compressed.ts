import { pipeline, Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { codecOf, isCompressible, preferredEncoding } from '../encoding.ts'
import type { Encoding } from '../etag.ts'
import { addVary } from '../headers.ts'

/**
 * Compressed answers, for every route. A page of 300 catalog entries has 4 % of its size. Compressed forms of what has an ETag
 * are kept. @fastify/compress 9.2 compresses each answer again as a stream without length, ranges and 304 included. It
 * names `Vary` in compressed answers only, and knows no ETags.
 */

/** Smallest body that is compressed, in bytes: less fits into one packet anyway. */
const MIN_BYTES = 1024

/** All compressed forms together, in bytes. */
const MAX_KEPT_BYTES = 16_777_216
/** The largest compressed form that is kept, in bytes. */
const MAX_KEPT_FORM_BYTES = 2_097_152

const kept = new LRUCache<string, Buffer, Body>({
  maxSize: MAX_KEPT_BYTES,
  maxEntrySize: MAX_KEPT_FORM_BYTES,
  sizeCalculation: (form) => form.length,
  // A form that loses its place while it is made still has requests that wait for it.
  ignoreFetchAbort: true,
  // Requests that come meanwhile wait for the same result.
  fetchMethod: async (_etag, _stale, { context: { encoding, payload } }) => withoutRest(await codecOf(encoding).compress(payload))
})

/** The same bytes without the rest of zlib's buffer: a form of 340 bytes is the beginning of 16 KB, and would keep them. */
function withoutRest (form: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(form.length)
  form.copy(copy)
  return copy
}

/** Of compressed streams: the length of the bytes that they are made from. Their own is not known before their end. */
const lengths = new WeakMap<FastifyReply, number>()

interface Body {
  readonly encoding: Encoding
  readonly payload: Buffer | string
}

/** The encoding in which to send an answer, undefined for its bytes as they are. Says in `Vary` that the header counts. */
export function chooseEncoding (request: FastifyRequest, reply: FastifyReply, payload: unknown): Encoding | undefined {
  const type = reply.getHeader('content-type')
  if (typeof type !== 'string' || !isLarge(payload, reply) || !isCompressible(type)) return undefined
  // A part names what the whole would name (RFC 9110 §15.3.7).
  addVary(reply, 'Accept-Encoding')
  if (reply.statusCode === 206) return undefined
  const { 'accept-encoding': accepted } = request.headers
  const encoding = typeof accepted === 'string' ? preferredEncoding(accepted) : undefined
  if (encoding === undefined) return undefined
  reply.header('content-encoding', encoding)
  if (payload instanceof Readable) lengths.set(reply, lengthOf(reply))
  // Ranges are ranges of the uncompressed bytes.
  for (const name of ['content-length', 'accept-ranges']) reply.removeHeader(name)
  return encoding
}

/** Bytes of an answer that is a stream, before it is compressed; 0 where nobody knows. */
export function lengthOf (reply: FastifyReply): number {
  return lengths.get(reply) ?? Number(reply.getHeader('content-length') ?? 0)
}

/** Of a part: whether the whole is. */
function isLarge (payload: unknown, reply: FastifyReply): boolean {
  if (reply.statusCode === 206) return Number(String(reply.getHeader('content-range')).split('/')[1]) >= MIN_BYTES
  if (typeof payload === 'string') return payload.length >= MIN_BYTES || Buffer.byteLength(payload) >= MIN_BYTES
  if (Buffer.isBuffer(payload)) return payload.length >= MIN_BYTES
  return payload instanceof Readable && lengthOf(reply) >= MIN_BYTES
}

/** The payload in this encoding; at once when that form is kept. */
export function compressed (payload: unknown, encoding: Encoding, etag: string | undefined): unknown {
  if (payload instanceof Readable) {
    const form = codecOf(encoding).stream()
    // The error of either stream destroys the other; Fastify sees it in the one that it sends.
    pipeline(payload, form, () => {})
    return form
  }
  if (typeof payload !== 'string' && !Buffer.isBuffer(payload)) return payload
  if (etag === undefined) return codecOf(encoding).compress(payload)
  return kept.get(etag) ?? kept.fetch(etag, { context: { encoding, payload } })
}
