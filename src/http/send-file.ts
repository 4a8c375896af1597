import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ServableFile } from '../core/content/file-store.ts'
import { fileError } from '../core/errors.ts'
import type { FileContent } from '../core/content/file-content.ts'
import { isTextType } from '../core/content/media-type.ts'
import type { Awaitable } from '../core/async.ts'
import { RefusedError } from '../core/disk/open-inside.ts'
import { matchesEtag, strongEtag } from './etag.ts'
import { HttpProblem } from './problem.ts'
import { selectRange } from './range.ts'
import { contentHeaders } from './headers.ts'
import { stampRevision } from './revision.ts'

/** The headers that describe one file, made once for each state of it. */
interface FileHeaders {
  readonly mediaType: string
  readonly variant: string | undefined
  readonly type: string
  readonly etag: string
  readonly modified: string
}

type StreamedFile = Extract<ServableFile, { kind: 'stream' }>

const headersOf = new WeakMap<FileContent, FileHeaders>()

/**
 * Sends the bytes of a file: from memory, or streamed when it is large, whole or the range asked for.
 * @param path what the caller calls the file
 */
export function sendFile (
  request: FastifyRequest, reply: FastifyReply, file: ServableFile, mediaType: string, path: string
): Awaitable<FastifyReply> {
  switch (file.kind) {
    case 'content': return sendContent(request, reply, file.content, mediaType)
    case 'stream': return sendStream(request, reply, file, mediaType, path)
  }
}

/**
 * @param mediaType without parameters; text that is UTF-8 gets its charset
 * @param variant names the representation where one resource has several of the same bytes
 */
export function sendContent (
  request: FastifyRequest, reply: FastifyReply, content: FileContent, mediaType: string, variant?: string
): FastifyReply {
  const { bytes } = content
  const headers = describe(content, mediaType, variant)
  stampRevision(request, reply, content.revision, headers.etag)
  reply
    .headers(contentHeaders)
    .header('content-type', headers.type)
    .header('etag', headers.etag)
    .header('last-modified', headers.modified)
    .header('accept-ranges', 'bytes')
  const range = chooseRange(request, reply, bytes.length, headers.etag)
  return reply.send(range === undefined ? bytes : bytes.subarray(range.start, range.end + 1))
}

async function sendStream (
  request: FastifyRequest, reply: FastifyReply, { file, digest, revision }: StreamedFile, mediaType: string, path: string
): Promise<FastifyReply> {
  try {
    const { size, mtime } = file.stats
    reply.header('last-modified', mtime.toUTCString())
    const chunks = (start: number, end: number) => explained(file.chunks(start, end), path)
    const close = () => { void file.close() }
    return sendChunks(request, reply, { mediaType, size: Number(size), etag: strongEtag(digest), revision, chunks, close })
  } catch (error) {
    await file.close()
    throw error
  }
}

/** A file that changes before its first byte is out gets an answer, and that is one of the domain. */
async function * explained (chunks: AsyncIterable<Buffer>, path: string): AsyncGenerator<Buffer> {
  try {
    yield * chunks
  } catch (error) {
    throw error instanceof RefusedError ? fileError.ioError(path, error) : error
  }
}

/** Bytes that are read while they are sent. */
export interface ChunkedContent {
  /** Without parameters. */
  readonly mediaType: string
  /** In bytes. */
  readonly size: number
  readonly etag: string
  /** Of the skill; undefined when the bytes belong to none. */
  readonly revision: string | undefined
  /** From `start` to `end`, both included. */
  chunks (start: number, end: number): AsyncIterable<Buffer>
  /** Called once the answer has been sent, or will not be. */
  close? (): void
}

export function sendChunks (request: FastifyRequest, reply: FastifyReply, content: ChunkedContent): FastifyReply {
  const { mediaType, size, etag, revision } = content
  stampRevision(request, reply, revision, etag)
  reply
    .headers(contentHeaders)
    .header('content-type', mediaType)
    .header('etag', etag)
    .header('accept-ranges', 'bytes')
  const { start, end } = chooseRange(request, reply, size, etag) ?? { start: 0, end: size - 1 }
  const stream = Readable.from(content.chunks(start, end), { objectMode: false, highWaterMark: 1 })
  // Also when nothing is read of it: a 304, a HEAD, a client that went away.
  stream.once('close', () => { content.close?.() })
  return reply.header('content-length', end - start + 1).send(stream)
}

/** The bytes to send; undefined for all of them. Sets what a partial answer says of itself. */
function chooseRange (
  request: FastifyRequest, reply: FastifyReply, size: number, etag: string
): { readonly start: number, readonly end: number } | undefined {
  const { range, 'if-range': ifRange, 'if-none-match': ifNoneMatch } = request.headers
  if (range === undefined || request.method !== 'GET') return undefined
  // What becomes a 304 has no range that could be wrong (RFC 9110 §13.2.2).
  if (ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag)) return undefined
  const selection = selectRange(range, typeof ifRange === 'string' ? ifRange : undefined, { size, etag })
  switch (selection.kind) {
    case 'full': return undefined
    case 'partial':
      reply.code(206).header('content-range', `bytes ${selection.start}-${selection.end}/${size}`)
      return selection
    case 'unsatisfiable':
      throw new HttpProblem('range_not_satisfiable', undefined, { 'content-range': `bytes */${size}` })
  }
}

function describe (content: FileContent, mediaType: string, variant: string | undefined): FileHeaders {
  const known = headersOf.get(content)
  if (known?.mediaType === mediaType && known.variant === variant) return known
  const hasCharset = isTextType(mediaType) && content.utf8 !== undefined
  const headers = {
    mediaType,
    variant,
    type: hasCharset ? `${mediaType}; charset=utf-8` : mediaType,
    etag: strongEtag(content.digest, variant),
    modified: content.modified.toUTCString()
  }
  headersOf.set(content, headers)
  return headers
}
