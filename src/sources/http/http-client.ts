import { createHash, type Hash } from 'node:crypto'
import { lookup } from 'node:dns'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { connect } from 'node:tls'
import ipaddr from 'ipaddr.js'
import { isJsonObject, type JsonObject } from '../../core/shared/json.ts'
import { errorCode } from '../../core/shared/system-errors.ts'
import { readPackageVersion } from '../../operator/package-files.ts'
import type { Environment } from '../../operator/setting.ts'
import { isAtLoopback } from '../address/parts.ts'
import type { SourceAuth } from '../address/source-kind.ts'
import { readSecret } from '../secrets.ts'
import { DISK_CODES, SourceError, type SourceErrorCode } from '../source-error.ts'

const MAX_REDIRECTS = 5
const REDIRECTS = [301, 302, 303, 307, 308]
/** How long a server may be silent, in milliseconds. */
const SILENCE_MS = 30_000

const UNKNOWN_HOST = 'the name of the host cannot be resolved: check how it is written'

/** What failures of a connection mean, by their codes. */
const FAILURES: ReadonlyArray<readonly [codes: RegExp, code: SourceErrorCode, sentence: string]> = [
  [/^(?:ENOTFOUND|EAI_AGAIN)$/, 'unreachable', UNKNOWN_HOST],
  [/^ECONNREFUSED$/, 'unreachable', 'the host refuses the connection: check its port, and whether it runs'],
  [/CERT|SSL|TLS|SELF_SIGNED|UNABLE_TO/, 'tls', 'the certificate of the host is not accepted'],
  [/^HPE_|^EPROTO$/, 'bad_answer', 'the host answers in another protocol: check its port']
]

export type RequestHeaders = Readonly<Record<string, string>>

export interface HttpRequest {
  readonly url: string
  readonly method?: 'GET' | 'HEAD'
  readonly headers?: RequestHeaders
  /** Sent to the host of `url` only, whatever redirects say. */
  readonly credentials?: RequestHeaders
  readonly signal: AbortSignal
  readonly env: Environment
  /** Statuses that are answers, besides 200. */
  readonly accept?: readonly number[]
  /** False for an address that a server has named: it may not lead to this machine or its network. */
  readonly mayBeInside?: boolean
  /** Whether redirects may only lead to the same origin. */
  readonly isOneSite?: boolean
  readonly maxRedirects?: number
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: IncomingMessage
  /** Whether the first host is one of this machine or its network: it may name others there. */
  readonly isInside: boolean
}

/**
 * Sends a request with Node's own client. Redirects are followed by hand: never from https to http, and without
 * credentials to another origin, since stores and registries redirect to signed addresses elsewhere.
 * @throws SourceError for every status that is not an answer
 */
export async function send (options: HttpRequest): Promise<HttpAnswer> {
  const { headers, credentials = {}, env, accept = [], mayBeInside = true, isOneSite = false } = options
  const { maxRedirects = MAX_REDIRECTS } = options
  const first = new URL(options.url)
  let current = first
  let isInside: boolean | undefined
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const own = current.origin === first.origin ? credentials : {}
    const body = await ask(current, options, isInside ?? mayBeInside, { ...headers, ...own })
    // A host behind a proxy counts as one outside.
    isInside ??= proxyOf(first, env) === undefined && isInsideAddress(body.socket.remoteAddress ?? '')
    const { statusCode: status = 0, headers: { location } } = body
    if (status === 200 || accept.includes(status)) return { status, headers: body.headers, body, isInside }
    body.destroy()
    if (location === undefined || !REDIRECTS.includes(status)) {
      throw statusError(status, body.headers, Object.keys(credentials).length > 0)
    }
    current = redirected(current, location)
    if (isOneSite && current.origin !== first.origin) {
      throw new SourceError('redirected', 'the host redirects to another host')
    }
  }
  throw new SourceError('redirected', `the host redirects more than ${maxRedirects} times`)
}

function redirected (from: URL, location: string): URL {
  const next = URL.canParse(location, from.href) ? new URL(location, from.href) : undefined
  const isHttp = next?.protocol === 'http:' && from.protocol === 'http:' && isAtLoopback(next)
  if (next !== undefined && next.username === '' && (next.protocol === 'https:' || isHttp)) return next
  throw new SourceError('redirected', 'the host redirects to an address that is not https://')
}

async function ask (
  url: URL, { method = 'GET', signal, env }: HttpRequest, mayBeInside: boolean, headers: RequestHeaders
): Promise<IncomingMessage> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  // Whoever names an address could otherwise read what only this machine's network shows.
  if (!mayBeInside && (isAtLoopback(url) || (isIP(host) !== 0 && isInsideAddress(host)))) throw insideError()
  try {
    const proxy = proxyOf(url, env)
    const socket = proxy && await tunnel(url, proxy, signal)
    const start = url.protocol === 'https:' ? requestHttps : requestHttp
    const sent = start(url, {
      method,
      signal,
      // Some hosts refuse requests without an agent.
      headers: { 'accept-encoding': 'identity', 'user-agent': `skillserve/${readPackageVersion()}`, ...headers },
      // A connection that is kept was checked for somebody else.
      // Without an agent Node takes 80 for the usual port, and would name the port in `Host`.
      ...socket === undefined ? { agent: false } : { createConnection: () => socket, defaultPort: 443 },
      ...!mayBeInside && proxy === undefined && { lookup: lookupOutside }
    })
    sent.on('error', () => {})
    sent.setTimeout(SILENCE_MS, () => { sent.destroy(new SourceError('timeout', 'the host stopped sending')) })
    sent.end()
    // The signal also ends the wait for a host that switches to another protocol.
    const [answer] = await once(sent, 'response', { signal }) as [IncomingMessage]
    return answer
  } catch (error) {
    signal.throwIfAborted()
    throw connectionError(error)
  }
}

/** The proxy of the usual variables, in either case. `http:` is for this machine only, and goes through none. */
function proxyOf ({ protocol, hostname, port }: URL, env: Environment): URL | undefined {
  const valueOf = (name: string): string => env[name.toLowerCase()] || env[name] || ''
  const text = valueOf('HTTPS_PROXY') || valueOf('ALL_PROXY')
  const isExempt = valueOf('NO_PROXY').toLowerCase().split(/[\s,]+/).filter(Boolean).some((entry) => {
    const [, name = '', only] = /^(?:\*?\.)?(.*?)(?::(\d+))?$/.exec(entry) ?? []
    return entry === '*' || (`.${hostname}`.endsWith(`.${name}`) && (only ?? (port || '443')) === (port || '443'))
  })
  if (protocol !== 'https:' || text === '' || isExempt) return undefined
  const address = text.includes('://') ? text : `http://${text}`
  if (URL.canParse(address) && /^https?:/.test(address)) return new URL(address)
  throw new SourceError('unreachable', 'the proxy in the environment is not an http:// or https:// address')
}

/** A connection to an https address through a proxy. */
async function tunnel (url: URL, proxy: URL, signal: AbortSignal): Promise<Socket> {
  const { username, password, protocol } = proxy
  const path = `${url.hostname}:${url.port || 443}`
  const { authorization } = basic(decodeURIComponent(username), decodeURIComponent(password))
  const headers = { host: path, ...username !== '' && { 'proxy-authorization': authorization } }
  const start = protocol === 'https:' ? requestHttps : requestHttp
  const asked = start(proxy, { method: 'CONNECT', path, headers, signal, agent: false }).end()
  const answer = once(asked, 'connect') as Promise<[IncomingMessage, Socket]>
  const [{ statusCode = 0 }, socket] = await answer.catch((error: unknown) => {
    if (errorCode(error) !== 'ECONNREFUSED') throw error
    throw new SourceError('unreachable', `connection refused by the proxy ${proxy.host}`)
  })
  // An address is no name for TLS (RFC 6066 §3).
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const options = { socket, host, ...isIP(host) === 0 && { servername: host }, ALPNProtocols: ['http/1.1'] }
  if (statusCode === 200) return connect(options)
  socket.destroy()
  throw new SourceError('unreachable', `the proxy does not connect to the host: it answers with status ${statusCode}`)
}

/** Checks the addresses in the step that connects to one of them: a name may have another address a moment later. */
const lookupOutside: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    // A host of this network may have an address outside of it too, and is asked there.
    const outside = (addresses ?? []).filter(({ address }) => !isInsideAddress(address))
    const [first] = outside
    if (error !== null) callback(error, [])
    else if (first === undefined) callback(insideError(), [])
    else if (options.all === true) callback(null, outside)
    else callback(null, first.address, first.family)
  })
}

/** Whether an address may be one of this machine or its network: anything but public unicast. */
export function isInsideAddress (address: string): boolean {
  if (!ipaddr.isValid(address)) return true
  const parsed = ipaddr.process(address)
  if (parsed.range() !== 'rfc6052') return parsed.range() !== 'unicast'
  // NAT64: networks that have only IPv6 reach every IPv4 address so, which its last four bytes are.
  return ipaddr.fromByteArray(parsed.toByteArray().slice(12)).range() !== 'unicast'
}

function insideError (): SourceError {
  return new SourceError('redirected', 'the host names an address inside of this network')
}

function connectionError (error: unknown): unknown {
  const isAborted = error instanceof Error && ['AbortError', 'TimeoutError'].includes(error.name)
  const details = errorCode(error)
  if (error instanceof SourceError || isAborted || DISK_CODES.has(details)) return error
  const [, code, sentence] = FAILURES.find(([codes]) => codes.test(details)) ??
    [details, 'unreachable', 'the host cannot be reached, or breaks off'] as const
  return new SourceError(code, sentence, { details })
}

/** What a status that is not an answer means. */
export function statusError (status: number, headers: IncomingHttpHeaders, hasCredentials: boolean): SourceError {
  const error = (code: SourceErrorCode, sentence: string): SourceError =>
    new SourceError(code, sentence, { retryAfterMs: retryAfter(headers['retry-after'] ?? '') })
  if (status === 401 || status === 403) {
    return error('auth_failed', hasCredentials
      ? 'the host refuses the credentials'
      : `the host refuses the request (${status}), and no credentials are configured`)
  }
  if (status === 404 || status === 410) {
    return error('not_found', 'the host has nothing at this address, or does not show it')
  }
  if (status === 429) return error('rate_limited', 'the host asks for fewer requests')
  return error(status >= 500 ? 'unreachable' : 'bad_answer', `the host answers with status ${status}`)
}

/** Milliseconds, of a header that has seconds or a date. */
function retryAfter (text: string): number | undefined {
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return Number.isFinite(ms) && ms > 0 ? ms : undefined
}

export async function readBody ({ body }: HttpAnswer, limit: number): Promise<Buffer> {
  return await buffer(bytesOf(body, limit))
}

/** Writes a body into a new file. Returns its SHA-256 in hexadecimal digits, and its size. */
export async function saveBody (
  { body }: HttpAnswer, path: string, limit: number
): Promise<{ readonly sha256: string, readonly size: number }> {
  const hash = createHash('sha256')
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600 })
  await pipeline(bytesOf(body, limit, hash), file)
  return { sha256: hash.digest('hex'), size: file.bytesWritten }
}

async function * bytesOf (body: AsyncIterable<Buffer>, limit: number, hash?: Hash): AsyncGenerator<Buffer> {
  let size = 0
  try {
    for await (const chunk of body) {
      size += chunk.length
      if (size > limit) throw new SourceError('too_large', `the host sends more than ${limit} bytes`)
      hash?.update(chunk)
      yield chunk
    }
  } catch (error) {
    throw connectionError(error)
  }
}

/** A JSON object that a host sent, which sentences call `what`. */
export function parseObject (text: string, what: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text)
    if (isJsonObject(value)) return value
  } catch {}
  throw new SourceError('bad_answer', `${what} is not a JSON object`)
}

/** What makes the next request conditional, as its headers. */
export function validatorsOf ({ headers }: HttpAnswer): RequestHeaders {
  const { etag, 'last-modified': modified } = headers
  return { ...etag && { 'if-none-match': etag }, ...modified && { 'if-modified-since': modified } }
}

/** A token as a header, or a password where the settings have a user name. */
export async function credentialsOf (auth: SourceAuth, env: Environment): Promise<RequestHeaders> {
  const secret = await readSecret(auth, env)
  if (secret === undefined) return {}
  return auth.username === undefined ? { authorization: `Bearer ${secret}` } : basic(auth.username, secret)
}

export function basic (username: string, secret: string): { readonly authorization: string } {
  return { authorization: `Basic ${Buffer.from(`${username}:${secret}`).toString('base64')}` }
}
