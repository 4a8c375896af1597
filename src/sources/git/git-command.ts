import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Environment } from '../../operator/setting.ts'
import { SourceError, type SourceErrorCode } from '../source-error.ts'
import { redact } from '../secrets.ts'

/** Largest file that git may write, in blocks of 512 bytes: 512 MiB. A larger pack ends git. */
const MAX_FILE_BLOCKS = 1_048_576

/** Most memory of git, in KiB: 2 GiB. A host that lists refs without end would take all of the machine's. */
const MAX_MEMORY_KIB = 2_097_152

/** Node cannot set limits, so a shell runs this fixed text. A lower limit of the machine stays. */
const LIMITED = 'ulimit -f "$0" || exit; ulimit -d "$1" 2>/dev/null; shift; exec git "$@"'

const MAX_OUTPUT_BYTES = 128 * 1_048_576
const MAX_ERROR_CHARACTERS = 8_192

/** Set for every call, whatever the operator's own configuration says. */
const CONFIG: ReadonlyArray<readonly [key: string, value: string]> = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.symlinks', 'true'],
  ['core.autocrlf', 'false'],
  ['core.protectNTFS', 'true'],
  ['core.protectHFS', 'true'],
  // A redirect to another host would get the credentials.
  ['http.followRedirects', 'false'],
  ['http.lowSpeedLimit', '1000'],
  ['http.lowSpeedTime', '30'],
  ['transfer.fsckObjects', 'true'],
  // Always a pack: the limit on files then bounds what a fetch writes.
  ['fetch.unpackLimit', '1'],
  ['core.bigFileThreshold', '16m'],
  // A fetch packs its store anew after so many packs, without what is not needed any more.
  ['gc.autoPackLimit', '16'],
  ['gc.autoDetach', 'false'],
  ['gc.pruneExpire', 'now'],
  ['credential.helper', ''],
  ['submodule.recurse', 'false'],
  ['protocol.version', '2']
]

export interface GitOptions {
  readonly args: readonly string[]
  /** That of the service, of which git gets a part. */
  readonly env: Environment
  readonly signal: AbortSignal
  /** The only transport that may be used. Undefined: git only uses a store on this machine. */
  readonly protocol?: string
  /** In the environment, where other users of the machine do not see them. */
  readonly config?: ReadonlyArray<readonly [key: string, value: string]>
  readonly sshCommand?: string
  /** Left out of everything that git says. */
  readonly secrets?: readonly string[]
  readonly input?: string | undefined
}

export type ReadOutput<T> = (output: AsyncIterable<Buffer>) => Promise<T>

/**
 * Runs git with an environment of our own, and ends it with all its helpers when `signal` fires.
 * @param read takes what it prints while it runs
 * @throws SourceError
 */
export async function runGit<T> (options: GitOptions, read: ReadOutput<T>): Promise<T> {
  const { args, signal, protocol, secrets = [], input = '' } = options
  signal.throwIfAborted()
  const child = spawn('/bin/sh', ['-c', LIMITED, String(MAX_FILE_BLOCKS), String(MAX_MEMORY_KIB), ...args], {
    env: environmentOf(options),
    // A group of its own: git starts helpers, which would outlive it.
    detached: true
  })
  // Without free descriptors there are no pipes either.
  await once(child, 'spawn')
  const stop = (): void => { killGroup(child) }
  signal.addEventListener('abort', stop)
  // A terminal interrupts its own group only.
  process.once('exit', stop)
  let stderr = ''
  // The reason of a failure stands last, behind all that a host says.
  child.stderr.setEncoding('utf8')
  child.stderr.on('data', (text: string) => { stderr = (stderr + text).slice(-MAX_ERROR_CHARACTERS) })
  child.stdin.on('error', () => {}).end(input)
  try {
    const [result, [code]] = await Promise.all([read(child.stdout), once(child, 'close')]) as [T, [number | null]]
    signal.throwIfAborted()
    if (code !== 0) throw gitError(redact(stderr, secrets), code, protocol === undefined)
    return result
  } finally {
    signal.removeEventListener('abort', stop)
    process.off('exit', stop)
    if (child.exitCode === null && child.signalCode === null) stop()
  }
}

export async function wholeOutput (output: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of output) {
    size += chunk.length
    if (size > MAX_OUTPUT_BYTES) throw new SourceError('too_large', 'git lists more than can be read')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function killGroup ({ pid = 0 }: ChildProcess): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The processes have ended meanwhile.
  }
}

const PASSED = [
  ...['HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()]),
  'SSL_CERT_FILE', 'SSL_CERT_DIR', 'SSH_AUTH_SOCK', 'TMPDIR'
]

/**
 * With it, git reads no settings of the machine or of its user, and asks nobody for credentials. Proxies, agents for
 * keys and authorities belong to the machine, not to a user of git.
 */
function environmentOf ({ protocol = '', config = [], sshCommand, env }: GitOptions): NodeJS.ProcessEnv {
  const settings = [...CONFIG, ...config]
  return {
    PATH: env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
    HOME: '/dev/null',
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: 'false',
    SSH_ASKPASS: 'false',
    GIT_ALLOW_PROTOCOL: protocol,
    GIT_LFS_SKIP_SMUDGE: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_SSH_VARIANT: 'ssh',
    GIT_SSH_COMMAND: sshCommand,
    ...Object.fromEntries(PASSED.map((name) => [name, env[name]])),
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(settings.flatMap(([key, value], index) =>
      [[`GIT_CONFIG_KEY_${index}`, key], [`GIT_CONFIG_VALUE_${index}`, value]] as const))
  }
}

const TOO_LARGE = 'the repository is larger than 512 MiB, or needs more than 2 GiB of memory'
const UNREACHABLE = 'the host cannot be reached, or breaks off'

/** Classes of git's messages, in the order in which they are tried. The log has git's own last lines. */
const CLASSES: ReadonlyArray<readonly [code: SourceErrorCode, sentence: string, pattern: RegExp]> = [
  ['unreachable', UNREACHABLE, /^(?!remote:).*connect to .*: permission denied/im],
  ['disk', 'git cannot read or write a file of this machine',
    /^(?!remote:).*no space left|^(?:fatal: |error: |\/).*: permission denied$/im],
  ['host_key', 'the key of the SSH host is not in the known hosts (auth.known_hosts_file)', /host key|HOST IDENTIFI/i],
  ['ref_not_found', 'the host has no such branch, tag or commit', /remote ref|not our ref|unadvertised object/i],
  ['redirected', 'the address redirects, and credentials do not follow: give the address that it leads to',
    /returned error: 30\d|redirect/i],
  ['auth_failed', 'the repository may not be read: check the credentials, and the owner of a local repository',
    /authentication failed|could not read (?:username|password)|denied|dubious ownership|returned error: 40[13]/i],
  ['not_found', 'there is no such repository, or the service may not read it',
    /returned error: 4(?:04|10)|does not (?:appear|exist)|not found/i],
  ['refused_tree', 'git refuses an object of the repository', /fsck error|bad object/i],
  ['too_large', TOO_LARGE, /out of memory|realloc failed|cannot allocate|file too large|file size limit|signal 25/i],
  ['tls', 'the certificate of the host is not accepted', /certificate|SSL|TLS/]
]

/** What git says of a store that it cannot use. A host's own messages begin with `remote:`. */
const DAMAGED = new RegExp('^(?!remote:).*(?:not a git repository: |bad config |is not a GIT packfile|is corrupt$|' +
  '\\.lock\': File exists|unable to resolve reference)', 'm')

/** Exit codes of a shell without git, and after SIGXFSZ. */
const NO_GIT = 127
const FILE_SIZE_EXCEEDED = 153

/** git cannot use its object store: it has to be fetched anew. */
export class DamagedStoreError extends SourceError {}

/**
 * Returns what a failure of git means.
 * @param isLocal whether git has only used the store, so that no host can be the reason
 */
export function gitError (stderr: string, code: number | null, isLocal = false): SourceError {
  const details = stderr.trim().split('\n').join(' / ').slice(-800)
  if (code === NO_GIT) return new SourceError('git_missing', 'git is not installed')
  if (code === FILE_SIZE_EXCEEDED) return new SourceError('too_large', TOO_LARGE, { details })
  const [reason, sentence] = CLASSES.find(([, , pattern]) => pattern.test(stderr)) ?? ['unreachable', UNREACHABLE]
  const isDamaged = DAMAGED.test(stderr) || (isLocal && reason !== 'disk' && reason !== 'too_large')
  if (!isDamaged) return new SourceError(reason, sentence, { details })
  const damaged = 'the copy of the repository in the state folder is damaged; it will be fetched anew'
  return new DamagedStoreError('disk', damaged, { details })
}
