import {
  lastPart, parsePath, parseUrl, PATH_SETTING, requireLoopback, requireNoCredentials, withoutFragment, withoutKeys
} from '../address/parts.ts'
import type { SourceCommon, SourceKind } from '../address/source-kind.ts'
import { AddressError } from '../source-error.ts'
import { hostPage, type RefAndPath } from './host-page.ts'

export interface GitSource extends SourceCommon {
  readonly kind: 'git'
  /** `https:`, `ssh:`, `file:`, or `http:` of this machine; without credentials. */
  readonly url: string
  /** The first whose ref exists counts: in an address from a browser, nothing shows where the ref ends. */
  readonly at: readonly RefAndPath[]
}

/** Of the repositories themselves: git has more, some of which run programs. */
const PROTOCOLS = new Set(['https:', 'http:', 'ssh:', 'file:'])

/** As git's check-ref-format wants it, and nothing that could be an option. */
const REF = /^[\w](?:[\w./+@-]*[\w+@-])?$/

export const gitKind: SourceKind<GitSource> = {
  kind: 'git',
  protocols: [...[...PROTOCOLS].map((protocol) => `git+${protocol}`), 'https:', 'http:'],
  forms: ['git+https://', 'git+ssh://', 'git+file://', 'https:// of a page of a git host'],
  description: 'A repository: https://…, ssh://…, file://…',
  settings: {
    ref: { description: 'git: branch, tag, refs/… or full commit id; default: the default branch' },
    path: PATH_SETTING
  },
  takesHooks: true,
  parse ({ base, url, fragment }) {
    if (url.protocol.startsWith('git+')) return repository(base.slice('git+'.length), fragment)
    return url.pathname.endsWith('.git') || hostPage(url) !== undefined ? repository(base, fragment) : undefined
  },
  configure (address, { ref, path }) {
    const source = repository(withoutKeys(address).replace(/^git\+/, ''), undefined)
    if (ref === undefined && path === undefined) return source
    return { ...source, at: [{ ...ref !== undefined && { ref: parseRef(ref) }, path: parsePath(path ?? '') }] }
  },
  identity: ({ url, at }) => [url, at]
}

/** @throws AddressError for an address with credentials, and for HTTP to another machine */
function repository (text: string, fragment: string | undefined): GitSource {
  const url = parseUrl(text)
  const { protocol, hostname, username } = url
  if (!PROTOCOLS.has(protocol)) throw new AddressError('a repository is at https://, ssh:// or file://')
  if (protocol !== 'ssh:') requireNoCredentials(url)
  if (protocol === 'http:') requireLoopback(url)
  if (hostname.startsWith('-') || url.pathname.startsWith('/-') || username.startsWith('-')) {
    throw new AddressError('a host, a user and a path do not begin with "-"')
  }
  const page = protocol === 'https:' ? hostPage(url) : undefined
  const clean = page?.url ?? withoutFragment(url)
  const at = fragment === undefined ? page?.at ?? [{ path: '' }] : [parseFragment(fragment)]
  return { kind: 'git', name: lastPart(new URL(clean).pathname), layout: 'auto', url: clean, at }
}

/** `main:skills` */
function parseFragment (fragment: string): RefAndPath {
  const colon = fragment.indexOf(':')
  const ref = colon === -1 ? fragment : fragment.slice(0, colon)
  return { ...ref !== '' && { ref: parseRef(ref) }, path: colon === -1 ? '' : parsePath(fragment.slice(colon + 1)) }
}

/** @throws AddressError for a ref that git would not take, or take as an option */
function parseRef (ref: string): string {
  const isBad = ['..', '//', '@{', '/.'].some((part) => ref.includes(part)) || /\.lock(?:\/|$)/.test(ref)
  if (!REF.test(ref) || isBad) {
    const sentence = 'a ref is a branch, a tag, refs/… or a full commit id'
    throw new AddressError(`${sentence}; a path is given apart from it, as path or #ref:path`)
  }
  return ref
}
