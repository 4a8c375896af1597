import { withoutEndSlashes } from '../core/shared/text.ts'
import { type Environment, quote } from '../operator/setting.ts'
import { decode, DIGEST, lastPart, PACKED_FILE, parsePath, parseUrl } from './address/address.ts'
import type {
  ArchiveSource, FolderRoot, GitSource, OciSource, S3Source, SiteSource, SourceCommon, SourceKind
} from './address/source-kind.ts'
import { hostPage, isRef } from './git/git-address.ts'
import { AddressError } from './source-error.ts'

export type Source = ArchiveSource | GitSource | S3Source | OciSource | SiteSource

/** A root as the operator configures it: a folder, or a source that is fetched. */
export type RootSpec = FolderRoot | Source

const WEB = ['https:', 'http:']

/** The protocols of repositories: git has more, some of which run programs. */
const GIT = [...WEB, 'ssh:', 'file:']

const PATH_SETTING = { description: 'A folder in the source' } as const

const archiveKind: SourceKind<ArchiveSource> = {
  kind: 'archive',
  protocols: WEB,
  isAddress: ({ pathname }) => PACKED_FILE.test(pathname),
  description: 'An archive: https://….zip, https://….tar.gz',
  settings: {
    path: PATH_SETTING,
    digest: {
      pattern: DIGEST.source,
      title: 'sha256: and 64 hexadecimal digits',
      description: 'archive: publish only bytes with this digest'
    }
  },
  intervalMs: 300_000,
  /** Parses a digest, a folder in the archive, or both: `sha256:…:skills`. */
  parseFragment (fragment) {
    const [, digest, path] = /^(sha256:[^:]*)?:?(.*)$/s.exec(fragment) ?? []
    return { digest, path }
  },
  create (address, { path, digest }) {
    const { href, pathname } = parseUrl(address, WEB)
    if (digest !== undefined && !DIGEST.test(digest)) {
      throw new AddressError('a digest must be sha256: and 64 hexadecimal digits')
    }
    const name = lastPart(pathname.replace(PACKED_FILE, ''))
    return { kind: 'archive', name, layout: 'auto', url: href, path: parsePath(path), digest }
  },
  load: () => import('./archive/archive-source.ts')
}

const gitKind: SourceKind<GitSource> = {
  kind: 'git',
  protocols: [...GIT.map((protocol) => `git+${protocol}`), ...WEB],
  isAddress: (url) => url.protocol.startsWith('git+') || url.pathname.endsWith('.git') || hostPage(url) !== undefined,
  description: 'A repository: https://…, ssh://…, file://…',
  settings: {
    ref: { description: 'git: branch, tag, refs/… or full commit id; default: the default branch' },
    path: PATH_SETTING
  },
  intervalMs: 60_000,
  takesHooks: true,
  /** `main:skills` */
  parseFragment (fragment) {
    const [, ref, path] = /^([^:]*)(?::(.*))?$/s.exec(fragment) ?? []
    return { ref: ref || undefined, path: path ?? '' }
  },
  create (address, { ref, path }) {
    const url = parseUrl(address, GIT)
    if ([url.hostname, url.pathname.slice(1), url.username].some((part) => part.startsWith('-'))) {
      throw new AddressError('a host, a user and a path must not begin with "-"')
    }
    const page = (url.protocol === 'https:' ? hostPage(url) : undefined) ?? { url: url.href }
    const at = ref === undefined && path === undefined ? page : { ref, path }
    if (at.ref !== undefined && !isRef(at.ref)) {
      const remedy = 'use a branch, a tag, refs/… or a full commit id, and give a folder as path or #ref:path'
      throw new AddressError(`${quote(at.ref)} is not a ref of git: ${remedy}`, { setting: 'ref' })
    }
    const name = lastPart(new URL(page.url).pathname)
    return { kind: 'git', name, layout: 'auto', url: page.url, ref: at.ref, path: parsePath(at.path) }
  },
  load: () => import('./git/git-source.ts')
}

const BUCKET = /^[a-z\d][a-z\d.-]{1,61}[a-z\d]$/

const s3Kind: SourceKind<S3Source> = {
  kind: 's3',
  protocols: ['s3:'],
  description: 'A bucket: s3://bucket/prefix',
  settings: {
    endpoint: { description: 's3: the address of the service; default: Amazon' },
    region: { description: 's3: default us-east-1' },
    marker: { description: 's3: a key that is written last; nothing is read before it changes' }
  },
  intervalMs: 300_000,
  create (address, { endpoint, region, marker }) {
    const { hostname: bucket, pathname, search } = parseUrl(address, ['s3:'])
    if (!BUCKET.test(bucket) || search !== '') throw new AddressError('write a bucket as s3://bucket/prefix')
    if (endpoint !== undefined) checkEndpoint(endpoint)
    const path = withoutEndSlashes(decode(pathname)).replace(/^\/+/, '')
    const [name, prefixPath] = path === '' ? [bucket, ''] : [lastPart(path), `${path}/`]
    return { kind: 's3', name, layout: 'auto', bucket, prefixPath, endpoint, region, marker }
  },
  load: () => import('./s3/s3-source.ts')
}

function checkEndpoint (text: string): void {
  try {
    parseUrl(text, WEB)
  } catch {
    throw new AddressError('the endpoint of a bucket must be an https:// address without credentials')
  }
}

const REPOSITORY = /^[a-z\d]+(?:[._-]+[a-z\d]+)*(?:\/[a-z\d]+(?:[._-]+[a-z\d]+)*)*$/
const TAG = /^\w[\w.-]{0,127}$/

const ociKind: SourceKind<OciSource> = {
  kind: 'oci',
  protocols: ['oci:'],
  description: 'An artifact of a registry: oci://host/name:tag',
  settings: { path: PATH_SETTING },
  intervalMs: 60_000,
  parseFragment: (path) => ({ path }),
  create (address, { path }) {
    const { host: registry, pathname } = parseUrl(address, ['oci:'])
    const [, repository = '', tag, digest] = /^\/([^:@]+)(?::([^@]+))?(?:@(.+))?$/.exec(pathname) ?? []
    if (registry === '' || !REPOSITORY.test(repository)) {
      throw new AddressError('write an artifact as oci://host/name:tag or oci://host/name@sha256:…')
    }
    const reference = digest ?? tag
    if (reference === undefined) throw new AddressError('an oci:// address needs a tag or a digest')
    if (digest === undefined ? !TAG.test(reference) : !DIGEST.test(reference)) {
      throw new AddressError('an oci:// address must end with :tag or @sha256: and 64 hexadecimal digits')
    }
    const name = lastPart(repository)
    return { kind: 'oci', name, layout: 'auto', registry, repository, reference, path: parsePath(path) }
  },
  load: () => import('./oci/oci-source.ts')
}

const siteKind: SourceKind<SiteSource> = {
  kind: 'site',
  protocols: WEB.map((protocol) => `well-known+${protocol}`),
  description: 'A site that publishes skills by Agent Skills Discovery: https://host/path',
  settings: {},
  intervalMs: 300_000,
  create (address) {
    const { pathname, hostname, port, origin, search } = parseUrl(address, WEB)
    if (search !== '') throw new AddressError('write a site as https://host/path, without a query')
    const path = withoutEndSlashes(pathname)
    const name = path === '' ? hostname.replace(/[^\w.-]+/g, '') : lastPart(path)
    return { kind: 'site', name: port === '' ? name : `${name}-${port}`, layout: 'flat', url: origin + path }
  },
  load: () => import('./site/site-source.ts')
}

/**
 * The kinds of sources that are fetched: a new kind is an entry here, and a file that fetches it. The first kind that
 * takes an address has it: an archive on a git host is an archive.
 */
export const SOURCE_KINDS: ReadonlyArray<SourceKind<Source>> = [archiveKind, gitKind, s3Kind, ociKind, siteKind]

export function kindOf ({ kind }: Source): SourceKind<Source> {
  return SOURCE_KINDS.find((each) => each.kind === kind) as SourceKind<Source>
}

/**
 * Checks what has to be there before sources can be fetched, such as git.
 * @throws AddressError with what to install or to set
 */
export async function checkSources (specs: readonly RootSpec[], env: Environment): Promise<void> {
  for (const spec of specs) if (spec.kind !== 'folder') await (await kindOf(spec).load()).check?.(spec, env)
}

/** Returns what decides which skills a source has: with another address, layout or prefix it is another source. */
export function identityOf (source: Source): unknown {
  const {
    type, intervalMs, timeoutMs, optional, auth, webhookSecretFile, configFile, ...identity
  }: Source & SourceCommon = source
  return identity
}

/** A GitHub repository, as installers write it. */
const GITHUB = /^github:(?=[\w.-]+\/[\w.-]+)/i

/**
 * Parses the address of a source, with the settings of its kind behind `#`.
 * @throws AddressError for what cannot be used
 */
export function parseAddress (text: string): Source {
  if (/^github:/i.test(text) && !GITHUB.test(text)) throw new AddressError('write it as github:OWNER/REPOSITORY')
  const [address = '', ...rest] = text.replace(GITHUB, 'git+https://github.com/').split('#')
  const protocol = URL.canParse(address) ? new URL(address).protocol : ''
  const kinds = SOURCE_KINDS.filter(({ protocols }) => protocols.includes(protocol))
  const kind = kinds.find(({ isAddress }) => isAddress?.(new URL(address)) ?? true)
  if (kind === undefined) {
    parseUrl(address, kinds.length === 0 ? [protocol] : WEB)
    const all = new Set(SOURCE_KINDS.flatMap(({ protocols }) => protocols.map((each) => `${each}//`)))
    throw new AddressError(kinds.length === 0
      ? `${protocol}// is not an address of skills; use ${[...all].join(', ')}`
      : 'an https:// address must be an archive (.zip, .tar.gz) or a page of a git host; ' +
        `for a repository elsewhere write git+${protocol}//…`)
  }
  if (rest.length === 0) return kind.create(address, {})
  if (kind.parseFragment === undefined) throw new AddressError(`# is not allowed in a ${kind.kind} address`)
  return kind.create(address, kind.parseFragment(decode(rest.join('#'))))
}
