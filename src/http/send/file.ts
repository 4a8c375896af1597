import { isUtf8 } from 'node:buffer'
import { Readable } from 'node:stream'
import contentDisposition from 'content-disposition'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isTextType, mediaType } from '../../core/read/media-type.ts'
import { fileSentence } from '../../core/revisions/refusal-sentences.ts'
import { ZIP_MEDIA_TYPE, type ZipArchive } from '../../archive/zip-writer.ts'
import { isTextKind } from '../../core/read/file-kind.ts'
import type { FileContent } from '../../core/read/file-content.ts'
import type { ServableFile } from '../../core/read/file-cache.ts'
import { contentHeaders, strongEtag } from '../headers.ts'
import { HttpProblem } from '../problem.ts'

/** Request headers that need the ETag. */
const CONDITIONS = ['if-match', 'if-none-match', 'if-range'] as const

/** A single range. Lists are ignored, as the RFC allows, so that no request multiplies the bytes (CVE-2025-62727). */
const SINGLE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i

/** A representation that can be sent whole or in part. */
interface Bytes {
  readonly contentType: string
  readonly size: number
  /** Undefined if the digest is not known. */
  readonly etag: string | undefined
  /** Reads the bytes from `start` to `end`, both included. */
  readonly read: (start: number, end: number) => Buffer | Readable
}

/** Returns the body for a file, whole or the requested range, and sets the headers. */
export async function answerFile (
  request: FastifyRequest, reply: FastifyReply, file: ServableFile, path: string
): Promise<Buffer | Readable> {
  if (file.kind === 'content') {
    return answerContent(request, reply, file.content, mediaType(path, isTextKind(file.content.kind)))
  }
  const { size, isUtf8, fileKind } = file
  const close = (): void => { void file.close() }
  try {
    // A conditional request needs the digest, even if a large file has to be read for it.
    const isConditional = CONDITIONS.some((name) => request.headers[name] !== undefined)
    const digest = isConditional ? await file.readDigest() : file.digest
    return answerBytes(request, reply, {
      contentType: contentType(mediaType(path, isTextKind(fileKind)), isUtf8),
      size,
      etag: digest && strongEtag(digest),
      // Also runs if the body is never read: for HEAD, a 304, or a client that has disconnected.
      read: (start, end) => streamOf(withSentences(file.chunks(start, end), path)).once('close', close)
    })
  } catch (error) {
    close()
    throw error
  }
}

/** @param variant names the representation where one resource has several of the same bytes */
export function answerContent (
  request: FastifyRequest, reply: FastifyReply, { bytes, digest }: FileContent, type: string, variant?: string
): Buffer | Readable {
  return answerBytes(request, reply, {
    contentType: contentType(type, isUtf8(bytes)),
    size: bytes.length,
    etag: strongEtag(digest, variant),
    read: (start, end) => bytes.subarray(start, end + 1)
  })
}

export function answerArchive (
  request: FastifyRequest, reply: FastifyReply, archive: ZipArchive, name: string, etag: string
): Buffer | Readable {
  reply.header('content-disposition', contentDisposition(`${name}.zip`))
  return answerBytes(request, reply, {
    contentType: ZIP_MEDIA_TYPE, size: archive.size, etag, read: (start, end) => streamOf(archive.chunks(start, end))
  })
}

function answerBytes (request: FastifyRequest, reply: FastifyReply, { contentType, size, etag, read }: Bytes) {
  const range = rangeOf(request, size, etag)
  const { start, end } = range ?? { start: 0, end: size - 1 }
  if (range !== undefined && start >= size) {
    throw new HttpProblem('range_not_satisfiable', undefined, { 'content-range': `bytes */${size}` })
  }
  reply.headers(contentHeaders).header('content-type', contentType).header('accept-ranges', 'bytes')
  reply.header('content-length', end - start + 1)
  if (etag !== undefined) reply.header('etag', etag)
  if (range !== undefined) reply.code(206).header('content-range', `bytes ${start}-${end}/${size}`)
  return read(start, end)
}

/** Returns the requested range (RFC 9110 §14); undefined: all bytes. `If-Range` never matches weak tags or dates. */
function rangeOf ({ method, headers }: FastifyRequest, size: number, etag: string | undefined) {
  const { range = '', 'if-range': ifRange, 'if-none-match': ifNoneMatch } = headers
  const [, first = '', last = ''] = SINGLE_RANGE.exec(range) ?? []
  if (method !== 'GET' || first + last === '' || (ifRange !== undefined && ifRange !== etag)) return undefined
  // The answer may become a 304, which has no range; ignoring `Range` is always allowed.
  if (ifNoneMatch !== undefined) return undefined
  if (first === '') return { start: Math.max(0, size - Number(last)), end: size - 1 }
  if (last !== '' && Number(last) < Number(first)) return undefined
  return { start: Number(first), end: last === '' ? size - 1 : Math.min(Number(last), size - 1) }
}

function streamOf (chunks: AsyncIterable<Buffer>): Readable {
  return Readable.from(chunks, { objectMode: false, highWaterMark: 1 })
}

/** Translates read errors: a file that changes before its first byte is sent gets an error answer. */
async function * withSentences (chunks: AsyncIterable<Buffer>, path: string): AsyncGenerator<Buffer> {
  try {
    yield * chunks
  } catch (error) {
    throw fileSentence(error, '', path)
  }
}

function contentType (type: string, isUtf8: boolean): string {
  return isUtf8 && isTextType(type) ? `${type}; charset=utf-8` : type
}
