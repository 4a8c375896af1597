import { isMainFile } from '../../core/format/main-files.ts'
import { withoutEndSlashes } from '../../core/shared/text.ts'
import { decode, parsePath } from '../address/parts.ts'

/** A ref of a repository, and a folder in it. */
export interface RefAndPath {
  /** Branch, tag, `refs/…` or full commit id. Absent: the default branch. */
  readonly ref?: string
  /** '' is the top. */
  readonly path: string
}

/** Hosts whose `/owner/repository` is a repository. */
const HOSTS = ['github.com', 'www.github.com', 'gitlab.com', 'bitbucket.org', 'codeberg.org', 'gitea.com']

/** How the pages of hosts show a folder at a ref: GitLab; GitHub, Bitbucket, Gitea and Forgejo. */
const PAGES = [
  /^(?<repository>\/.+?)\/-\/(?<kind>tree|blob)\/(?<rest>.+)$/,
  /^(?<repository>\/[^/]+\/[^/]+)\/(?<kind>tree|blob|src)\/(?:(?<=\/src\/)(?:branch|tag|commit)\/)?(?<rest>.+)$/
]

/** Refs have few slashes. */
const MAX_REF_SEGMENTS = 8

/** The repository behind an address as a browser shows it; undefined for an address that is not known to be one. */
export function hostPage (url: URL): { readonly url: string, readonly at: readonly RefAndPath[] } | undefined {
  const path = withoutEndSlashes(url.pathname)
  for (const pattern of PAGES) {
    const { repository = '', kind, rest } = pattern.exec(path)?.groups ?? {}
    if (rest === undefined) continue
    const segments = parsePath(decode(rest)).split('/')
    // The page of a file shows a skill's SKILL.md: its folder is meant.
    if (kind === 'blob' || isMainFile(segments.at(-1) ?? '')) segments.pop()
    return { url: `${url.origin}${repository}`, at: splits(segments) }
  }
  const isRepository = HOSTS.includes(url.hostname) && /^\/[^/]+\/[^/]+$/.test(path)
  return isRepository ? { url: `${url.origin}${path}`, at: [{ path: '' }] } : undefined
}

/** A branch may have slashes in its name: all ways to cut it off, the shortest ref first. */
function splits (segments: readonly string[]): RefAndPath[] {
  return segments.slice(0, MAX_REF_SEGMENTS).map((_, index) =>
    ({ ref: segments.slice(0, index + 1).join('/'), path: segments.slice(index + 1).join('/') }))
}
