import { isIP, isIPv4, isIPv6 } from 'node:net'
import { plainAddress } from './client-address.ts'

/** An authority without user, path and percent-encoding, which `URL` would accept. */
const AUTHORITY = /^[\w.:[\]-]+$/

/** Returns the host of an authority: `::1` of the Host header `[::1]:8080`; undefined if it is invalid. */
export function hostOf (authority: string): string | undefined {
  if (!AUTHORITY.test(authority) || !URL.canParse(`http://${authority}`)) return undefined
  return new URL(`http://${authority}`).hostname.replace(/^\[|\]$/g, '')
}

/** Formats a host as an authority: an IPv6 address gets brackets. */
export function authorityOf (host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

export function isLoopback (host: string): boolean {
  return host === 'localhost' || host === '::1' || (host.startsWith('127.') && isIPv4(host))
}

/** Whether a host is loopback, or a name without dots: a machine or container on a private network. */
export function isLocalName (host: string): boolean {
  return isLoopback(host) || !/[.:]/.test(host)
}

/** Returns the host to connect to if a server listens on `host`: not every system connects to wildcard addresses. */
export function connectableHost (host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

/** Normalizes a host to listen on; returns undefined if the text is invalid. */
export function parseListenHost (text: string): string | undefined {
  if (isIP(text) !== 0) return plainAddress(text)
  const name = text.toLowerCase()
  return hostOf(name) === name ? name : undefined
}

/** Normalizes a host written with or without brackets, port and capitals; returns undefined if it is invalid. */
export function parseHost (text: string): string | undefined {
  return hostOf(isIPv6(text) ? `[${text}]` : text)
}

/** An origin. No `*`: browsers never send one, so `https://*.example` would match no page. */
const ORIGIN = /^[a-z][a-z\d+.-]*:\/\/[^\s/?#@\\*]+$/

/** Normalizes an origin as browsers send it; undefined if it is invalid. Extensions have other schemes. */
export function parseOrigin (text: string): string | undefined {
  const lowerCase = text.toLowerCase()
  if (!ORIGIN.test(lowerCase) || !URL.canParse(lowerCase)) return undefined
  const { origin } = new URL(lowerCase)
  return origin === 'null' ? lowerCase : origin
}

/** Whether an `Origin` header names a web page served by this machine. */
export function isLoopbackOrigin (origin: string): boolean {
  const [, authority = ''] = /^https?:\/\/([^/]+)$/i.exec(origin) ?? []
  return isLoopback(hostOf(authority) ?? '')
}
