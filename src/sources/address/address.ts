import { decodePercent } from '../../core/shared/text.ts'
import { isLoopback } from '../../http/request/hosts.ts'
import { quote } from '../../operator/setting.ts'
import { AddressError } from '../source-error.ts'

/** `sha256:` and 64 hexadecimal digits, as archives and registries identify bytes. */
export const DIGEST = /^sha256:[0-9a-f]{64}$/

/** How files end that hold a tree of files. */
export const PACKED_FILE = /\.(?:zip|skill|tar\.gz|tgz|tar)$/i

/** An SSH address in git's short form, which is not a URL. */
const SCP_LIKE = /^[\w.-]+@[\w.-]+:(?!\/\/)/

const BEGIN = '(?:[a-z][a-z\\d+.-]*://|github:)'
const ADDRESS = new RegExp(`^${BEGIN}`, 'i')
/** What ends an address: the next address, or a folder that is written as `/…`, `./…`, `../…` or `~…`. */
const NEXT = `:(?:/(?!/)|\\.{1,2}/|~|${BEGIN})`
/** An address or a folder after a colon. */
const ROOTS = new RegExp(`:(${BEGIN}.*?(?=$|${NEXT})|[^:]*)`, 'gis')

/** Whether a text is the address of a source, and not a folder. */
export function isAddress (text: string): boolean {
  return ADDRESS.test(text) || SCP_LIKE.test(text)
}

/** Splits a text into folders and addresses at its delimiters: `:`, on Windows `;`. */
export function splitRoots (text: string, delimiter: string): readonly string[] {
  return delimiter === ':' ? Array.from(`:${text}`.matchAll(ROOTS), ([, root = '']) => root) : text.split(delimiter)
}

/** Returns the protocol and the host of an address for a message. A secret may stand before the host, and behind it. */
export function outlineOf (text: string): string {
  const [, protocol = '', host = ''] = /^([^/]*\/\/)?(?:([\w.-]+(?::\d+)?)(?=[/?#]|$)(?!.*@))?/s.exec(text) ?? []
  return `${protocol}${protocol && host && `${host}/`}…`
}

/**
 * Parses an address without its fragment, and without the kind in front of its protocol: `git+https://…`.
 * @param protocols the ones that are allowed; `http:` is for this machine only
 * @throws AddressError for an address that cannot be used, or would show a secret
 */
export function parseUrl (text: string, protocols: readonly string[]): URL {
  const address = text.replace(/^(?:git|well-known)\+/, '')
  if (SCP_LIKE.test(address)) {
    const form = 'git+ssh://user@host/path, in the configuration file git: ssh://user@host/path'
    throw new AddressError(`write git over SSH as ${form}`)
  }
  if (!URL.canParse(address)) throw new AddressError('not an address such as https://host/path')
  const url = new URL(address)
  const { protocol, username, password } = url
  if (password !== '' || (username !== '' && protocol !== 'ssh:')) {
    throw new AddressError('a user name or a password must be in the configuration file (auth), not in the address')
  }
  if (text.includes('#')) throw new AddressError('# is not allowed here: use the keys ref, path and digest')
  if (!protocols.includes(protocol)) {
    throw new AddressError(`the address must begin with ${protocols.map((each) => `${each}//`).join(' or ')}`)
  }
  if (protocol === 'http:' && !isAtLoopback(url)) {
    throw new AddressError('http:// is allowed on this machine only: give an https:// address')
  }
  return url
}

/** Parses the path of a folder in a source; slashes at its ends do not count. */
export function parsePath (path = ''): string {
  const segments = path.split('/').filter((segment) => segment !== '' && segment !== '.')
  if (segments.includes('..') || path.includes('\0') || path.includes('\\')) {
    throw new AddressError(`path ${quote(path)} leads out of the source`, { setting: 'path' })
  }
  return segments.join('/')
}

/** Returns the host name of a URL, an IPv6 address without its brackets. */
export function hostOf ({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

export function isAtLoopback (url: URL): boolean {
  return isLoopback(hostOf(url))
}

/** Makes a name from the last part of a path that has one. */
export function lastPart (path: string): string {
  const parts = path.split('/').filter((part) => part !== '').map((part) => part.replace(/\.git$/, ''))
  return parts.at(-1)?.replace(/[^\w.-]+/g, '-') || 'skills'
}

/** @throws AddressError for malformed percent-encoding */
export function decode (text: string): string {
  const decoded = decodePercent(text)
  if (decoded === undefined) throw new AddressError('the percent-encoding of the address is not valid')
  return decoded
}
