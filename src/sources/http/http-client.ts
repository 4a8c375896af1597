import { lookup } from 'node:dns'
import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { readPackageVersion } from '../../operator/package-files.ts'
import type { Environment } from '../../operator/setting.ts'
import { hostOf, isAtLoopback } from '../address/address.ts'
import { connectionError, SourceError, statusError } from '../source-error.ts'
import type { RequestHeaders } from '../secrets.ts'
import { proxyOf, tunnel } from './proxy.ts'

const MAX_REDIRECTS = 5
const REDIRECTS = [301, 302, 303, 307, 308]
/** How long a server may send nothing, in milliseconds. */
const SILENCE_MS = 30_000

export interface HttpRequest {
  readonly url: string
  readonly method?: 'GET' | 'HEAD'
  readonly headers?: RequestHeaders
  /** Headers that are only sent to the origin of `url`, even after redirects. */
  readonly credentials?: RequestHeaders
  readonly signal: AbortSignal
  readonly env: Environment
  /** Statuses besides 200 that are not errors. */
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
  /** Whether the first host is on this machine or its network, and so may name other addresses there. */
  readonly isInside: boolean
}

/**
 * Sends a request with Node's client. Redirects are followed here: never from https to http, and without credentials to
 * another origin, since stores and registries redirect to signed addresses elsewhere.
 * @throws SourceError for an unexpected status
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
  const host = hostOf(url)
  // A server could otherwise have the service read what only this machine's network shows.
  if (!mayBeInside && (isAtLoopback(url) || (isIP(host) !== 0 && isInsideAddress(host)))) throw insideError()
  try {
    const proxy = proxyOf(url, env)
    const socket = proxy && await tunnel(url, proxy, signal)
    const start = url.protocol === 'https:' ? requestHttps : requestHttp
    const sent = start(url, {
      method,
      signal,
      // Some hosts refuse requests without a user agent.
      headers: { 'accept-encoding': 'identity', 'user-agent': `skillserve/${readPackageVersion()}`, ...headers },
      // A kept connection was checked for another request. Without an agent Node names port 443 in `Host`.
      ...socket === undefined ? { agent: false } : { createConnection: () => socket, defaultPort: 443 },
      ...!mayBeInside && proxy === undefined && { lookup: lookupOutside }
    })
    sent.on('error', () => {})
    sent.setTimeout(SILENCE_MS, () => { sent.destroy(new SourceError('timeout', 'the host stopped sending')) })
    sent.end()
    // Without the signal this would wait for ever if the host switches to another protocol.
    const [answer] = await once(sent, 'response', { signal }) as [IncomingMessage]
    return answer
  } catch (error) {
    signal.throwIfAborted()
    throw connectionError(error)
  }
}

/** Checks addresses while the connection is made: a moment later the name may resolve to another one. */
const lookupOutside: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    // A host of this network that also has an outside address is reached there.
    const outside = (addresses ?? []).filter(({ address }) => !isInsideAddress(address))
    const [first] = outside
    if (error !== null) callback(error, [])
    else if (first === undefined) callback(insideError(), [])
    else if (options.all === true) callback(null, outside)
    else callback(null, first.address, first.family)
  })
}

/** Returns whether an address may be one of this machine or its network: anything but public unicast. */
export function isInsideAddress (address: string): boolean {
  if (!ipaddr.isValid(address)) return true
  const parsed = ipaddr.process(address)
  if (parsed.range() !== 'rfc6052') return parsed.range() !== 'unicast'
  // NAT64: IPv6-only networks reach every IPv4 address like this, and its last four bytes are that address.
  return ipaddr.fromByteArray(parsed.toByteArray().slice(12)).range() !== 'unicast'
}

function insideError (): SourceError {
  return new SourceError('redirected', 'the host leads to an address inside this network')
}

/** Returns the headers that make the next request conditional. */
export function validatorsOf ({ headers }: HttpAnswer): RequestHeaders {
  const { etag, 'last-modified': modified } = headers
  return { ...etag && { 'if-none-match': etag }, ...modified && { 'if-modified-since': modified } }
}
