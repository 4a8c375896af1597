import { type ChildProcess, spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { rootCertificates } from 'node:tls'
import { whyUnreadable } from '../../config/files/files.ts'
import type { Environment } from '../../config/setting.ts'
import { AddressError, SourceError } from '../source-error.ts'
import { redact } from '../secrets.ts'
import { gitError } from './git-errors.ts'

/** Largest file that git may write, in blocks of 512 bytes: 512 MiB. A larger pack ends git. */
const MAX_FILE_BLOCKS = 1_048_576

/** Most memory of git, in KiB: 2 GiB. A host that lists refs without end would take all of the machine's. */
const MAX_MEMORY_KIB = 2_097_152

/** Node cannot set limits, so a shell runs this fixed text. A lower limit of the machine stays. */
const LIMITED = 'ulimit -f "$0" || exit; ulimit -d "$1" 2>/dev/null; shift; exec git "$@"'

/** Of what git prints. */
const MAX_OUTPUT_BYTES = 128 * 1_048_576
const MAX_ERROR_CHARACTERS = 8_192

/** Time for git to remove its locks after SIGTERM, in milliseconds. */
const KILL_AFTER_MS = 2_000

/** File of certificates in the home of git. */
const AUTHORITIES = 'authorities.pem'

const MIN_VERSION = [2, 31] as const

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
  ['gc.auto', '0'],
  ['credential.helper', ''],
  ['submodule.recurse', 'false'],
  ['protocol.version', '2']
]

/** What every call of git has around it. */
export interface GitSurroundings {
  /** An empty folder in the place of the user's. */
  readonly home: string
  /** That of the service, of which git gets a part. */
  readonly env: Environment
}

export interface GitOptions extends GitSurroundings {
  readonly args: readonly string[]
  readonly signal: AbortSignal
  /** The only transport that may be used. */
  readonly protocol?: string
  /** In the environment, where other users of the machine do not see them. */
  readonly config?: ReadonlyArray<readonly [key: string, value: string]>
  readonly sshCommand?: string
  /** Left out of everything that git says. */
  readonly secrets?: readonly string[]
  readonly onOutput?: (chunk: Buffer) => Promise<void> | void
  readonly input?: Iterable<string>
}

/**
 * Runs git with an environment of our own, and ends it with all its helpers when `signal` fires.
 * @returns what it printed, unless `onOutput` takes it
 * @throws SourceError
 */
export async function runGit (options: GitOptions): Promise<Buffer> {
  const { args, signal, protocol = '', secrets = [], onOutput, input = [] } = options
  signal.throwIfAborted()
  const child = spawn('/bin/sh', ['-c', LIMITED, String(MAX_FILE_BLOCKS), String(MAX_MEMORY_KIB), ...args], {
    env: environmentOf(options),
    // A group of its own: git starts helpers, which would outlive it.
    detached: true
  })
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => { resolve(code ?? -1) })
  })
  ended.catch(() => {})
  // Without free descriptors there are no pipes either.
  if (child.pid === undefined) await ended
  let hardKill: NodeJS.Timeout | undefined
  const stop = (): void => {
    killGroup(child, 'SIGTERM')
    hardKill ??= setTimeout(() => { killGroup(child, 'SIGKILL') }, KILL_AFTER_MS).unref()
  }
  signal.addEventListener('abort', stop, { once: true })
  // A terminal interrupts its own group only.
  process.once('exit', stop)
  let stderr = ''
  // The reason of a failure stands last, behind all that a host says.
  child.stderr.setEncoding('utf8')
  child.stderr.on('data', (text: string) => { stderr = (stderr + text).slice(-MAX_ERROR_CHARACTERS) })
  child.stdin.on('error', () => {})
  Readable.from(input).pipe(child.stdin)
  try {
    const chunks: Buffer[] = []
    let length = 0
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
      if (onOutput !== undefined) {
        await onOutput(chunk)
        continue
      }
      length += chunk.length
      if (length > MAX_OUTPUT_BYTES) throw new SourceError('too_large', 'git lists more than can be read')
      chunks.push(chunk)
    }
    const code = await ended
    signal.throwIfAborted()
    if (code !== 0) throw gitError(redact(stderr, secrets), code, protocol)
    return Buffer.concat(chunks)
  } finally {
    signal.removeEventListener('abort', stop)
    process.off('exit', stop)
    if (child.exitCode === null && child.signalCode === null) stop()
  }
}

function killGroup ({ pid = 0 }: ChildProcess, how: NodeJS.Signals): void {
  try {
    process.kill(-pid, how)
  } catch {
    // The processes have ended meanwhile.
  }
}

/** With it, git reads no settings of the machine or of its user, and asks nobody for credentials. */
function environmentOf ({ protocol = '', config = [], sshCommand, home, env }: GitOptions): Record<string, string> {
  return {
    PATH: env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
    HOME: home,
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
    ...sshCommand !== undefined && { GIT_SSH_COMMAND: sshCommand },
    ...passedOn({ home, env }),
    ...configVariables([...CONFIG, ...config])
  }
}

const PASSED = [
  ...['HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()]),
  'SSL_CERT_FILE', 'SSL_CERT_DIR', 'SSH_AUTH_SOCK', 'TMPDIR'
]

/** Proxies, agents for keys and private certificate authorities belong to the machine, not to a user of git. */
function passedOn ({ home, env }: GitSurroundings): Record<string, string> {
  const passed = Object.fromEntries(PASSED.flatMap((name) => env[name] === undefined ? [] : [[name, env[name]]]))
  return { ...passed, ...env['NODE_EXTRA_CA_CERTS'] && { GIT_SSL_CAINFO: join(home, AUTHORITIES) } }
}

/**
 * Writes a file of authorities for git where Node trusts additional ones. It holds the usual ones too, which git would
 * otherwise drop.
 */
export async function writeAuthorities ({ home, env }: GitSurroundings): Promise<void> {
  const extra = env['NODE_EXTRA_CA_CERTS']
  if (!extra) return
  const text = await readFile(extra, 'utf8').catch((error: unknown) => {
    throw new AddressError(`NODE_EXTRA_CA_CERTS: ${extra} cannot be read: ${whyUnreadable(error)}`)
  })
  await writeFile(join(home, AUTHORITIES), [...rootCertificates, text].join('\n'))
}

function configVariables (config: ReadonlyArray<readonly [key: string, value: string]>): Record<string, string> {
  const variables = config.flatMap(([key, value], index) =>
    [[`GIT_CONFIG_KEY_${index}`, key], [`GIT_CONFIG_VALUE_${index}`, value]] as const)
  return { GIT_CONFIG_COUNT: String(config.length), ...Object.fromEntries(variables) }
}

/**
 * The version of this machine's git.
 * @throws AddressError when it cannot be used
 */
export async function gitVersion (surroundings: GitSurroundings): Promise<string> {
  let text: string
  try {
    text = (await runGit({ args: ['--version'], signal: AbortSignal.timeout(10_000), ...surroundings })).toString()
  } catch {
    throw new AddressError('git is not installed: install git (and openssh-client for git+ssh://)')
  }
  const [version = '', major, minor] = /(\d+)\.(\d+)[\d.]*/.exec(text) ?? []
  if (Number(major) * 1_000 + Number(minor) < MIN_VERSION[0] * 1_000 + MIN_VERSION[1]) {
    throw new AddressError(`git ${version} is too old: install ${MIN_VERSION.join('.')} or later`)
  }
  return version
}
