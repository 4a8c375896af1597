import { lastPart, parsePath, parseUrl, PATH_SETTING } from '../address/parts.ts'
import type { SourceKind } from '../address/source-kind.ts'
import { AddressError } from '../source-error.ts'
import { fetchCommit, type GitSource } from './fetch-commit.ts'
import { requireGit } from './git-command.ts'
import { hostPage } from './host-page.ts'

/** Of the repositories themselves: git has more, some of which run programs. */
const PROTOCOLS = ['https:', 'http:', 'ssh:', 'file:']

/** As git's check-ref-format wants it, and nothing that could be an option. */
const REF = /^(?!.*(?:\.\.|\/\/|@\{|\/\.|\.lock(?:\/|$)))\w(?:[\w./+@-]*[\w+@-])?$/

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
