import { createHash, type Hash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { isJsonObject, type JsonObject } from '../../core/shared/json.ts'
import { connectionError, SourceError } from '../source-error.ts'
import type { HttpAnswer } from './http-client.ts'

interface SavedBody {
  /** Hexadecimal digits. */
  readonly sha256: string
  /** Bytes. */
  readonly size: number
}

export async function readBody ({ body }: HttpAnswer, limit: number): Promise<Buffer> {
  return await buffer(bytesOf(body, limit))
}

/** Writes a body into a new file, as it was sent. */
export async function saveBody ({ headers, body }: HttpAnswer, path: string, limit: number): Promise<SavedBody> {
  // A body that is too large is refused before it is read, since its bytes may never come.
  if (Number(headers['content-length'] ?? 0) <= limit) return await save(body, path, limit)
  body.destroy()
  throw tooLargeError(limit)
}

/** Decodes a saved body that was sent as gzip, as some hosts do unasked. Returns undefined if it has no coding. */
export async function decodeFile (
  { headers }: HttpAnswer, path: string, limit: number
): Promise<SavedBody | undefined> {
  const coding = headers['content-encoding']?.trim().toLowerCase() ?? ''
  if (coding === '' || coding === 'identity') return undefined
  if (coding !== 'gzip') throw new SourceError('bad_answer', 'the host sends an unknown content coding')
  const decoded = `${path}.decoded`
  try {
    const saveDecoded = async (bytes: AsyncIterable<Buffer>) => await save(bytes, decoded, limit)
    const saved = await pipeline(createReadStream(path), createGunzip(), saveDecoded)
    await rename(decoded, path)
    return saved
  } catch (error) {
    throw connectionError(error)
  }
}

async function save (bytes: AsyncIterable<Buffer>, path: string, limit: number): Promise<SavedBody> {
  const hash = createHash('sha256')
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600 })
  try {
    await pipeline(bytesOf(bytes, limit, hash), file)
  } catch (error) {
    await rm(path, { force: true })
    throw error
  }
  return { sha256: hash.digest('hex'), size: file.bytesWritten }
}

async function * bytesOf (body: AsyncIterable<Buffer>, limit: number, hash?: Hash): AsyncGenerator<Buffer> {
  let size = 0
  try {
    for await (const chunk of body) {
      size += chunk.length
      if (size > limit) throw tooLargeError(limit)
      hash?.update(chunk)
      yield chunk
    }
  } catch (error) {
    throw connectionError(error)
  }
}

function tooLargeError (limit: number): SourceError {
  return new SourceError('too_large', `the host sends more than ${limit} bytes`)
}

/** Parses a JSON object that a host sent. @param what names it in the error */
export function parseObject (text: string, what: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text)
    if (isJsonObject(value)) return value
  } catch {}
  throw new SourceError('bad_answer', `${what} is not a JSON object`)
}
