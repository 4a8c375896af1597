import { hash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rm, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import pLimit, { type LimitFunction } from 'p-limit'
import type { Environment } from '../../config/setting.ts'
import { shellWord } from '../../core/shared/text.ts'
import { homeOf } from '../../config/files/home.ts'
import type { Fetched, Fetcher } from '../fetcher.ts'
import type { SourceFiles } from '../publish/source-tree.ts'
import { readSecret } from '../secrets.ts'
import { AddressError, SourceError } from '../source-error.ts'
import type { SourceAuth } from '../address/source-kind.ts'
import { gitVersion, type GitOptions, type GitSurroundings, runGit, writeAuthorities } from './git-command.ts'
import { storeError } from './git-errors.ts'
import { readCommit, type RunInStore } from './git-files.ts'
import type { GitSource } from './git-source.ts'

const INTERVAL_MS = 60_000

const SHA256_LENGTH = 64
const COMMIT_ID = /^(?:[\da-f]{40}|[\da-f]{64})$/
const SHORT_COMMIT_ID = /^[\da-f]{4,63}$/

/** Packs of a store before it is packed anew without what no source needs. */
const MAX_PACKS = 16

/** Of a repository without a default branch, in a sentence. */
const MAX_NAMED_BRANCHES = 10

const FETCH_OPTIONS = [
  '--quiet', '--force', '--no-tags', '--depth=1', '--no-write-fetch-head', '--no-recurse-submodules'
]

type Remote = Omit<GitOptions, 'args'>

/** A ref as the host has it, and the folder that is wanted. */
interface Resolved {
  readonly ref: string
  readonly label: string
  readonly path: string
  /** As the host said; undefined where it was not asked. */
  readonly commit: string | undefined
}

/** One at a time in each store: several sources of one repository share it. */
const queues = new Map<string, LimitFunction>()

/**
 * Fetches single commits of a repository into a bare store, by the system's git.
 * @param stateDir where stores are
 */
export function createGitFetcher (source: GitSource, stateDir: string, env: Environment): Fetcher {
  const store = join(stateDir, 'git', hash('sha256', source.url).slice(0, 20))
  const home = join(stateDir, 'home')
  const surroundings = { home, env }
  let queue = queues.get(store)
  if (queue === undefined) queues.set(store, queue = pLimit(1))

  return {
    intervalMs: INTERVAL_MS,
    inTurn: queue,
    async check () {
      checkAuth(source, env)
      await makeHome()
      // The store is in use from now on, whether the host has something new or not.
      await utimes(store, new Date(), new Date()).catch(() => {})
      return `git ${await gitVersion(surroundings)}`
    },
    async fetch ({ known, signal }) {
      const [first] = source.at
      if (first?.ref !== undefined && known?.['commit'] === first.ref && known['path'] === first.path) return undefined
      // Somebody may have removed the state folder.
      if (!existsSync(home)) await makeHome()
      const remote = await connection(source, surroundings, signal)
      const list: ListRemote = (args) => runGit({ ...remote, args: ['ls-remote', '--quiet', ...args] })
      const resolved = await resolveRef(source, list)
      const { commit, path } = resolved
      if (commit !== undefined && known?.['commit'] === commit && known['path'] === path) return undefined
      return await orRemoveStore(readState(remote, resolved))
    }
  }

  async function makeHome (): Promise<void> {
    await mkdir(home, { recursive: true, mode: 0o700 })
    await writeAuthorities(surroundings)
  }

  async function readState (remote: Remote, { ref, label, path, commit: expected }: Resolved): Promise<Fetched> {
    const { signal } = remote
    const isPinned = COMMIT_ID.test(label)
    await mkdir(store, { recursive: true, mode: 0o700 })
    if (!existsSync(join(store, 'HEAD'))) {
      const format = (expected ?? label).length === SHA256_LENGTH ? ['--object-format=sha256'] : []
      const args = ['init', '--quiet', '--bare', '--template=', ...format, store]
      await runGit({ args, signal, ...surroundings })
    }
    await removePartialPacks(store)
    const own = `refs/skillserve/${hash('sha256', source.name + ref).slice(0, 16)}`
    const inStore = ['--git-dir', store]
    await runGit({ ...remote, args: [...inStore, 'fetch', ...FETCH_OPTIONS, '--', source.url, `+${ref}:${own}`] })
    const run: RunInStore = async (args, more = {}) => {
      try {
        return await runGit({ ...more, args: [...inStore, ...args], signal, ...surroundings })
      } catch (error) {
        throw storeError(error)
      }
    }
    const tip = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${own}^{commit}`]
    const commit = (await run(tip)).toString().trim()
    if (isPinned && commit !== label) {
      throw new SourceError('ref_not_found', 'the host gave another commit than the one that was asked for')
    }
    const { files, leftOut } = await readCommit(run, commit, path)
    if (await countPacks(store) > MAX_PACKS) await run(['gc', '--quiet', '--prune=now'])
    const algorithm = commit.length === SHA256_LENGTH ? 'sha256' : 'sha1'
    const revision = `${isPinned ? '' : `${label}@`}${algorithm}:${commit}`
    return { revision, memory: { commit, path }, files: watched(files), leftOut, path }
  }

  /** Files are read after the fetch, when damage of the store may show. */
  function watched ({ entries, write, read }: SourceFiles): SourceFiles {
    return {
      entries,
      write: (wanted, signal) => orRemoveStore(write(wanted, signal)),
      read: (entry) => orRemoveStore(read(entry))
    }
  }

  /** Whatever fails: a store that a killed git or a disk has left broken is fetched anew at the next check. */
  async function orRemoveStore<T> (job: Promise<T>): Promise<T> {
    try {
      return await job
    } catch (error) {
      await rm(store, { recursive: true, force: true })
      throw error
    }
  }
}

/** git leaves half a pack where its disk is full or it is killed. No other fetch into the store is running. */
async function removePartialPacks (store: string): Promise<void> {
  const packs = join(store, 'objects', 'pack')
  const names = await readdir(packs).catch(() => [])
  for (const name of names) if (name.startsWith('tmp_')) await rm(join(packs, name), { force: true })
}

async function countPacks (store: string): Promise<number> {
  return (await readdir(join(store, 'objects', 'pack'))).filter((name) => name.endsWith('.pack')).length
}

type ListRemote = (args: readonly string[]) => Promise<Buffer>

/** The first of the wanted refs that the host has. A commit id is taken as it is. */
async function resolveRef ({ at, url }: GitSource, list: ListRemote): Promise<Resolved> {
  const [first] = at
  if (first?.ref === undefined) return await resolveHead(first?.path ?? '', url, list)
  if (COMMIT_ID.test(first.ref)) return { ref: first.ref, label: first.ref, path: first.path, commit: undefined }
  const names = at.flatMap(({ ref = '' }) => fullNames(ref))
  const refs = refsIn(await list(['--', url, ...names.flatMap((name) => [name, `${name}^{}`])]))
  for (const { ref = '', path } of at) {
    for (const name of fullNames(ref)) {
      // Of an annotated tag, the commit and not the tag.
      const commit = refs.get(`${name}^{}`) ?? refs.get(name)
      if (commit !== undefined) return { ref: name, label: ref, path, commit }
    }
  }
  // Hosts give no commit by a short id, which may also be that of two commits later.
  const hint = SHORT_COMMIT_ID.test(first.ref) ? ': if that is a commit, give its full id' : ''
  throw new SourceError('ref_not_found', `the host has no branch or tag ${JSON.stringify(first.ref)}${hint}`)
}

async function resolveHead (path: string, url: string, list: ListRemote): Promise<Resolved> {
  const listing = await list(['--symref', '--', url, 'HEAD'])
  const [, branch = 'HEAD'] = /^ref: refs\/heads\/(.+)\tHEAD$/m.exec(listing.toString()) ?? []
  const commit = refsIn(listing).get('HEAD')
  if (commit !== undefined) return { ref: 'HEAD', label: branch, path, commit }
  const heads = [...refsIn(await list(['--heads', '--', url])).keys()].map((name) => name.slice('refs/heads/'.length))
  const named = heads.slice(0, MAX_NAMED_BRANCHES).join(', ')
  throw new SourceError('ref_not_found', heads.length === 0
    ? 'the host shows no commit: the repository is empty, or lies at another address'
    : `the repository has no default branch: give a branch as ref; there are ${named}`)
}

/** Ids by name. */
function refsIn (listing: Buffer): ReadonlyMap<string, string> {
  const lines = [...listing.toString().matchAll(/^([\da-f]{40,64})\t(.+)$/gm)]
  return new Map(lines.map(([, id = '', name = '']) => [name, id]))
}

function fullNames (ref: string): string[] {
  return ref.startsWith('refs/') ? [ref] : [`refs/heads/${ref}`, `refs/tags/${ref}`]
}

/** What every call to the host needs. Credentials are read for each fetch. */
async function connection (source: GitSource, surroundings: GitSurroundings, signal: AbortSignal): Promise<Remote> {
  const { url, auth = {} } = source
  const { env } = surroundings
  const { protocol, origin } = new URL(url)
  const common = { ...surroundings, signal, protocol: protocol.slice(0, -1) }
  if (protocol === 'ssh:') return { ...common, sshCommand: sshCommand(auth, env) }
  const secret = await readSecret(auth, env)
  if (secret === undefined) return common
  const credentials = Buffer.from(`${auth.username ?? 'x-access-token'}:${secret}`).toString('base64')
  const header = `Authorization: Basic ${credentials}`
  return { ...common, config: [[`http.${origin}/.extraHeader`, header]], secrets: [secret, credentials] }
}

/** Undefined without a home, where the user's own file would be. */
function knownHostsOf ({ knownHostsFile }: SourceAuth, env: Environment): string | undefined {
  const home = homeOf(env)
  return knownHostsFile ?? (home && join(home, '.ssh', 'known_hosts'))
}

function checkAuth ({ name, url, auth = {} }: GitSource, env: Environment): void {
  const isSsh = url.startsWith('ssh:')
  if (isSsh && !existsSync(knownHostsOf(auth, env) ?? '')) {
    const problem = 'needs a file of known hosts (auth.known_hosts_file): without it, anybody could be the host'
    throw new AddressError(`the source ${name} ${problem}`)
  }
  if (!isSsh && (auth.keyFile !== undefined || auth.knownHostsFile !== undefined)) {
    throw new AddressError(`the source ${name} has a key for SSH, but another address`)
  }
}

/** git gives the command to a shell. */
function sshCommand (auth: SourceAuth, env: Environment): string {
  const { keyFile } = auth
  const options = [
    'BatchMode=yes', 'StrictHostKeyChecking=yes', `UserKnownHostsFile=${knownHostsOf(auth, env) ?? '/dev/null'}`,
    'GlobalKnownHostsFile=/dev/null', 'ConnectTimeout=15', ...keyFile === undefined ? [] : ['IdentitiesOnly=yes']
  ]
  const key = keyFile === undefined ? [] : ['-i', keyFile]
  return ['ssh', '-F', '/dev/null', ...key, ...options.flatMap((option) => ['-o', option])].map(shellWord).join(' ')
}
