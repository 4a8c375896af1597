import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { reasonOf } from '../../operator/files.ts'
import { homeOf } from '../../operator/home.ts'
import { type Environment, quote } from '../../operator/setting.ts'
import { isMainFile } from '../../core/format/main-files.ts'
import { baseName, folderOf } from '../../core/shared/paths.ts'
import { withoutEndSlashes } from '../../core/shared/text.ts'
import { shellWord } from '../../operator/shell-word.ts'
import { decode, lastPart, parsePath, parseUrl, PATH_SETTING } from '../address/parts.ts'
import type { Fetched, FetchOptions, SourceAuth, SourceCommon, SourceKind } from '../address/source-kind.ts'
import { readSecret } from '../secrets.ts'
import { AddressError, SourceError } from '../source-error.ts'
import { type GitOptions, type ReadOutput, requireGit, runGit, wholeOutput } from './git-command.ts'
import { DamagedStoreError } from './git-errors.ts'
import { readCommit, type RunInStore } from './git-files.ts'

/** Of the repositories themselves: git has more, some of which run programs. */
const PROTOCOLS = ['https:', 'http:', 'ssh:', 'file:']

/** A ref by the rules of `git check-ref-format --allow-onelevel`, and nothing that could be an option. */
const REF = /^(?![-./]|@$|.*(?:\.\.|\/\/|@\{|\/\.|\.lock(?:\/|$)))[^\p{Cc} ~^:?*[\\]+(?<![./])$/u

/** Hosts whose `/owner/repository` is a repository. */
const HOSTS = ['github.com', 'www.github.com', 'gitlab.com', 'bitbucket.org', 'codeberg.org', 'gitea.com']

/** How the pages of hosts show a folder at a ref: GitLab; Gitea and Forgejo; GitHub and Bitbucket. */
const PAGES = [
  /^(?<repository>\/.+?)\/-\/(?<kind>tree|blob)\/(?<ref>[^/]+)\/?(?<rest>.*)$/,
  /^(?<repository>\/[^/]+\/[^/]+)\/src\/(?:branch|tag|commit)\/(?<ref>[^/]+)\/?(?<rest>.*)$/,
  /^(?<repository>\/[^/]+\/[^/]+)\/(?<kind>tree|blob|src)\/(?<ref>[^/]+)\/?(?<rest>.*)$/
]

const COMMIT_ID = /^(?:[\da-f]{40}|[\da-f]{64})$/
const SHA256_LENGTH = 64

const FETCH_OPTIONS = [
  '--quiet', '--force', '--no-tags', '--depth=1', '--no-write-fetch-head', '--no-recurse-submodules'
]

/** The ref that holds the fetched commit in the store. */
const OWN_REF = 'refs/skillserve/fetched'

export interface GitSource extends SourceCommon {
  readonly kind: 'git'
  /** `https:`, `ssh:`, `file:`, or `http:` of this machine; without credentials. */
  readonly url: string
  /** Branch, tag, `refs/…` or full commit id. Undefined: the default branch. */
  readonly ref: string | undefined
  /** A folder; '' is the top. */
  readonly path: string
}

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
      const remedy = 'use a branch, a tag, refs/… or a full commit id, and give a folder as path or #ref:path'
      throw new AddressError(`${quote(at.ref)} is not a ref of git: ${remedy}`, { setting: 'ref' })
    }
    const name = lastPart(new URL(page.url).pathname)
    return { kind: 'git', name, layout: 'auto', url: page.url, ref: at.ref, path: parsePath(at.path) }
  },
  check: async (_source, env) => { await requireGit(env) },
  fetch: fetchCommit
}

type HostPage = Pick<GitSource, 'url'> & Partial<Pick<GitSource, 'ref' | 'path'>>

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

type Remote = Omit<GitOptions, 'args'>

/** Fetches one commit of a repository into a bare store in the cache, by the system's git. */
async function fetchCommit (source: GitSource, options: FetchOptions): Promise<Fetched | undefined> {
  const { url, ref, path } = source
  const { known, signal, cache, env } = options
  const { commit: published = '' } = known ?? {}
  if (published === ref) return undefined
  await mkdir(cache, { recursive: true, mode: 0o700 })
  const remote = await connection(source, options)
  const { name, label, commit: expected } = await resolveRef(source, remote)
  if (published === expected) return undefined
  const store = join(cache, 'store')
  const inStore = async <T>(git: Remote, args: readonly string[], read: ReadOutput<T>): Promise<T> => {
    try {
      return await runGit({ ...git, args: ['--git-dir', store, ...args] }, read)
    } catch (error) {
      if (error instanceof DamagedStoreError) await rm(store, { recursive: true, force: true })
      throw error
    }
  }
  const run: RunInStore = (args, read, input) => inStore({ env, signal, input }, args, read)
  if (!existsSync(join(store, 'HEAD'))) {
    const format = (expected ?? label).length === SHA256_LENGTH ? ['--object-format=sha256'] : []
    await run(['init', '--quiet', '--bare', '--template=', ...format], wholeOutput)
  }
  await inStore(remote, ['fetch', ...FETCH_OPTIONS, '--', url, `+${name}:${OWN_REF}`], wholeOutput)
  const tip = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${OWN_REF}^{commit}`]
  const commit = (await run(tip, wholeOutput)).toString().trim()
  const isPinned = COMMIT_ID.test(label)
  if (isPinned && commit !== label) {
    throw new SourceError('ref_not_found', 'the host gave another commit than the one that was asked for')
  }
  const { files, leftOut } = await readCommit(run, commit, path)
  const algorithm = commit.length === SHA256_LENGTH ? 'sha256' : 'sha1'
  const revision = `${isPinned ? '' : `${label}@`}${algorithm}:${commit}`
  return { revision, memory: { commit }, files, leftOut, path }
}

/** A ref as the host has it. For a commit id, which is taken as it is, the host is not asked. */
async function resolveRef ({ ref, url }: GitSource, remote: Remote) {
  if (ref !== undefined && COMMIT_ID.test(ref)) return { name: ref, label: ref, commit: undefined }
  const short = ref ?? 'HEAD'
  const isFull = short === 'HEAD' || short.startsWith('refs/')
  const names = isFull ? [short] : [`refs/heads/${short}`, `refs/tags/${short}`]
  const patterns = names.flatMap((name) => [name, `${name}^{}`])
  const args = ['ls-remote', '--quiet', '--symref', '--', url, ...patterns]
  const listing = (await runGit({ ...remote, args }, wholeOutput)).toString()
  const ids = new Map([...listing.matchAll(/^([\da-f]{40,64})\t(.+)$/gm)].map(([, id, name]) => [name, id]))
  const [, branch = 'HEAD'] = /^ref: refs\/heads\/(.+)\tHEAD$/m.exec(listing) ?? []
  for (const name of names) {
    // Of an annotated tag, the commit and not the tag.
    const commit = ids.get(`${name}^{}`) ?? ids.get(name)
    if (commit !== undefined) return { name, label: ref ?? branch, commit }
  }
  throw new SourceError('ref_not_found', ref === undefined
    ? 'the host shows no default branch: the repository is empty, or a branch has to be given as ref'
    : `the host has no branch or tag ${JSON.stringify(ref)}; a commit is given by its full id`)
}

/** What every call to the host needs. Credentials are read for each fetch. */
async function connection (
  { url, auth = {} }: GitSource, { cache, env, signal }: FetchOptions
): Promise<Remote> {
  const { protocol, origin } = new URL(url)
  const common = { env, signal, protocol: protocol.slice(0, -1) }
  if (protocol === 'ssh:') return { ...common, sshCommand: sshCommand(auth, env) }
  const config = await authorities(cache, env)
  const secret = await readSecret(auth, env)
  if (secret === undefined) return { ...common, config }
  const credentials = Buffer.from(`${auth.username ?? 'x-access-token'}:${secret}`).toString('base64')
  const header = [`http.${origin}/.extraHeader`, `Authorization: Basic ${credentials}`] as const
  return { ...common, config: [...config, header], secrets: [secret, credentials] }
}

/** Where Node trusts additional authorities, git does too; without the usual ones in its file, it would drop them. */
async function authorities (folder: string, env: Environment): Promise<Array<readonly [key: string, value: string]>> {
  const extra = env['NODE_EXTRA_CA_CERTS']
  if (!extra) return []
  const text = await readFile(extra, 'utf8').catch((error: unknown) => {
    throw new SourceError('tls', `the file of NODE_EXTRA_CA_CERTS cannot be read (${reasonOf(error)})`)
  })
  const path = join(folder, 'authorities.pem')
  await writeFile(path, [...rootCertificates, text].join('\n'))
  return [['http.sslCAInfo', path]]
}

/** git gives the command to a shell. */
function sshCommand (auth: SourceAuth, env: Environment): string {
  const { keyFile } = auth
  const home = homeOf(env)
  const knownHostsFile = auth.knownHostsFile ?? (home ? join(home, '.ssh', 'known_hosts') : '/dev/null')
  const options = [
    'BatchMode=yes', 'StrictHostKeyChecking=yes', `UserKnownHostsFile=${knownHostsFile}`,
    'GlobalKnownHostsFile=/dev/null', 'ConnectTimeout=15', ...keyFile === undefined ? [] : ['IdentitiesOnly=yes']
  ]
  const key = keyFile === undefined ? [] : ['-i', keyFile]
  return ['ssh', '-F', '/dev/null', ...key, ...options.flatMap((option) => ['-o', option])].map(shellWord).join(' ')
}
