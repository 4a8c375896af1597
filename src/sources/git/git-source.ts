import { isMainFile } from '../../core/format/main-files.ts'
import { baseName, folderOf } from '../../core/shared/paths.ts'
import { withoutEndSlashes } from '../../core/shared/text.ts'
import { decode, lastPart, parsePath, parseUrl, PATH_SETTING } from '../address/parts.ts'
import type { SourceKind } from '../address/source-kind.ts'
import { AddressError } from '../source-error.ts'
import { fetchCommit, type GitSource } from './fetch-commit.ts'
import { requireGit } from './git-command.ts'

/** Of the repositories themselves: git has more, some of which run programs. */
const PROTOCOLS = ['https:', 'http:', 'ssh:', 'file:']

/** As git's check-ref-format wants it, and nothing that could be an option. */
const REF = /^(?!.*(?:\.\.|\/\/|@\{|\/\.|\.lock(?:\/|$)))\w(?:[\w./+@-]*[\w+@-])?$/

/** Hosts whose `/owner/repository` is a repository. */
const HOSTS = ['github.com', 'www.github.com', 'gitlab.com', 'bitbucket.org', 'codeberg.org', 'gitea.com']

/** How the pages of hosts show a folder at a ref: GitLab; Gitea and Forgejo; GitHub and Bitbucket. */
const PAGES = [
  /^(?<repository>\/.+?)\/-\/(?<kind>tree|blob)\/(?<ref>[^/]+)\/?(?<rest>.*)$/,
  /^(?<repository>\/[^/]+\/[^/]+)\/src\/(?:branch|tag|commit)\/(?<ref>[^/]+)\/?(?<rest>.*)$/,
  /^(?<repository>\/[^/]+\/[^/]+)\/(?<kind>tree|blob|src)\/(?<ref>[^/]+)\/?(?<rest>.*)$/
]

export const gitKind: SourceKind<GitSource> = {
  kind: 'git',
  protocols: [...PROTOCOLS.map((protocol) => `git+${protocol}`), 'https:', 'http:'],
  isAddress: (url) => url.protocol.startsWith('git+') || url.pathname.endsWith('.git') || hostPage(url) !== undefined,
  description: 'A repository: https://…, ssh://…, file://…',
  settings: {
    ref: { description: 'git: branch, tag, refs/… or full commit id; default: the default branch' },
    path: PATH_SETTING
  },
  intervalMs: 60_000,
  /** `main:skills` */
  parseFragment (fragment) {
    const [, ref, path] = /^([^:]*)(?::(.*))?$/s.exec(fragment) ?? []
    return { ref: ref || undefined, path: path ?? '' }
  },
  takesHooks: true,
  create (address, { ref, path }) {
    const url = parseUrl(address, PROTOCOLS)
    if ([url.hostname, url.pathname.slice(1), url.username].some((part) => part.startsWith('-'))) {
      throw new AddressError('a host, a user and a path do not begin with "-"')
    }
    const page = (url.protocol === 'https:' ? hostPage(url) : undefined) ?? { url: url.href }
    const at = ref === undefined && path === undefined ? page : { ref, path }
    if (at.ref !== undefined && !REF.test(at.ref)) {
      const sentence = 'a ref is a branch, a tag, refs/… or a full commit id'
      throw new AddressError(`${sentence}; a path is given apart from it, as path or #ref:path`)
    }
    const name = lastPart(new URL(page.url).pathname)
    return { kind: 'git', name, layout: 'auto', url: page.url, ref: at.ref, path: parsePath(at.path) }
  },
  check: async (_source, env) => { await requireGit(env) },
  fetch: fetchCommit
}

interface HostPage {
  readonly url: string
  readonly ref?: string
  readonly path?: string
}

/**
 * The repository behind an address as a browser shows it, with the ref and the folder of a page. A ref has no slash
 * there: nothing shows where one would end.
 * @returns undefined for an address that is not known to be one
 */
function hostPage (url: URL): HostPage | undefined {
  const pathname = withoutEndSlashes(url.pathname)
  for (const pattern of PAGES) {
    const { repository = '', kind, ref = '', rest = '' } = pattern.exec(pathname)?.groups ?? {}
    if (ref === '') continue
    // The page of a file shows a skill's SKILL.md: its folder is meant.
    const isFile = kind === 'blob' || isMainFile(baseName(rest))
    return { url: `${url.origin}${repository}`, ref: decode(ref), path: decode(isFile ? folderOf(rest) : rest) }
  }
  const isRepository = HOSTS.includes(url.hostname) && /^\/[^/]+\/[^/]+$/.test(pathname)
  return isRepository ? { url: `${url.origin}${pathname}` } : undefined
}
