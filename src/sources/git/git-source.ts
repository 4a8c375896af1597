import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { reasonOf } from '../../operator/files.ts'
import { homeOf } from '../../operator/home.ts'
import type { Environment } from '../../operator/setting.ts'
import { shellWord } from '../../operator/shell-word.ts'
import type { Fetched, FetchOptions, GitSource, SourceAuth } from '../address/source-kind.ts'
import { basic, readSecret } from '../secrets.ts'
import { AddressError, SourceError } from '../source-error.ts'
import { DamagedStoreError, type GitOptions, type ReadOutput, runGit, wholeOutput } from './git-command.ts'
import { readCommit, type RunInStore } from './git-files.ts'

const MIN_VERSION = '2.31'

const COMMIT_ID = /^(?:[\da-f]{40}|[\da-f]{64})$/
const SHA256_LENGTH = 64

const FETCH_OPTIONS = [
  '--quiet', '--force', '--no-tags', '--depth=1', '--no-write-fetch-head', '--no-recurse-submodules'
]

/** The ref of the fetched commit in the store. */
const OWN_REF = 'refs/skillserve/fetched'

type Remote = Omit<GitOptions, 'args'>

/** @throws AddressError if git is missing or too old */
export async function check (_source: GitSource, env: Environment): Promise<void> {
  const output = await runGit({ args: ['--version'], env, signal: AbortSignal.timeout(10_000) }, wholeOutput)
    .catch(() => { throw new AddressError('git is not installed: install git (and openssh-client for git+ssh://)') })
  const [version = ''] = /[\d.]+/.exec(output.toString()) ?? []
  if (version.localeCompare(MIN_VERSION, 'en', { numeric: true }) >= 0) return
  throw new AddressError(`git ${version} is too old: install ${MIN_VERSION} or later`)
}

/** Fetches one commit into a bare store in the cache, with the system's git. */
export async function fetch (source: GitSource, options: FetchOptions): Promise<Fetched | undefined> {
  const { url, ref, path } = source
  const { known, signal, cache, env } = options
  const { commit: published = '' } = known ?? {}
  if (published === ref) return undefined
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
    throw new SourceError('ref_not_found', 'the host sent another commit than the configured one')
  }
  const algorithm = commit.length === SHA256_LENGTH ? 'sha256' : 'sha1'
  const revision = `${isPinned ? '' : `${label}@`}${algorithm}:${commit}`
  return { revision, memory: { commit }, path, ...await readCommit(run, commit, path) }
}

/** Asks the host which commit a ref is. A commit id is taken as it is. */
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
    // For an annotated tag, `^{}` is its commit.
    const commit = ids.get(`${name}^{}`) ?? ids.get(name)
    if (commit !== undefined) return { name, label: ref ?? branch, commit }
  }
  throw new SourceError('ref_not_found', ref === undefined
    ? 'the repository is empty, or has no default branch: give a branch as ref'
    : `the host has no branch or tag ${JSON.stringify(ref)}; give a commit by its full id`)
}

/** Returns what every call to the host needs. Credentials are read for each fetch. */
async function connection ({ url, auth = {} }: GitSource, { cache, env, signal }: FetchOptions): Promise<Remote> {
  const { protocol, origin } = new URL(url)
  const common = { env, signal, protocol: protocol.slice(0, -1) }
  if (protocol === 'ssh:') return { ...common, sshCommand: sshCommand(auth, env) }
  const config = await authorities(cache, env)
  const secret = await readSecret(auth, env)
  if (secret === undefined) return { ...common, config }
  const { authorization } = basic(auth.username ?? 'x-access-token', secret)
  const header = [`http.${origin}/.extraHeader`, `Authorization: ${authorization}`] as const
  return { ...common, config: [...config, header], secrets: [secret, authorization.slice('Basic '.length)] }
}

/** Makes git trust the additional authorities that Node trusts; without the usual ones in its file, it drops them. */
async function authorities (folder: string, env: Environment): Promise<Array<readonly [key: string, value: string]>> {
  const extra = env['NODE_EXTRA_CA_CERTS']
  if (!extra) return []
  const text = await readFile(extra, 'utf8').catch((error: unknown) => {
    throw new SourceError('tls', `the file in NODE_EXTRA_CA_CERTS cannot be read (${reasonOf(error)})`)
  })
  const path = join(folder, 'authorities.pem')
  await writeFile(path, [...rootCertificates, text].join('\n'))
  return [['http.sslCAInfo', path]]
}

/** Returns the command that git gives to a shell. */
function sshCommand ({ keyFile, knownHostsFile }: SourceAuth, env: Environment): string {
  const home = homeOf(env)
  const options = [
    'BatchMode=yes', 'StrictHostKeyChecking=yes', 'GlobalKnownHostsFile=/dev/null', 'ConnectTimeout=15',
    `UserKnownHostsFile=${knownHostsFile ?? (home ? join(home, '.ssh', 'known_hosts') : '/dev/null')}`,
    ...keyFile === undefined ? [] : ['IdentitiesOnly=yes']
  ]
  const key = keyFile === undefined ? [] : ['-i', keyFile]
  return ['ssh', '-F', '/dev/null', ...key, ...options.flatMap((option) => ['-o', option])].map(shellWord).join(' ')
}
