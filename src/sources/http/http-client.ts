import { createHash, type Hash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream as WebStream } from 'node:stream/web'
import { isLoopback } from '../../http/request/hosts.ts'
import { SourceError } from '../source-error.ts'

const MAX_REDIRECTS = 5
/** Largest body that is read into memory, in bytes. */
const MAX_TEXT_BYTES = 16 * 1_048_576
/** How long a server may be silent, in milliseconds. */
const SILENCE_MS = 30_000

export interface HttpRequest {
  readonly url: string
  readonly method?: 'GET' | 'HEAD'
  readonly headers?: Readonly<Record<string, string>>
  /** Sent to the host of `url` only, whatever redirects say. */
  readonly credentials?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** Statuses that are answers, besides 200. */
  readonly accept?: readonly number[]
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: ReadableStream<Uint8Array> | null
}

/**
 * Sends a request with Node's own client. Redirects are followed by hand: never from https to http, and without credentials to
 * another origin, since stores and registries redirect to signed addresses elsewhere.
 * @throws SourceError for every status that is no answer
 */
export async function send ({ url, method = 'GET', headers = {}, credentials = {}, signal, accept = [] }: HttpRequest): Promise<HttpAnswer> {
  const { origin } = new URL(url)
  let current = new URL(url)
  for (let redirects = 0; ; redirects++) {
    const response = await request(current, { method, redirect: 'manual', signal, headers: { 'accept-encoding': 'identity', ...headers, ...current.origin === origin && credentials } })
    const { status } = response
    const location = response.headers.get('location')
    if (status < 300 || status === 304 || location === null || ![301, 302, 303, 307, 308].includes(status)) {
      if (status === 200 || accept.includes(status)) return { status, headers: response.headers, body: response.body as ReadableStream<Uint8Array> | null }
      await response.body?.cancel()
      throw statusError(status, response.headers)
    }
    await response.body?.cancel()
    if (redirects === MAX_REDIRECTS) throw new SourceError('redirected', `the host redirects more than ${MAX_REDIRECTS} times`)
    const next = URL.canParse(location, current.href) ? new URL(location, current.href) : undefined
    if (next === undefined || !isAllowed(current, next)) throw new SourceError('redirected', 'the host redirects to an address that is not https://')
    // Whoever redirects could otherwise read what only this machine's network shows.
    if (next.origin !== current.origin && isInside(next.hostname) && !isInside(current.hostname)) throw new SourceError('redirected', 'the host redirects to an address inside of this network')
    current = next
  }
}

async function request (url: URL, options: RequestInit): Promise<Response> {
  try {
    return await fetch(url, options)
  } catch (error) {
    options.signal?.throwIfAborted()
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
    if (/CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO/.test(code)) throw new SourceError('tls', 'the certificate of the host is not accepted', { details: code })
    throw new SourceError('unreachable', 'the host cannot be reached, or breaks off', { details: code })
  }
}

function isAllowed (from: URL, to: URL): boolean {
  if (to.username !== '' || to.password !== '') return false
  return to.protocol === 'https:' || (to.protocol === 'http:' && from.protocol === 'http:' && isLoopback(bare(to.hostname)))
}

const INSIDE = /^(?:0\.|10\.|127\.|169\.254\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|::1?$|::ffff:|f[cd]|fe[89ab])/i

/** Whether a host is an address that only this machine or network has. */
function isInside (hostname: string): boolean {
  const host = bare(hostname)
  return isLoopback(host) || INSIDE.test(host)
}

function bare (hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function statusError (status: number, headers: Headers): SourceError {
  const retryAfterMs = retryAfter(headers.get('retry-after'))
  if (status === 401 || status === 403) return new SourceError('auth_failed', 'the host refuses the credentials, or asks for some')
  if (status === 404 || status === 410) return new SourceError('not_found', 'the host has nothing at this address, or does not show it')
  if (status === 429) return new SourceError('rate_limited', 'the host asks for fewer requests', { retryAfterMs })
  if (status >= 500) return new SourceError('unreachable', `the host answers with status ${status}`, { retryAfterMs })
  return new SourceError('bad_answer', `the host answers with status ${status}`)
}

/** Seconds, or a date. */
function retryAfter (text: string | null): number | undefined {
  if (text === null) return undefined
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return Number.isFinite(ms) && ms > 0 ? ms : undefined
}

/** A body as bytes. */
export async function readBody ({ body }: HttpAnswer, limit = MAX_TEXT_BYTES): Promise<Buffer> {
  const chunks: Buffer[] = []
  await consume(body, limit, async (chunk) => { chunks.push(chunk) })
  return Buffer.concat(chunks)
}

/** Writes a body into a new file. Returns its SHA-256 in hexadecimal digits, and its size. */
export async function saveBody ({ body }: HttpAnswer, path: string, limit: number): Promise<{ readonly sha256: string, readonly size: number }> {
  const hash = createHash('sha256')
  let size = 0
  if (body === null) throw new SourceError('bad_answer', 'the host answers without a body')
  try {
    await pipeline(Readable.fromWeb(body as WebStream), meter(limit, hash, (length) => { size += length }), createWriteStream(path, { flags: 'wx', mode: 0o600 }))
  } catch (error) {
    throw asBodyError(error)
  }
  return { sha256: hash.digest('hex'), size }
}

function meter (limit: number, hash: Hash, onBytes: (length: number) => void): Transform {
  let size = 0
  const stream = new Transform({
    transform (chunk: Buffer, _, done) {
      timer.refresh()
      size += chunk.length
      if (size > limit) {
        done(new SourceError('too_large', `the host sends more than ${limit} bytes`))
        return
      }
      hash.update(chunk)
      onBytes(chunk.length)
      done(null, chunk)
    },
    destroy (error, done) {
      clearTimeout(timer)
      done(error)
    }
  })
  const timer = setTimeout(() => { stream.destroy(new SourceError('timeout', 'the host stopped sending')) }, SILENCE_MS).unref()
  return stream
}

async function consume (body: HttpAnswer['body'], limit: number, use: (chunk: Buffer) => Promise<void>): Promise<void> {
  if (body === null) return
  let size = 0
  try {
    for await (const chunk of Readable.fromWeb(body as WebStream) as AsyncIterable<Uint8Array>) {
      size += chunk.length
      if (size > limit) throw new SourceError('too_large', `the host sends more than ${limit} bytes`)
      await use(Buffer.from(chunk))
    }
  } catch (error) {
    throw asBodyError(error)
  }
}

function asBodyError (error: unknown): unknown {
  if (error instanceof SourceError) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (/^E(?:NOSPC|DQUOT|ACCES|ROFS|MFILE)$/.test(code) || (error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError'))) return error
  return new SourceError('unreachable', 'the host breaks off', { details: code })
}

/** Basic credentials as a header. */
export function basic (username: string, secret: string): Readonly<Record<string, string>> {
  return { authorization: `Basic ${Buffer.from(`${username}:${secret}`).toString('base64')}` }
}
