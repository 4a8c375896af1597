import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { fileSentence } from '../../core/revisions/refusal-sentences.ts'
import { isTextType, mediaType } from '../../core/read/media-type.ts'
import { isTextKind } from '../../core/read/file-kind.ts'
import type { FileContent } from '../../core/read/file-content.ts'
import type { ServableFile } from '../../core/read/file-cache.ts'
import { matchingEtag, strongEtag } from '../etag.ts'
import { contentHeaders } from '../headers.ts'
import { HttpProblem } from '../problem.ts'
import { selectRange } from './range.ts'
import { isUnwanted, type RevisionCondition } from '../revision.ts'

/** What is sent, and how. */
export interface FileAnswer {
  /** Without parameters; text that is UTF-8 gets its charset. */
  readonly mediaType: string
  /** What the caller asked for. */
  readonly condition?: RevisionCondition | undefined
}

/** The headers that describe one file, made once for each state of it. */
interface FileHeaders {
  readonly mediaType: string
  readonly variant: string | undefined
  readonly type: string
  readonly etag: string
}

type StreamedFile = Extract<ServableFile, { kind: 'stream' }>

const headersOf = new WeakMap<FileContent, FileHeaders>()

/**
 * The body for a file: its bytes from memory, or a stream when it is large; whole or the range asked for. Sets the headers, as all
 * of these do.
 * @param path what the caller calls the file
 */
export function answerFile (request: FastifyRequest, reply: FastifyReply, file: ServableFile, path: string, condition?: RevisionCondition): Buffer | Readable {
  switch (file.kind) {
    case 'content': {
      const type = mediaType(path, isTextKind(file.content.kind))
      return answerContent(request, reply, file.content, { mediaType: type, condition })
    }
    case 'stream': return answerStream(request, reply, file, path, { mediaType: mediaType(path, file.isUtf8), condition })
  }
}

/** @param variant names the representation where one resource has several of the same bytes */
export function answerContent (
  request: FastifyRequest, reply: FastifyReply, content: FileContent, { mediaType, condition }: FileAnswer, variant?: string
): Buffer {
  const { bytes } = content
  const { type, etag } = describe(content, mediaType, variant)
  condition?.confirm(reply, etag)
  reply
    .headers(contentHeaders)
    .header('content-type', type)
    .header('etag', etag)
    .header('accept-ranges', 'bytes')
  const range = chooseRange(request, reply, bytes.length, etag)
  return range === undefined ? bytes : bytes.subarray(range.start, range.end + 1)
}

function answerStream (request: FastifyRequest, reply: FastifyReply, { file, digest, isUtf8 }: StreamedFile, path: string, answer: FileAnswer): Readable {
  try {
    return answerChunks(request, reply, {
      ...answer,
      mediaType: contentType(answer.mediaType, isUtf8),
      size: Number(file.stats.size),
      etag: digest === undefined ? undefined : strongEtag(digest),
      chunks: (start, end) => withSentences(file.chunks(start, end, digest), path),
      close: () => { void file.close() }
    })
  } catch (error) {
    void file.close()
    throw error
  }
}

/** A file that changes before its first byte is out gets an error of the domain as its answer. */
async function * withSentences (chunks: AsyncIterable<Buffer>, path: string): AsyncGenerator<Buffer> {
  try {
    yield * chunks
  } catch (error) {
    throw fileSentence(error, '', path)
  }
}

/** Bytes that are read while they are sent. */
interface ChunkedContent extends FileAnswer {
  /** In bytes. */
  readonly size: number
  /** Undefined when nobody has read all bytes. */
  readonly etag: string | undefined
  /** From `start` to `end`, both included. */
  chunks (start: number, end: number): AsyncIterable<Buffer>
  /** Called once the answer has been sent, or will not be. */
  close? (): void
}

export function answerChunks (request: FastifyRequest, reply: FastifyReply, content: ChunkedContent): Readable {
  const { mediaType, size, etag, condition } = content
  condition?.confirm(reply, etag)
  reply
    .headers(contentHeaders)
    .header('content-type', mediaType)
    .header('accept-ranges', 'bytes')
  if (etag !== undefined) reply.header('etag', etag)
  const { start, end } = chooseRange(request, reply, size, etag) ?? { start: 0, end: size - 1 }
  const stream = Readable.from(content.chunks(start, end), { objectMode: false, highWaterMark: 1 })
  // Runs as well if the body is never read: for a 304, a HEAD, or a client that has left.
  stream.once('close', () => { content.close?.() })
  reply.header('content-length', end - start + 1)
  return stream
}

/** The bytes to send; undefined for all of them. Sets what a partial answer says of itself. */
function chooseRange (
  request: FastifyRequest, reply: FastifyReply, size: number, etag: string | undefined
): { readonly start: number, readonly end: number } | undefined {
  const { range, 'if-range': ifRange, 'if-none-match': ifNoneMatch } = request.headers
  if (range === undefined || request.method !== 'GET') return undefined
  // Neither a 412 nor a 304 has a range to check (RFC 9110 §13.2.2).
  if (etag !== undefined && isUnwanted(request, reply, etag)) return undefined
  if (ifNoneMatch !== undefined && etag !== undefined && matchingEtag(ifNoneMatch, etag) !== undefined) return undefined
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
  const headers = {
    mediaType,
    variant,
    type: contentType(mediaType, content.utf8 !== undefined),
    etag: strongEtag(content.digest, variant)
  }
  headersOf.set(content, headers)
  return headers
}

function contentType (mediaType: string, isUtf8: boolean): string {
  return isUtf8 && isTextType(mediaType) ? `${mediaType}; charset=utf-8` : mediaType
}
