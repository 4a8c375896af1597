import { isLoopback } from '../../http/request/hosts.ts'
import { hostPage } from './host-page.ts'
import { AddressError } from '../source-error.ts'
import type { ArchiveSource, GitSource, OciSource, RefAndPath, S3Source, Source } from './source-spec.ts'

const SCHEME = /^[a-z][a-z\d+.-]*:\/\//i
const SCP_LIKE = /^[\w.-]+@[\w.-]+:(?!\/\/)/
const ARCHIVE = /\.(?:zip|skill|tar\.gz|tgz|tar)$/i
const DIGEST = /^sha256:[\da-f]{64}$/
const FORMS = 'git+https://, git+ssh://, git+file://, https:// of an archive or of a page of a git host, s3:// and oci://'

/** As git's check-ref-format wants it, and nothing that could be an option. */
const REF = /^[\w](?:[\w./+@-]*[\w+@-])?$/

const BUCKET = /^[a-z\d][a-z\d.-]{1,61}[a-z\d]$/
const REPOSITORY = /^[a-z\d]+(?:[._-]+[a-z\d]+)*(?:\/[a-z\d]+(?:[._-]+[a-z\d]+)*)*$/
const TAG = /^\w[\w.-]{0,127}$/

/** Whether a text that stands for skills is an address, and not a folder. */
export function isAddress (text: string): boolean {
  return SCHEME.test(text) || SCP_LIKE.test(text)
}

/**
 * The source that an address names, with the settings of its kind.
 * @throws AddressError for what cannot be used
 */
export function parseAddress (text: string): Source {
  if (SCP_LIKE.test(text)) throw new AddressError('an address of git over SSH is written git+ssh://user@host/path')
  const { base, fragment } = splitFragment(text)
  const url = parseUrl(base)
  switch (url.protocol) {
    case 'git+https:':
    case 'git+http:':
    case 'git+ssh:':
    case 'git+file:':
      return gitSource(base.slice('git+'.length), fragment)
    case 'https:':
    case 'http:':
      return webSource(base, url, fragment)
    case 's3:':
      return s3Source(url)
    case 'oci:':
      return ociSource(base, fragment)
    default:
      throw new AddressError(`${url.protocol}// is no address of skills, there are ${FORMS}`)
  }
}

/**
 * Several folders and addresses in one text. A colon ends an address only before what begins another one, or a folder that
 * is written `/…`, `./…`, `../…` or `~…`.
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
  return SCHEME.test(before) && !/^(?:\/|\.{1,2}\/|~)/.test(part) && !/^(?:git\+(?:https?|ssh|file)|https?|s3|oci)$/i.test(part) && part !== ''
}

/** @throws AddressError for an address with credentials, and for HTTP to another machine */
export function gitSource (text: string, fragment: string | undefined): GitSource {
  const url = parseUrl(text)
  const { protocol, hostname, username } = url
  if (protocol !== 'ssh:' && username !== '') throw new AddressError('an address with a user name would show a secret: give it in the configuration file (auth)')
  if (protocol === 'http:') requireLoopback(url)
  if (hostname.startsWith('-') || url.pathname.startsWith('/-') || username.startsWith('-')) throw new AddressError('a host, a user and a path do not begin with "-"')
  if (protocol !== 'file:' && hostname === '') throw new AddressError('the address has no host')
  const page = protocol === 'https:' ? hostPage(url) : undefined
  const clean = page?.url ?? withoutFragment(url)
  const at = fragment === undefined ? page?.at ?? [{ path: '' }] : [parseFragment(fragment)]
  return { kind: 'git', name: lastPart(new URL(clean).pathname), layout: 'auto', url: clean, at }
}

function webSource (text: string, url: URL, fragment: string | undefined): Source {
  requireNoCredentials(url)
  if (url.protocol === 'http:') requireLoopback(url)
  if (ARCHIVE.test(url.pathname)) return archiveSource(url.href, fragment)
  if (url.pathname.endsWith('.git') || hostPage(url) !== undefined) return gitSource(text, fragment)
  throw new AddressError(`an https:// address is an archive (.zip, .tar.gz) or a page of a git host; of a repository elsewhere it is written git+${url.protocol}//…`)
}

/** @param fragment a digest, a folder in the archive, or both: `sha256:…:skills` */
export function archiveSource (href: string, fragment?: string): ArchiveSource {
  const url = parseUrl(href)
  requireNoCredentials(url)
  if (url.protocol === 'http:') requireLoopback(url)
  else if (url.protocol !== 'https:') throw new AddressError('an archive is at an https:// address')
  const digest = fragment === undefined ? undefined : /^sha256:[^:]*/.exec(fragment)?.[0]
  if (digest !== undefined && !DIGEST.test(digest)) throw new AddressError('a digest is sha256: and 64 hexadecimal digits')
  const path = digest === undefined ? fragment : fragment?.slice(digest.length + 1)
  return { kind: 'archive', name: lastPart(url.pathname.replace(ARCHIVE, '')), layout: 'auto', url: withoutFragment(url), path: parsePath(path ?? ''), ...digest !== undefined && { digest } }
}

function s3Source (url: URL): S3Source {
  requireNoCredentials(url)
  const bucket = url.hostname
  if (!BUCKET.test(bucket)) throw new AddressError('an address of a bucket is s3://bucket/prefix')
  const prefixPath = decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, '')
  return { kind: 's3', name: prefixPath === '' ? bucket : lastPart(prefixPath), layout: 'auto', bucket, prefixPath }
}

export function ociSource (text: string, fragment: string | undefined): OciSource {
  const [, registry = '', rest = ''] = /^oci:\/\/([^/@]+)\/(.+)$/.exec(text) ?? []
  const [, repository = '', tag, digest] = /^([^:@]+)(?::([^@]+))?(?:@(.+))?$/.exec(rest) ?? []
  const host = URL.canParse(`https://${registry}`) ? new URL(`https://${registry}`).hostname : ''
  if (host === '' || !REPOSITORY.test(repository)) throw new AddressError('an address of a registry is oci://host/name:tag or oci://host/name@sha256:…')
  const reference = digest ?? tag
  if (reference === undefined) throw new AddressError('an oci:// address needs a tag or a digest: there is no default')
  if (digest === undefined ? !TAG.test(reference) : !DIGEST.test(reference)) throw new AddressError('an address of a registry ends with :tag or @sha256: and 64 hexadecimal digits')
  return { kind: 'oci', name: lastPart(repository), layout: 'auto', registry, repository, reference, path: parsePath(fragment ?? '') }
}

/** @throws AddressError for a ref that git would not take, or take as an option */
export function parseRef (ref: string): string {
  if (!REF.test(ref) || ref.includes('..') || ref.includes('//') || ref.includes('@{') || /\.lock(?:\/|$)/.test(ref) || ref.includes('/.')) {
    throw new AddressError('a ref is a branch, a tag, refs/… or a full commit id')
  }
  if (/^[\da-f]{4,39}$/.test(ref) && /\d/.test(ref)) throw new AddressError('a commit is given with its full id: a short one may become ambiguous')
  return ref
}

/** A folder in a source, without slashes at its ends. */
export function parsePath (path: string): string {
  const segments = path.split('/').filter((segment) => segment !== '' && segment !== '.')
  if (segments.includes('..') || path.includes('\0') || path.includes('\\')) throw new AddressError('a path stays inside the source')
  return segments.join('/')
}

/** `main:skills` */
function parseFragment (fragment: string): RefAndPath {
  const colon = fragment.indexOf(':')
  const ref = colon === -1 ? fragment : fragment.slice(0, colon)
  return { ...ref !== '' && { ref: parseRef(ref) }, path: colon === -1 ? '' : parsePath(fragment.slice(colon + 1)) }
}

function splitFragment (text: string): { base: string, fragment: string | undefined } {
  const hash = text.indexOf('#')
  return hash === -1 ? { base: text, fragment: undefined } : { base: text.slice(0, hash), fragment: decode(text.slice(hash + 1)) }
}

function decode (text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new AddressError('the part behind # is not percent-encoded as it should be')
  }
}

function parseUrl (text: string): URL {
  if (/[\s\p{Cc}]/u.test(text) || !URL.canParse(text)) throw new AddressError('the address cannot be read')
  const url = new URL(text)
  if (url.password !== '') throw new AddressError('an address with a password would show it: give it in the configuration file (auth)')
  return url
}

function requireNoCredentials ({ username }: URL): void {
  if (username !== '') throw new AddressError('an address with a user name would show a secret: give it in the configuration file (auth)')
}

function requireLoopback ({ hostname }: URL): void {
  if (!isLoopback(hostname.replace(/^\[|\]$/g, ''))) throw new AddressError('http:// is for this machine only: give an https:// address')
}

function withoutFragment (url: URL): string {
  const copy = new URL(url)
  copy.hash = ''
  return copy.href
}

/** A name from the last part of a path that has one. */
function lastPart (path: string): string {
  const parts = path.split('/').filter((part) => part !== '').map((part) => part.replace(/\.git$/, ''))
  return parts.at(-1)?.replace(/[^\w.-]+/g, '-') || 'skills'
}
