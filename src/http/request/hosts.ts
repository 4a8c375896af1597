import { isIP, isIPv4, isIPv6 } from 'node:net'
import { plainAddress } from './client-address.ts'

/** No user, no path, no percent-encoding: `URL` would take them. */
const AUTHORITY = /^[\w.:[\]-]+$/

/** The host, such as `::1`, of an authority, such as `[::1]:8080` in a Host header; undefined when it is not one. */
export function hostOf (authority: string): string | undefined {
  if (!AUTHORITY.test(authority) || !URL.canParse(`http://${authority}`)) return undefined
  return new URL(`http://${authority}`).hostname.replace(/^\[|\]$/g, '')
}

/** A host as an authority: an IPv6 address gets its brackets. */
export function authorityOf (host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

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

/** A host to listen on, in its one spelling; undefined when the text is none. */
export function parseListenHost (text: string): string | undefined {
  if (isIP(text) !== 0) return plainAddress(text)
  const name = text.toLowerCase()
  return hostOf(name) === name ? name : undefined
}

/** A host as somebody wrote it, with or without brackets, port and capitals; undefined when it is not one. */
export function parseHost (text: string): string | undefined {
  return hostOf(isIPv6(text) ? `[${text}]` : text)
}

/** No `*` either: no browser sends one, so that `https://*.example` would open the service to nobody. */
const ORIGIN = /^[a-z][a-z\d+.-]*:\/\/[^\s/?#@\\*]+$/

/** An origin as browsers send it; undefined when the text is not one. Extensions have schemes of their own. */
export function parseOrigin (text: string): string | undefined {
  const lowerCase = text.toLowerCase()
  if (!ORIGIN.test(lowerCase) || !URL.canParse(lowerCase)) return undefined
  const { origin } = new URL(lowerCase)
  return origin === 'null' ? lowerCase : origin
}

/** Whether an `Origin` header names a web page that this machine serves. */
export function isLoopbackOrigin (origin: string): boolean {
  const [, authority = ''] = /^https?:\/\/([^/]+)$/i.exec(origin) ?? []
  return isLoopback(hostOf(authority) ?? '')
}
