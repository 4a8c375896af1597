import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { SkillArchive } from '../../core/revisions/archive.ts'
import { isTextType, mediaType } from '../../core/read/media-type.ts'
import { fileSentence } from '../../core/revisions/refusal-sentences.ts'
import { ZIP_MEDIA_TYPE } from '../../core/revisions/zip.ts'
import { isTextKind } from '../../core/read/file-kind.ts'
import type { FileContent } from '../../core/read/file-content.ts'
import type { ServableFile } from '../../core/read/file-cache.ts'
import { matchesEtag, strongEtag } from '../etag.ts'
import { contentHeaders } from '../headers.ts'
import { HttpProblem } from '../problem.ts'
import { isUnwanted, type RevisionCondition } from '../revision.ts'
import { attachment } from './content-disposition.ts'
import { selectRange } from './range.ts'

/** What is sent, and how. */
export interface FileAnswer {
  /** Without parameters; text that is UTF-8 gets its charset. */
  readonly mediaType: string
  /** What the caller asked for. */
  readonly condition?: RevisionCondition | undefined
}

/**
 * The body for a file: its bytes from memory, or a stream when it is large; whole or the range asked for. Sets the
 * headers, as all functions of this file do.
 * @param path what the caller calls the file
 */
export function answerFile (
  request: FastifyRequest, reply: FastifyReply, file: ServableFile, path: string, condition?: RevisionCondition
): Buffer | Readable {
  if (file.kind === 'content') {
    return answerContent(
      request, reply, file.content, { mediaType: mediaType(path, isTextKind(file.content.kind)), condition }
    )
  }
  const { file: opened, digest, isUtf8 } = file
  try {
    return answerChunks(request, reply, {
      condition,
      mediaType: contentType(mediaType(path, isUtf8), isUtf8),
      size: Number(opened.stats.size),
      etag: digest === undefined ? undefined : strongEtag(digest),
      chunks: (start, end) => withSentences(opened.chunks(start, end, digest), path),
      close: () => { void opened.close() }
    })
  } catch (error) {
    void opened.close()
    throw error
  }
}

/** @param variant names the representation where one resource has several of the same bytes */
export function answerContent (
  request: FastifyRequest,
  reply: FastifyReply,
  { bytes, utf8, digest }: FileContent,
  { mediaType, condition }: FileAnswer,
  variant?: string
): Buffer {
  const etag = strongEtag(digest, variant)
  condition?.confirm(reply, etag)
  reply
    .headers(contentHeaders)
    .header('content-type', contentType(mediaType, utf8 !== undefined))
    .header('etag', etag)
    .header('accept-ranges', 'bytes')
  const range = chooseRange(request, reply, bytes.length, etag)
  return range === undefined ? bytes : bytes.subarray(range.start, range.end + 1)
}

/** @param name of the skill: the file is called `name`.zip */
export function answerArchive (
  request: FastifyRequest,
  reply: FastifyReply,
  archive: SkillArchive,
  name: string,
  etag: string,
  condition?: RevisionCondition
): Readable {
  return answerChunks(request, reply.header('content-disposition', attachment(`${name}.zip`)), {
    mediaType: ZIP_MEDIA_TYPE,
    size: archive.size,
    etag,
    condition,
    chunks: (start, end) => archive.chunks(start, end)
  })
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

function answerChunks (request: FastifyRequest, reply: FastifyReply, content: ChunkedContent): Readable {
  const { mediaType, size, etag, condition } = content
  condition?.confirm(reply, etag)
  reply
    .headers(contentHeaders)
    .header('content-type', mediaType)
    .header('accept-ranges', 'bytes')
  if (etag !== undefined) reply.header('etag', etag)
  const { start, end } = chooseRange(request, reply, size, etag) ?? { start: 0, end: size - 1 }
  reply.header('content-length', end - start + 1)
  const stream = Readable.from(content.chunks(start, end), { objectMode: false, highWaterMark: 1 })
  // Runs as well if the body is never read: for HEAD, a 304, or a client that has left.
  return stream.once('close', () => { content.close?.() })
}

/** A file that changes before its first byte is out gets an error of the domain as its answer. */
async function * withSentences (chunks: AsyncIterable<Buffer>, path: string): AsyncGenerator<Buffer> {
  try {
    yield * chunks
  } catch (error) {
    throw fileSentence(error, '', path)
  }
}

/** The bytes to send; undefined for all of them. Sets what a partial answer says of itself. */
function chooseRange (
  request: FastifyRequest, reply: FastifyReply, size: number, etag: string | undefined
): { readonly start: number, readonly end: number } | undefined {
  const { range, 'if-range': ifRange, 'if-none-match': ifNoneMatch } = request.headers
  if (range === undefined || request.method !== 'GET') return undefined
  // Neither a 412 nor a 304 has a range to check (RFC 9110 §13.2.2).
  if (etag !== undefined && isUnwanted(request, reply, etag)) return undefined
  if (ifNoneMatch !== undefined && etag !== undefined && matchesEtag(ifNoneMatch, etag)) return undefined
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

function contentType (mediaType: string, isUtf8: boolean): string {
  return isUtf8 && isTextType(mediaType) ? `${mediaType}; charset=utf-8` : mediaType
}
