import { isIP, isIPv4, isIPv6, SocketAddress } from 'node:net'
import { plainAddress } from './client-address.ts'

/**
 * A host is a name or an address in lower case, without brackets and without a port: `example.org`, `127.0.0.1`, `::1`.
 * Brackets and ports belong to the authority that a Host header or an origin carries: `[::1]:8080`.
 */

/** RFC 3986's host without percent-encoding and sub-delimiters, which no name that resolves has; RFC 9110's port. */
const AUTHORITY = /^(?:\[([\da-f:.]{2,45})\]|([\w.-]+))(?::\d*)?$/i

/** The host of an authority, such as the value of a Host header; undefined when the value is not one. */
export function hostOf (authority: string): string | undefined {
  const [, address, name] = AUTHORITY.exec(authority) ?? []
  if (address !== undefined) return isIPv6(address) ? address.toLowerCase() : undefined
  return name?.toLowerCase()
}

/** A host as an authority: an IPv6 address gets its brackets. */
export function authorityOf (host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

/** Loopback as a resolver would never disagree: `127.1` and `localhost.` are left out. */
export function isLoopback (host: string): boolean {
  return host === 'localhost' || host === '::1' || (host.startsWith('127.') && isIPv4(host))
}

/** Loopback, or a name without dots: that of a machine or container on a private network. */
export function isLocalName (host: string): boolean {
  return isLoopback(host) || !/[.:]/.test(host)
}

/** Where to connect to a server that listens on this host: not every system connects to a wildcard address. */
export function connectableHost (host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

const MAX_HOST_CHARACTERS = 253
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i
const DIGITS = /^\d+$/

/** An address as node:net reads it, or a name that cannot be taken for an IPv4 address (`256.1.1.1`, `127.1`). */
function isHost (text: string): boolean {
  if (isIP(text) !== 0) return true
  const labels = text.split('.')
  return text.length <= MAX_HOST_CHARACTERS && labels.every((label) => LABEL.test(label)) && !DIGITS.test(labels.at(-1) ?? '')
}

/** A host to listen on, in its one spelling, by which loopback is known as such; undefined when the text is none. */
export function parseListenHost (text: string): string | undefined {
  if (!isHost(text)) return undefined
  // One with a zone is of a link, and its only spelling is its own.
  if (!isIPv6(text) || text.includes('%')) return text.toLowerCase()
  return plainAddress(new SocketAddress({ address: text, family: 'ipv6' }).address)
}

/** A host as somebody wrote it, with or without brackets, port and capitals; undefined when it is not one. */
export function parseHost (text: string): string | undefined {
  const host = isIPv6(text) ? text.toLowerCase() : hostOf(text)
  return host !== undefined && isHost(host) ? host : undefined
}

/** No `*` either: no browser sends one, so that `https://*.example` would open the service to nobody. */
const ORIGIN = /^[a-z][a-z\d+.-]*:\/\/[^\s/?#@\\*]+$/
const WEB_ORIGIN = /^https?:\/\/([^/]+)$/

/**
 * An origin as browsers send it, without a default port; undefined when the text is not one. Extensions have schemes of
 * their own: `chrome-extension://<id>`.
 */
export function parseOrigin (text: string): string | undefined {
  const lowerCase = text.toLowerCase()
  if (!ORIGIN.test(lowerCase) || !URL.canParse(lowerCase)) return undefined
  const { origin } = new URL(lowerCase)
  return origin === 'null' ? lowerCase : origin
}

/** Whether an `Origin` header names a web page that this machine serves. */
export function isLoopbackOrigin (origin: string): boolean {
  const authority = WEB_ORIGIN.exec(origin.toLowerCase())?.[1]
  const host = authority === undefined ? undefined : hostOf(authority)
  return host !== undefined && isLoopback(host)
}
