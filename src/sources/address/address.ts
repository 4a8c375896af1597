import { SOURCE_KINDS, type Source } from '../kinds.ts'
import { HOSTS } from '../git/host-page.ts'
import { AddressError } from '../source-error.ts'
import { requireLoopback, requireNoCredentials, SCP_LIKE, splitAddress } from './parts.ts'

const SCHEME = /^[a-z][a-z\d+.-]*:\/\//i
/** An `@` further behind may end a password with a slash in it. */
const OUTLINE = /^([^/]*\/\/)(?:(?:[^/?#]*@)?([\w.-]+(?::\d+)?)(?=[/?#]|$)(?![^]*@))?/
/** A repository as installers write it. */
const GITHUB = /^github:(?=[\w.-]+\/[\w.-]+)/i
const PROTOCOLS = new Set(SOURCE_KINDS.flatMap(({ protocols }) => protocols))

/** Whether a text that stands for skills is an address, and not a folder. */
export function isAddress (text: string): boolean {
  return SCHEME.test(text) || SCP_LIKE.test(text) || GITHUB.test(text)
}

/** What a sentence may show of an address: protocol and host. A secret may stand before the host, and behind it. */
export function outlineOf (text: string): string {
  const [, protocol = '', host = ''] = OUTLINE.exec(text) ?? []
  return `${protocol}${host && `${host}/`}…`
}

/**
 * The address that a text was meant to be; undefined for any other text. The text lacks the two slashes behind its
 * colon, as programs that join paths leave it. Or it is a repository of a known host without `https://`, or of GitHub
 * without anything.
 */
export function meantAddress (text: string): string | undefined {
  if (/^[\w-][\w.-]*\/[\w.-]+$/.test(text)) return `github:${text}`
  const [, host = ''] = /^([^/]+)\/[^/]+\/[^/]/.exec(text) ?? []
  if (HOSTS.has(host.toLowerCase())) return `https://${text}`
  const [, protocol = ''] = /^([a-z\d+-]+:)(?!\/\/)/i.exec(text) ?? []
  if (!PROTOCOLS.has(protocol.toLowerCase())) return undefined
  return text.replace(/:\/?/, protocol === 'git+file:' ? ':///' : '://')
}

/**
 * The source that an address names, with the settings of its kind.
 * @throws AddressError for what cannot be used
 */
export function parseAddress (text: string): Source {
  const address = splitAddress(text.replace(GITHUB, 'git+https://github.com/'))
  const { protocol } = address.url
  for (const kind of SOURCE_KINDS) {
    const source = kind.protocols.includes(protocol) ? kind.parse(address) : undefined
    if (source !== undefined) return source
  }
  if (PROTOCOLS.has(protocol)) {
    requireNoCredentials(address.url)
    if (protocol === 'http:') requireLoopback(address.url)
    const sentence = 'an https:// address is an archive (.zip, .tar.gz) or a page of a git host'
    throw new AddressError(`${sentence}; of a repository elsewhere it is written git+${protocol}//…`)
  }
  const forms = SOURCE_KINDS.flatMap(({ forms }) => forms)
  const list = `${forms.slice(0, -1).join(', ')} and ${forms.at(-1) ?? ''}`
  throw new AddressError(`${protocol}// is not an address of skills, use ${list}`)
}

/**
 * Several folders and addresses in one text. A colon ends an address only before what begins another one, or a folder
 * that is written `/…`, `./…`, `../…` or `~…`.
 * @param delimiter `:`, on Windows `;`
 */
export function splitRoots (text: string, delimiter: string): string[] {
  if (delimiter !== ':') return text.split(delimiter)
  const parts: string[] = []
  for (const part of text.split(':')) {
    const before = parts.at(-1)
    if (before !== undefined && continues(before, part)) parts[parts.length - 1] = `${before}:${part}`
    else parts.push(part)
  }
  return parts
}

function continues (before: string, part: string): boolean {
  if (/^[a-z][a-z\d+.-]*$/i.test(before) && part.startsWith('//')) return true
  if (before === 'github') return GITHUB.test(`github:${part}`)
  const begins = /^(?:\/|\.{1,2}\/|~)/.test(part) || PROTOCOLS.has(`${part.toLowerCase()}:`)
  return isAddress(before) && !begins && part !== ''
}
