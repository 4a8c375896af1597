import { createHash } from 'node:crypto'
import { lookup as resolveHost } from 'node:dns'
import { createWriteStream } from 'node:fs'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { type Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import ipaddr from 'ipaddr.js'
import { isJsonObject, jsonDepthExceeds, type JsonObject } from '../../core/shared/json.ts'
import { errorCode } from '../../core/shared/system-errors.ts'
import { isLoopback } from '../../http/request/hosts.ts'
import { DISK_CODES } from '../as-source-error.ts'
import { readPackageVersion } from '../../config/files/version.ts'
import type { Environment } from '../../config/setting.ts'
import type { SourceAuth } from '../address/source-kind.ts'
import { readSecret } from '../secrets.ts'
import { SourceError, type SourceErrorCode } from '../source-error.ts'
import { proxyHeaders, proxyOf, tunnel } from './proxy.ts'

const MAX_REDIRECTS = 5
/** Largest body that is read into memory, in bytes. */
const MAX_TEXT_BYTES = 16 * 1_048_576
/** Millions of brackets keep JSON.parse, and thus the service, busy for a second. */
const MAX_JSON_DEPTH = 64
/** How long a server may be silent, in milliseconds. */
const SILENCE_MS = 30_000

export const UNKNOWN_HOST = 'the name of the host cannot be resolved: check how it is written'
export const NO_CONNECTION = 'the host takes no connection: check its port, and whether it runs'

const BREAKS_OFF = 'the host cannot be reached, or breaks off'

const UNREACHABLE: Readonly<Record<string, string>> =
  { ENOTFOUND: UNKNOWN_HOST, EAI_AGAIN: UNKNOWN_HOST, ECONNREFUSED: NO_CONNECTION }

export interface HttpRequest {
  readonly url: string
  readonly method?: 'GET' | 'HEAD'
  readonly headers?: Readonly<Record<string, string>>
  /** Sent to the host of `url` only, whatever redirects say. */
  readonly credentials?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** For proxies. */
  readonly env?: Environment
  /** Statuses that are answers, besides 200. */
  readonly accept?: readonly number[]
  /** False for an address that a server has named: it may not lead to this machine or its network. */
  readonly mayBeInside?: boolean
  /** Whether redirects may only lead to the same origin. */
  readonly isOneSite?: boolean
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: Readable
  /** Whether the first host is one of this machine or its network: it may name others there. */
  readonly isInside: boolean
}

/**
 * Sends a request with Node's own client. Redirects are followed by hand: never from https to http, and without
 * credentials to another origin, since stores and registries redirect to signed addresses elsewhere.
 * @throws SourceError for every status that is not an answer
 */
export async function send (options: HttpRequest): Promise<HttpAnswer> {
  const { headers = {}, credentials = {}, accept = [], mayBeInside = true, isOneSite } = options
  const first = new URL(options.url)
  const hasCredentials = Object.keys(credentials).length > 0
  let current = first
  let isInside: boolean | undefined
  for (let redirects = 0; ; redirects++) {
    const isOwn = current.origin === first.origin
    const response = await request(current, options, isOwn ? isInside ?? mayBeInside : isInside === true, {
      'accept-encoding': 'identity', 'user-agent': userAgent(), ...headers, ...isOwn && credentials
    })
    const { statusCode: status = 0, headers: { location } } = response
    isInside ??= isInsideAnswer(response, first, options.env)
    if (location === undefined || ![301, 302, 303, 307, 308].includes(status)) {
      const headers = headersOf(response)
      if (status === 200 || accept.includes(status)) return { status, headers, body: response, isInside }
      response.destroy()
      throw statusError(status, headers, hasCredentials)
    }
    response.destroy()
    current = redirected(current, location, redirects)
    if (isOneSite === true && current.origin !== first.origin) {
      throw new SourceError('redirected', 'the host redirects to another host')
    }
  }
}

let agent: string | undefined

/** Some hosts refuse requests without one. */
function userAgent (): string {
  agent ??= `skillserve/${readPackageVersion()}`
  return agent
}

/** A host behind a proxy, or whose address is not known, counts as one outside: it may name no other inside. */
function isInsideAnswer ({ socket: { remoteAddress } }: IncomingMessage, url: URL, env: Environment = {}): boolean {
  return proxyOf(url, env) === undefined && remoteAddress !== undefined && isInsideAddress(remoteAddress)
}

function redirected (from: URL, location: string, redirects: number): URL {
  if (redirects === MAX_REDIRECTS) {
    throw new SourceError('redirected', `the host redirects more than ${MAX_REDIRECTS} times`)
  }
  const next = URL.canParse(location, from.href) ? new URL(location, from.href) : undefined
  if (next !== undefined && isAllowed(from, next)) return next
  throw new SourceError('redirected', 'the host redirects to an address that is not https://')
}

async function request (
  url: URL, options: HttpRequest, mayBeInside: boolean, headers: Readonly<Record<string, string>>
): Promise<IncomingMessage> {
  const { method = 'GET', signal, env = {} } = options
  const host = bare(url.hostname)
  // Whoever names an address could otherwise read what only this machine's network shows.
  if (!mayBeInside && (isLoopback(host) || (isIP(host) !== 0 && isInsideAddress(host)))) throw insideError()
  try {
    const proxy = proxyOf(url, env)
    const isTls = url.protocol === 'https:'
    const socket = proxy !== undefined && isTls ? await tunnel(url, proxy, signal) : undefined
    const viaProxy = proxy !== undefined && !isTls &&
      { path: url.href, headers: { ...headers, host: url.host, ...proxyHeaders(proxy) } }
    return await new Promise<IncomingMessage>((resolve, reject) => {
      const target = viaProxy === false ? url : proxy ?? url
      const start = target.protocol === 'https:' ? requestHttps : requestHttp
      // No agent: a connection that is kept was checked for somebody else.
      const sent = start(target, {
        method,
        signal,
        headers,
        ...socket === undefined ? { agent: false } : { createConnection: () => socket },
        ...!mayBeInside && proxy === undefined && { lookup: lookupOutside },
        ...viaProxy
      }, resolve)
      sent.setTimeout(SILENCE_MS, () => { sent.destroy(new SourceError('timeout', 'the host stopped sending')) })
      sent.once('error', reject)
      // An answer that switches to another protocol ends the connection without an error.
      sent.once('close', () => { reject(new Error('there is no answer')) })
      sent.end()
    })
  } catch (error) {
    signal.throwIfAborted()
    throw connectionError(error, url)
  }
}

function connectionError (error: unknown, { protocol }: URL): SourceError {
  if (error instanceof SourceError) return error
  const code = errorCode(error)
  if (/CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO/.test(code)) {
    return new SourceError('tls', 'the certificate of the host is not accepted', { details: code })
  }
  if (/^HPE_|^EPROTO$/.test(code)) {
    const expected = protocol === 'https:' ? 'TLS' : 'HTTP'
    const sentence = `the host answers in something else than ${expected}: check its port`
    return new SourceError('bad_answer', sentence, { details: code })
  }
  return new SourceError('unreachable', UNREACHABLE[code] ?? BREAKS_OFF, { details: code })
}

/** Checks the addresses in the step that connects to one of them: a name may have another address a moment later. */
const lookupOutside: LookupFunction = (hostname, options, callback) => {
  resolveHost(hostname, { ...options, all: true }, (error, addresses) => {
    const outside = outsideOf(addresses ?? [])
    const [first] = outside
    if (error !== null) callback(error, [])
    else if (first === undefined) callback(insideError(), [])
    else if (options.all === true) callback(null, outside)
    else callback(null, first.address, first.family)
  })
}

/** A host of this network may have an address outside of it too, and is asked there. */
export function outsideOf<T extends { readonly address: string }> (addresses: readonly T[]): T[] {
  return addresses.filter(({ address }) => !isInsideAddress(address))
}

function insideError (): SourceError {
  return new SourceError('redirected', 'the host names an address inside of this network')
}

function headersOf ({ headers }: IncomingMessage): Headers {
  const all = Object.entries(headers).filter(([, value]) => value !== undefined)
  return new Headers(all.map(([name, value]) => [name, [value].flat().join(', ')]))
}

function isAllowed (from: URL, to: URL): boolean {
  if (to.username !== '' || to.password !== '') return false
  const isHttp = to.protocol === 'http:' && from.protocol === 'http:'
  return to.protocol === 'https:' || (isHttp && isLoopback(bare(to.hostname)))
}

/** Whether an address may be one of this machine or its network: anything but public unicast. */
export function isInsideAddress (address: string): boolean {
  return !ipaddr.isValid(address) || ipaddr.process(address).range() !== 'unicast'
}

function bare (hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}

/** What a status that is not an answer means. */
export function statusError (status: number, headers: Headers, hasCredentials: boolean): SourceError {
  const retryAfterMs = retryAfter(headers.get('retry-after') ?? undefined)
  const [code, sentence] = meaningOf(status, hasCredentials)
  return new SourceError(code, sentence, { retryAfterMs })
}

function meaningOf (status: number, hasCredentials: boolean): readonly [code: SourceErrorCode, sentence: string] {
  if (status === 401 || status === 403) {
    if (hasCredentials) return ['auth_failed', 'the host refuses the credentials']
    return ['auth_failed', status === 401
      ? 'the host asks for credentials, and none are configured'
      : 'the host refuses the request (403), and no credentials are configured']
  }
  if (status === 404 || status === 410) {
    return ['not_found', 'the host has nothing at this address, or does not show it']
  }
  if (status === 429) return ['rate_limited', 'the host asks for fewer requests']
  return [status >= 500 ? 'unreachable' : 'bad_answer', `the host answers with status ${status}`]
}

/** Milliseconds, of a header that has seconds or a date. */
export function retryAfter (text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return Number.isFinite(ms) && ms > 0 ? ms : undefined
}

/** A body as bytes. */
export async function readBody ({ body }: HttpAnswer, limit = MAX_TEXT_BYTES): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > limit) throw tooLarge(limit)
      chunks.push(chunk)
    }
  } catch (error) {
    throw asBodyError(error)
  }
  return Buffer.concat(chunks)
}

/**
 * A JSON object that a host sent.
 * @param what it is, for sentences
 */
export function parseObject (text: string, what: string): JsonObject {
  if (jsonDepthExceeds(text, MAX_JSON_DEPTH)) {
    throw new SourceError('bad_answer', `${what} is nested deeper than ${MAX_JSON_DEPTH} levels`)
  }
  try {
    const value: unknown = JSON.parse(text)
    if (isJsonObject(value)) return value
  } catch {}
  throw new SourceError('bad_answer', `${what} is not a JSON object`)
}

/**
 * Writes a body into a new file. Returns its SHA-256 in hexadecimal digits, and its size.
 * @param isLasting whether the file stays, and others may read it: its bytes are on the disk afterwards
 */
export async function saveBody (
  { body }: HttpAnswer, path: string, limit: number, isLasting = false
): Promise<{ readonly sha256: string, readonly size: number }> {
  const hash = createHash('sha256')
  let size = 0
  const meter = new Transform({
    transform (chunk: Buffer, _, done) {
      size += chunk.length
      hash.update(chunk)
      done(size > limit ? tooLarge(limit) : null, chunk)
    }
  })
  try {
    const options = { flags: 'wx', mode: isLasting ? 0o644 : 0o600, flush: isLasting }
    await pipeline(body, meter, createWriteStream(path, options))
  } catch (error) {
    throw asBodyError(error)
  }
  return { sha256: hash.digest('hex'), size }
}

function tooLarge (limit: number): SourceError {
  return new SourceError('too_large', `the host sends more than ${limit} bytes`)
}

function asBodyError (error: unknown): unknown {
  if (error instanceof SourceError) return error
  const code = errorCode(error)
  const isAborted = error instanceof Error && ['AbortError', 'TimeoutError'].includes(error.name)
  if (DISK_CODES.has(code) || isAborted) return error
  return new SourceError('unreachable', 'the host breaks off', { details: code })
}

/** What makes the next request conditional, as its headers. */
export function validatorsOf ({ headers }: HttpAnswer): Readonly<Record<string, string>> {
  const etag = headers.get('etag')
  const modified = headers.get('last-modified')
  return { ...etag !== null && { 'if-none-match': etag }, ...modified !== null && { 'if-modified-since': modified } }
}

/** A token as a header, or a password where the settings have a user name. */
export async function credentialsOf (auth: SourceAuth, env: Environment): Promise<Readonly<Record<string, string>>> {
  const secret = await readSecret(auth, env)
  if (secret === undefined) return {}
  return auth.username === undefined ? { authorization: `Bearer ${secret}` } : basic(auth.username, secret)
}

/** Basic credentials as a header. */
export function basic (username: string, secret: string): Readonly<Record<string, string>> {
  return { authorization: `Basic ${Buffer.from(`${username}:${secret}`).toString('base64')}` }
}
