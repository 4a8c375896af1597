import { isMainFile } from '../../core/format/main-files.ts'
import { baseName, folderOf } from '../../core/shared/paths.ts'
import { withoutEndSlashes } from '../../core/shared/text.ts'
import { decode } from '../address/address.ts'
import type { GitSource } from '../address/source-kind.ts'

/** A ref that `git check-ref-format --allow-onelevel` accepts, and that git cannot take for an option. */
const REF = /^(?![-./]|@$|.*(?:\.\.|\/\/|@\{|\/\.|\.lock(?:\/|$)))[^\p{Cc} ~^:?*[\\]+(?<![./])$/u

/** Hosts whose `/owner/repository` is a repository. */
const HOSTS = ['github.com', 'www.github.com', 'gitlab.com', 'bitbucket.org', 'codeberg.org', 'gitea.com']

/** Paths of web pages that show a folder at a ref: GitLab; Gitea and Forgejo; GitHub and Bitbucket. */
const PAGES = [
  /^(?<repository>\/.+?)\/-\/(?<kind>tree|blob)\/(?<ref>[^/]+)\/?(?<rest>.*)$/,
  /^(?<repository>\/[^/]+\/[^/]+)\/src\/(?:branch|tag|commit)\/(?<ref>[^/]+)\/?(?<rest>.*)$/,
  /^(?<repository>\/[^/]+\/[^/]+)\/(?<kind>tree|blob|src)\/(?<ref>[^/]+)\/?(?<rest>.*)$/
]

export function isRef (text: string): boolean {
  return REF.test(text)
}

/**
 * Finds the repository behind an address as a browser shows it, with the ref and the folder of a page. A ref has no
 * slash there: nothing shows where one would end.
 * @returns undefined for an address that is not known to be one
 */
export function hostPage (url: URL): Pick<GitSource, 'url'> & Partial<Pick<GitSource, 'ref' | 'path'>> | undefined {
  const pathname = withoutEndSlashes(url.pathname)
  for (const pattern of PAGES) {
    const { repository = '', kind, ref = '', rest = '' } = pattern.exec(pathname)?.groups ?? {}
    if (ref === '') continue
    // The page of a SKILL.md stands for the folder of the skill.
    const isFile = kind === 'blob' || isMainFile(baseName(rest))
    return { url: `${url.origin}${repository}`, ref: decode(ref), path: decode(isFile ? folderOf(rest) : rest) }
  }
  const isRepository = HOSTS.includes(url.hostname) && /^\/[^/]+\/[^/]+$/.test(pathname)
  return isRepository ? { url: `${url.origin}${pathname}` } : undefined
}
