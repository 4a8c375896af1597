import { isMainFile } from '../../core/format/main-files.ts'
import { decodePercent, withoutEndSlashes } from '../../core/shared/text.ts'
import { AddressError } from '../source-error.ts'

/** A ref of a repository, and a folder in it. */
export interface RefAndPath {
  /** Branch, tag, `refs/…` or full commit id. Absent: the default branch. */
  readonly ref?: string
  /** '' is the top. */
  readonly path: string
}

/** Hosts whose `/owner/repository` is a repository. */
export const HOSTS = new Set([
  'github.com', 'www.github.com', 'gitlab.com', 'bitbucket.org', 'codeberg.org', 'gitea.com'
])

/** How the pages of hosts show a folder at a ref: GitLab; Gitea and Forgejo; Bitbucket; GitHub. */
const PAGES = [
  /^(?<repository>\/.+?)\/-\/(?<kind>tree|blob)\/(?<rest>.+)$/,
  /^(?<repository>\/[^/]+\/[^/]+)\/(?<kind>src)\/(?:branch|tag|commit)\/(?<rest>.+)$/,
  /^(?<repository>\/[^/]+\/[^/]+)\/(?<kind>src)\/(?<rest>.+)$/,
  /^(?<repository>\/[^/]+\/[^/]+)\/(?<kind>tree|blob)\/(?<rest>.+)$/
] as const

/** Refs have few slashes. */
const MAX_REF_SEGMENTS = 8

/** The repository behind an address as a browser shows it; undefined for an address that is not known to be one. */
export function hostPage (url: URL): { readonly url: string, readonly at: readonly RefAndPath[] } | undefined {
  const path = withoutEndSlashes(url.pathname)
  for (const pattern of PAGES) {
    const { repository, kind, rest } = pattern.exec(path)?.groups ?? {}
    if (repository === undefined || rest === undefined) continue
    const segments = rest.split('/').map(decode)
    // The page of a file shows a skill's SKILL.md: its folder is meant.
    if (kind === 'blob' || isMainFile(segments.at(-1) ?? '')) segments.pop()
    return { url: `${url.origin}${repository}`, at: splits(segments) }
  }
  const isRepository = HOSTS.has(url.hostname) && /^\/[^/]+\/[^/]+$/.test(path)
  return isRepository ? { url: `${url.origin}${path}`, at: [{ path: '' }] } : undefined
}

/** A branch may have slashes in its name: all ways to cut it off, the shortest ref first. */
function splits (segments: readonly string[]): RefAndPath[] {
  if (segments.length === 0) return [{ path: '' }]
  return segments.slice(0, MAX_REF_SEGMENTS).map((_, index) => ({
    ref: segments.slice(0, index + 1).join('/'),
    path: segments.slice(index + 1).filter((segment) => segment !== '').join('/')
  }))
}

function decode (segment: string): string {
  const text = decodePercent(segment)
  if (text === undefined || text === '..' || text.startsWith('-') || /[\p{Cc}\\]/u.test(text)) {
    throw new AddressError('the address cannot be read')
  }
  return text
}
