import { decodePercent } from '../../core/shared/text.ts'
import { isLoopback } from '../../http/request/hosts.ts'
import { AddressError } from '../source-error.ts'

/** An address that was read: its text up to the fragment, the same as a URL, and the decoded fragment. */
export interface Address {
  readonly base: string
  readonly url: URL
  readonly fragment: string | undefined
}

/** `sha256:` and 64 digits, as archives and registries name bytes. */
export const DIGEST = /^sha256:[0-9a-f]{64}$/

/** A setting of the kinds whose sources have folders. */
export const PATH_SETTING = { description: 'A folder in the source' } as const

/** @throws AddressError */
export function splitAddress (text: string): Address {
  const hash = text.indexOf('#')
  const base = hash === -1 ? text : text.slice(0, hash)
  return { base, url: parseUrl(base), fragment: hash === -1 ? undefined : decode(text.slice(hash + 1)) }
}

/** As git and people write it, and no URL. */
export const SCP_LIKE = /^[\w.-]+@[\w.-]+:(?!\/\/)/

/** `https:///host/path` too, which a URL's parser takes for `https://host/path`. */
const NO_HOST = /^((?:git\+)?(?:https?|ssh):\/\/)(?:[/?]|$)/i

export function parseUrl (text: string): URL {
  if (SCP_LIKE.test(text)) {
    const form = 'git+ssh://user@host/path, in the configuration file git: ssh://user@host/path'
    throw new AddressError(`an address of git over SSH is ${form}`)
  }
  if (!text.includes(':')) throw new AddressError('an address begins with its protocol, such as https://')
  if (/[\s\p{Cc}]/u.test(text)) throw new AddressError('the address has white space in it: a space is written %20')
  const [, protocol] = NO_HOST.exec(text) ?? []
  if (protocol !== undefined) throw new AddressError(`the address has no host: it is ${protocol}host/path`)
  if (!URL.canParse(text)) throw new AddressError('its host or port cannot be read')
  const url = new URL(text)
  if (url.password !== '') {
    throw new AddressError('an address with a password would show it: give it in the configuration file (auth)')
  }
  return url
}

/** An address of the configuration file, where what stands behind `#` elsewhere has keys of its own. */
export function withoutKeys (address: string): string {
  if (address.includes('#')) throw new AddressError('what stands behind # has keys of its own here: ref, path, digest')
  return address
}

/** A folder in a source, without slashes at its ends. */
export function parsePath (path: string): string {
  const segments = path.split('/').filter((segment) => segment !== '' && segment !== '.')
  if (segments.includes('..') || path.includes('\0') || path.includes('\\')) {
    throw new AddressError('a path stays inside the source')
  }
  return segments.join('/')
}

export function requireNoCredentials ({ username }: URL): void {
  if (username !== '') {
    throw new AddressError('an address with a user name would show a secret: give it in the configuration file (auth)')
  }
}

export function isAtLoopback ({ hostname }: URL): boolean {
  return isLoopback(hostname.replace(/^\[|\]$/g, ''))
}

export function requireLoopback (url: URL): void {
  if (!isAtLoopback(url)) throw new AddressError('http:// is for this machine only: give an https:// address')
}

export function withoutFragment (url: URL): string {
  const copy = new URL(url)
  copy.hash = ''
  return copy.href
}

/** A name from the last part of a path that has one. */
export function lastPart (path: string): string {
  const parts = path.split('/').filter((part) => part !== '').map((part) => part.replace(/\.git$/, ''))
  return parts.at(-1)?.replace(/[^\w.-]+/g, '-') || 'skills'
}

/** @throws AddressError for percent signs that encode nothing */
export function decode (text: string): string {
  const decoded = decodePercent(text)
  if (decoded === undefined) throw new AddressError('the address is not percent-encoded as it should be')
  return decoded
}
