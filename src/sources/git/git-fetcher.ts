import { hash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rm, utimes } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../../config/setting.ts'
import { createQueue, type Queue } from '../../core/shared/async.ts'
import { shellWord } from '../../core/shared/text.ts'
import type { Fetched, Fetcher, FetchOptions } from '../fetcher.ts'
import type { SourceFiles } from '../publish/source-tree.ts'
import { readSecret } from '../secrets.ts'
import { AddressError, SourceError } from '../source-error.ts'
import type { SourceAuth } from '../address/source-kind.ts'
import { gitVersion, type GitOptions, type GitSurroundings, runGit, writeAuthorities } from './git-command.ts'
import { isBrokenStore, storeError } from './git-errors.ts'
import { readCommit, type RunInStore } from './git-files.ts'
import type { GitSource } from './git-source.ts'
import type { RefAndPath } from './host-page.ts'

const INTERVAL_MS = 60_000

const COMMIT_ID = /^(?:[\da-f]{40}|[\da-f]{64})$/
const SHORT_COMMIT_ID = /^[\da-f]{4,63}$/

/** Packs of a store before it is packed anew without what no source needs. */
const MAX_PACKS = 16

/** A ref as the host has it, and the folder that is wanted. */
interface Resolved {
  readonly ref: string
  readonly label: string
  readonly path: string
  /** As the host said; undefined where it was not asked. */
  readonly commit: string | undefined
}

/** One at a time in each store: several sources of one repository share it. */
const queues = new Map<string, Queue>()

/**
 * Fetches single commits of a repository into a bare store, by the system's git.
 * @param stateDir where stores are
 */
export function createGitFetcher (source: GitSource, stateDir: string, env: Environment): Fetcher {
  const store = join(stateDir, 'git', hash('sha256', source.url).slice(0, 20))
  const home = join(stateDir, 'home')
  const surroundings = { home, env }
  let queue = queues.get(store)
  if (queue === undefined) queues.set(store, queue = createQueue())

  return {
    intervalMs: INTERVAL_MS,
    inTurn: queue,
    async check () {
      checkAuth(source)
      await makeHome()
      // The store is in use from now on, whether the host has something new or not.
      await utimes(store, new Date(), new Date()).catch(() => {})
      return `git ${await gitVersion(surroundings)}`
    },
    fetch: fetchOnce
  }

  async function makeHome (): Promise<void> {
    await mkdir(home, { recursive: true, mode: 0o700 })
    await writeAuthorities(surroundings)
  }

  async function fetchOnce (options: FetchOptions): Promise<Fetched | undefined> {
    const { known, signal } = options
    const [first] = source.at
    if (first?.ref !== undefined && known?.['commit'] === first.ref && known['path'] === first.path) return undefined
    // Somebody may have removed the state folder.
    if (!existsSync(home)) await makeHome()
    const remote = await connection(source, surroundings, signal)
    const resolved = await resolveRef(source.at, (args) => runGit({ ...remote, args: ['ls-remote', '--quiet', ...args] }), source.url)
    if (resolved.commit !== undefined && known?.['commit'] === resolved.commit && known['path'] === resolved.path) return undefined
    try {
      return await readState(remote, resolved, options)
    } catch (error) {
      if (!isBrokenStore(error)) throw error
      // A store that a killed git or a disk has left broken is fetched anew, not repaired.
      await removeStore()
      return await readState(remote, resolved, options)
    }
  }

  async function removeStore (): Promise<void> {
    await rm(store, { recursive: true, force: true })
  }

  /** Files are read after the fetch, when what of the store is damaged is known: the next fetch makes it anew. */
  function watched (files: SourceFiles): SourceFiles {
    const watch = async <T>(read: Promise<T>): Promise<T> => {
      try {
        return await read
      } catch (error) {
        if (isBrokenStore(error)) await removeStore()
        throw error
      }
    }
    return { entries: files.entries, write: (wanted, signal) => watch(files.write(wanted, signal)), read: (entry) => watch(files.read(entry)) }
  }

  async function readState (remote: Omit<GitOptions, 'args'>, resolved: Resolved, { signal }: FetchOptions): Promise<Fetched> {
    await mkdir(store, { recursive: true, mode: 0o700 })
    if (!existsSync(join(store, 'HEAD'))) await runGit({ args: ['init', '--quiet', '--bare', '--template=', store], signal, ...surroundings })
    await removeRests(store)
    const own = `refs/skillserve/${hash('sha256', source.name + resolved.ref).slice(0, 16)}`
    await runGit({
      ...remote,
      args: ['--git-dir', store, 'fetch', '--quiet', '--force', '--no-tags', '--depth=1', '--no-write-fetch-head', '--no-recurse-submodules', '--', source.url, `+${resolved.ref}:${own}`]
    })
    const run: RunInStore = async (args, more = {}) => {
      try {
        return await runGit({ ...more, args: ['--git-dir', store, ...args], signal, ...surroundings })
      } catch (error) {
        throw storeError(error)
      }
    }
    const tip = `${own}^{commit}`
    const commit = (await run(['rev-parse', '--verify', '--quiet', '--end-of-options', tip])).toString().trim()
    if (COMMIT_ID.test(resolved.label) && commit !== resolved.label) throw new SourceError('ref_not_found', 'the host gave another commit than the one that was asked for')
    const { files, leftOut } = await readCommit(run, commit, resolved.path)
    if (await countPacks(store) > MAX_PACKS) await run(['gc', '--quiet', '--prune=now'])
    const algorithm = commit.length === 40 ? 'sha1' : 'sha256'
    return {
      revision: `${COMMIT_ID.test(resolved.label) ? '' : `${resolved.label}@`}${algorithm}:${commit}`,
      memory: { commit, path: resolved.path },
      files: watched(files),
      leftOut,
      path: resolved.path
    }
  }
}

/** git leaves half a pack where its disk is full or it is killed. No other fetch into the store is running. */
async function removeRests (store: string): Promise<void> {
  const packs = join(store, 'objects', 'pack')
  const names = await readdir(packs).catch(() => [])
  for (const name of names) if (name.startsWith('tmp_')) await rm(join(packs, name), { force: true })
}

async function countPacks (store: string): Promise<number> {
  return (await readdir(join(store, 'objects', 'pack'))).filter((name) => name.endsWith('.pack')).length
}

/** The first of the wanted refs that the host has. A commit id is taken as it is. */
async function resolveRef (wanted: readonly RefAndPath[], list: (args: readonly string[]) => Promise<Buffer>, url: string): Promise<Resolved> {
  const [first] = wanted
  if (first === undefined || first.ref === undefined) {
    const lines = (await list(['--symref', '--', url, 'HEAD'])).toString().split('\n')
    const branch = lines.map((line) => /^ref: refs\/heads\/(.+)\tHEAD$/.exec(line)?.[1]).find((name) => name !== undefined)
    const commit = lines.map((line) => /^([\da-f]{40,64})\tHEAD$/.exec(line)?.[1]).find((id) => id !== undefined)
    if (commit === undefined) throw new SourceError('ref_not_found', 'the host shows no commit: the repository is empty, or lies at another address')
    return { ref: 'HEAD', label: branch ?? 'HEAD', path: first?.path ?? '', commit }
  }
  if (COMMIT_ID.test(first.ref)) return { ref: first.ref, label: first.ref, path: first.path, commit: undefined }
  const names = wanted.flatMap(({ ref = '' }) => fullNames(ref))
  const refs = new Map((await list(['--', url, ...names.flatMap((name) => [name, `${name}^{}`])])).toString().split('\n').map((line) => {
    const [id = '', name = ''] = line.split('\t')
    return [name, id] as const
  }))
  for (const { ref = '', path } of wanted) {
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

function fullNames (ref: string): string[] {
  return ref.startsWith('refs/') ? [ref] : [`refs/heads/${ref}`, `refs/tags/${ref}`]
}

/** What every call to the host needs. Credentials are read for each fetch. */
async function connection ({ url, auth = {} }: GitSource, surroundings: GitSurroundings, signal: AbortSignal): Promise<Omit<GitOptions, 'args'>> {
  const { protocol, origin } = new URL(url)
  const common = { ...surroundings, signal, protocol: protocol.slice(0, -1) }
  if (protocol === 'ssh:') return { ...common, sshCommand: sshCommand(auth) }
  const secret = await readSecret(auth, surroundings.env)
  if (secret === undefined) return common
  const header = `Authorization: Basic ${Buffer.from(`${auth.username ?? 'x-access-token'}:${secret}`).toString('base64')}`
  return { ...common, config: [[`http.${origin}/.extraHeader`, header]], secrets: [secret, header.slice('Authorization: Basic '.length)] }
}

/** The user's own, as ssh would take it. */
const KNOWN_HOSTS = join(homedir(), '.ssh', 'known_hosts')

function checkAuth ({ name, url, auth = {} }: GitSource): void {
  const isSsh = url.startsWith('ssh:')
  if (isSsh && !existsSync(auth.knownHostsFile ?? KNOWN_HOSTS)) throw new AddressError(`the source ${name} needs a file of known hosts (auth.known_hosts_file): without it, anybody could be the host`)
  if (!isSsh && (auth.keyFile !== undefined || auth.knownHostsFile !== undefined)) throw new AddressError(`the source ${name} has a key for SSH, but another address`)
}

/** git gives the command to a shell. */
function sshCommand ({ keyFile, knownHostsFile = KNOWN_HOSTS }: SourceAuth): string {
  const options = ['BatchMode=yes', 'StrictHostKeyChecking=yes', `UserKnownHostsFile=${knownHostsFile}`, 'GlobalKnownHostsFile=/dev/null', 'ConnectTimeout=15', ...keyFile === undefined ? [] : ['IdentitiesOnly=yes']]
  return ['ssh', '-F', '/dev/null', ...keyFile === undefined ? [] : ['-i', keyFile], ...options.flatMap((option) => ['-o', option])].map(shellWord).join(' ')
}
