import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Environment } from '../../operator/setting.ts'
import { SourceError, type SourceErrorCode } from '../source-error.ts'
import { redact } from '../secrets.ts'

/** Largest file that git may write, in blocks of 512 bytes: 512 MiB. The system kills git at a larger pack. */
const MAX_FILE_BLOCKS = 1_048_576

/** Most memory of git, in KiB: 2 GiB. A host that lists refs without end would take all of the machine's. */
const MAX_MEMORY_KIB = 2_097_152

/** Shell script that sets the limits, since Node cannot. A lower limit of the machine stays. */
const LIMITED = 'ulimit -f "$0" || exit; ulimit -d "$1" 2>/dev/null; shift; exec git "$@"'

const MAX_OUTPUT_BYTES = 128 * 1_048_576
const MAX_ERROR_CHARACTERS = 8_192

/** Settings for each call, which override the operator's git configuration. */
const CONFIG: ReadonlyArray<readonly [key: string, value: string]> = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.symlinks', 'true'],
  ['core.autocrlf', 'false'],
  ['core.protectNTFS', 'true'],
  ['core.protectHFS', 'true'],
  // On a redirect git would send the credentials to the other host.
  ['http.followRedirects', 'false'],
  ['http.lowSpeedLimit', '1000'],
  ['http.lowSpeedTime', '30'],
  ['transfer.fsckObjects', 'true'],
  // Fetched objects always become a pack, so that the limit of file size bounds a fetch.
  ['fetch.unpackLimit', '1'],
  ['core.bigFileThreshold', '16m'],
  // After this many packs, a fetch repacks the store without unreachable objects.
  ['gc.autoPackLimit', '16'],
  ['gc.autoDetach', 'false'],
  ['gc.pruneExpire', 'now'],
  ['credential.helper', ''],
  ['submodule.recurse', 'false'],
  ['protocol.version', '2']
]

export interface GitOptions {
  readonly args: readonly string[]
  /** Environment of the service; git gets a part of it. */
  readonly env: Environment
  readonly signal: AbortSignal
  /** The only allowed transport. Undefined: git only uses the local store. */
  readonly protocol?: string
  /** Passed in the environment, which other users of the machine cannot read. */
  readonly config?: ReadonlyArray<readonly [key: string, value: string]>
  readonly sshCommand?: string
  /** Removed from everything that git prints. */
  readonly secrets?: readonly string[]
  readonly input?: string | undefined
}

export type ReadOutput<T> = (output: AsyncIterable<Buffer>) => Promise<T>

/**
 * Runs git with a fixed environment; kills it and its helpers when `signal` aborts.
 * @param read consumes the output while git runs
 * @throws SourceError
 */
export async function runGit<T> (options: GitOptions, read: ReadOutput<T>): Promise<T> {
  const { args, signal, protocol, secrets = [], input = '' } = options
  signal.throwIfAborted()
  const child = spawn('/bin/sh', ['-c', LIMITED, String(MAX_FILE_BLOCKS), String(MAX_MEMORY_KIB), ...args], {
    env: environmentOf(options),
    // A process group of its own, so that git's helpers can be killed with it.
    detached: true
  })
  // Out of file descriptors, `spawn` fails, and the pipes are undefined.
  await once(child, 'spawn')
  const stop = (): void => { killGroup(child) }
  signal.addEventListener('abort', stop)
  // Ctrl-C in a terminal only reaches the terminal's own process group.
  process.once('exit', stop)
  let stderr = ''
  // Only the end is kept: it has the reason of a failure, after all that the host printed.
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
    if (size > MAX_OUTPUT_BYTES) throw new SourceError('too_large', 'the repository has too many files or refs')
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
 * Makes the environment of git: without settings of the machine or its user, and without prompts for credentials.
 * Proxies, SSH agents and certificate authorities are kept, since they belong to the machine.
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
const UNREACHABLE = 'the host cannot be reached, or closed the connection'

/** Error codes by patterns in git's messages, tried in this order. The log has git's own last lines. */
const CLASSES: ReadonlyArray<readonly [code: SourceErrorCode, sentence: string, pattern: RegExp]> = [
  ['unreachable', UNREACHABLE, /^(?!remote:).*connect to .*: permission denied/im],
  ['disk', 'git cannot read or write a file of this machine',
    /^(?!remote:).*no space left|^(?:fatal: |error: |\/).*: permission denied$/im],
  ['host_key', 'the key of the SSH host is not in the known hosts (auth.known_hosts_file)', /host key|HOST IDENTIFI/i],
  ['ref_not_found', 'the host has no such branch, tag or commit', /remote ref|not our ref|unadvertised object/i],
  ['redirected', 'the address redirects, and credentials are not sent on: give the address that it leads to',
    /returned error: 30\d|redirect/i],
  ['auth_failed', 'no permission to read the repository: check the credentials, and the owner of a local repository',
    /authentication failed|could not read (?:username|password)|denied|dubious ownership|returned error: 40[13]/i],
  ['not_found', 'there is no such repository, or no permission to read it',
    /returned error: 4(?:04|10)|does not (?:appear|exist)|not found/i],
  ['refused_tree', 'git refuses an object of the repository', /fsck error|bad object/i],
  ['too_large', TOO_LARGE, /out of memory|realloc failed|cannot allocate|file too large|file size limit|signal 25/i],
  ['tls', 'the certificate of the host is not accepted', /certificate|SSL|TLS/]
]

/** Messages of git about a store that it cannot use. A host's own messages begin with `remote:`. */
const DAMAGED = new RegExp('^(?!remote:).*(?:not a git repository: |bad config |is not a GIT packfile|is corrupt$|' +
  '\\.lock\': File exists|unable to resolve reference)', 'm')

/** Exit codes of the shell if git is missing, and after SIGXFSZ. */
const NO_GIT = 127
const FILE_SIZE_EXCEEDED = 153

/** git cannot use its object store, which has to be fetched again. */
export class DamagedStoreError extends SourceError {}

/**
 * Converts a failure of git into an error.
 * @param isLocal whether git only used the store, so that no host can be the cause
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
