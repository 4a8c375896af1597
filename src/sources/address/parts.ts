import { decodePercent } from '../../core/shared/text.ts'
import { quote } from '../../operator/setting.ts'
import { isLoopback } from '../../http/request/hosts.ts'
import { AddressError } from '../source-error.ts'

/** `sha256:` and 64 digits, as archives and registries name bytes. */
export const DIGEST = /^sha256:[0-9a-f]{64}$/

/** A setting of the kinds whose sources have folders. */
export const PATH_SETTING = { description: 'A folder in the source' } as const

/** As git and people write it, and no URL. */
export const SCP_LIKE = /^[\w.-]+@[\w.-]+:(?!\/\/)/

/**
 * Reads an address without its fragment, and without the kind in front of its protocol: `git+https://…`.
 * @param protocols the ones that are allowed; `http:` is for this machine only
 * @throws AddressError for an address that cannot be used, or would show a secret
 */
export function parseUrl (text: string, protocols: readonly string[]): URL {
  const address = text.replace(/^(?:git|well-known)\+/, '')
  if (SCP_LIKE.test(address)) {
    const form = 'git+ssh://user@host/path, in the configuration file git: ssh://user@host/path'
    throw new AddressError(`an address of git over SSH is ${form}`)
  }
  if (!URL.canParse(address)) throw new AddressError('it is not an address such as https://host/path')
  const url = new URL(address)
  const { protocol, username, password } = url
  if (password !== '' || (username !== '' && protocol !== 'ssh:')) {
    const problem = 'an address with a user name or a password would show a secret'
    throw new AddressError(`${problem}: give it in the configuration file (auth)`)
  }
  if (text.includes('#')) throw new AddressError('what stands behind # has keys of its own here: ref, path, digest')
  if (!protocols.includes(protocol)) {
    throw new AddressError(`it begins with ${protocols.map((each) => `${each}//`).join(' or ')}`)
  }
  if (protocol === 'http:' && !isAtLoopback(url)) {
    throw new AddressError('http:// is for this machine only: give an https:// address')
  }
  return url
}

/** A folder in a source, without slashes at its ends. */
export function parsePath (path = ''): string {
  const segments = path.split('/').filter((segment) => segment !== '' && segment !== '.')
  if (segments.includes('..') || path.includes('\0') || path.includes('\\')) {
    throw new AddressError(`path ${quote(path)} leads out of the source`, { setting: 'path' })
  }
  return segments.join('/')
}

export function isAtLoopback ({ hostname }: URL): boolean {
  return isLoopback(hostname.replace(/^\[|\]$/g, ''))
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
