import { spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { rootCertificates } from 'node:tls'
import { whyUnreadable } from '../../config/files/files.ts'
import type { Environment } from '../../config/setting.ts'
import { AddressError, SourceError } from '../source-error.ts'
import { redact } from '../secrets.ts'
import { gitError } from './git-errors.ts'

/** Largest file that git may write, in blocks of 512 bytes: 512 MiB. A larger pack ends git, and leaves nothing behind. */
const MAX_FILE_BLOCKS = 1_048_576

/** Most memory of a process of git, in KiB: 2 GiB. A host that lists refs without end would take all of the machine's. */
const MAX_MEMORY_KIB = 2_097_152

/** Of what git prints. */
const MAX_OUTPUT_BYTES = 128 * 1_048_576
const MAX_ERROR_CHARACTERS = 8_192

/** The descriptor that git traces its requests to. */
const TRACE = 3

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
 * Runs git without a shell of the caller's, with an environment of our own, and ends it with all its helpers when `signal` fires.
 * @returns what it printed, unless `onOutput` takes it
 * @throws SourceError
 */
export async function runGit (options: GitOptions): Promise<Buffer> {
  const { args, signal, protocol = '', secrets = [], onOutput, input } = options
  signal.throwIfAborted()
  // Node cannot set limits: the shell runs this fixed text only. A machine may have a lower limit of memory, which then stays.
  const child = spawn('/bin/sh', ['-c', 'ulimit -f "$0" || exit; ulimit -d "$1" 2>/dev/null; shift; exec git "$@"', String(MAX_FILE_BLOCKS), String(MAX_MEMORY_KIB), ...args], {
    env: environmentOf(options),
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
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
  const kill = (how: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, how)
    } catch {
      // The process has ended meanwhile.
    }
  }
  let hardKill: NodeJS.Timeout | undefined
  const stop = (): void => {
    kill('SIGTERM')
    hardKill ??= setTimeout(() => { kill('SIGKILL') }, KILL_AFTER_MS).unref()
  }
  signal.addEventListener('abort', stop, { once: true })
  // A terminal interrupts its own group only.
  const stopNow = (): void => { kill('SIGTERM') }
  process.once('exit', stopNow)
  const stderr = keepEnd(child.stderr)
  const trace = keepEnd(child.stdio[TRACE] as Readable)
  child.stdin.on('error', () => {})
  try {
    for (const text of input ?? []) child.stdin.write(text)
    child.stdin.end()
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
    if (code !== 0) throw gitError(redact(stderr(), secrets), code, redact(trace(), secrets), protocol)
    return Buffer.concat(chunks)
  } finally {
    signal.removeEventListener('abort', stop)
    process.off('exit', stopNow)
    if (child.exitCode === null && child.signalCode === null) stop()
  }
}

/** The reason of a failure stands last, behind all that a host says. */
function keepEnd (output: Readable): () => string {
  let end = ''
  output.setEncoding('utf8').on('data', (text: string) => { end = (end + text).slice(-MAX_ERROR_CHARACTERS) })
  return () => end
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
    // Headers of requests and answers, without those of credentials.
    GIT_TRACE_CURL: String(TRACE),
    GIT_TRACE_CURL_NO_DATA: '1',
    ...sshCommand !== undefined && { GIT_SSH_COMMAND: sshCommand },
    ...passedOn({ home, env }),
    ...configVariables([...CONFIG, ...config])
  }
}

/** Proxies, agents for keys and private certificate authorities belong to the machine, not to a user of git. */
function passedOn ({ home, env }: GitSurroundings): Record<string, string> {
  const names = ['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy', 'NO_PROXY', 'no_proxy', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'SSH_AUTH_SOCK', 'TMPDIR']
  const passed = Object.fromEntries(names.flatMap((name) => env[name] === undefined ? [] : [[name, env[name]]]))
  return { ...passed, ...env['NODE_EXTRA_CA_CERTS'] && { GIT_SSL_CAINFO: join(home, AUTHORITIES) } }
}

/** Writes a file of authorities for git where Node trusts additional ones. It holds the usual ones too, which git would otherwise drop. */
export async function writeAuthorities ({ home, env }: GitSurroundings): Promise<void> {
  const extra = env['NODE_EXTRA_CA_CERTS']
  if (!extra) return
  const text = await readFile(extra, 'utf8').catch((error: unknown) => { throw new AddressError(`NODE_EXTRA_CA_CERTS: ${extra} cannot be read: ${whyUnreadable(error)}`) })
  await writeFile(join(home, AUTHORITIES), [...rootCertificates, text].join('\n'))
}

function configVariables (config: ReadonlyArray<readonly [key: string, value: string]>): Record<string, string> {
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(config.length) }
  for (const [index, [key, value]] of config.entries()) {
    variables[`GIT_CONFIG_KEY_${index}`] = key
    variables[`GIT_CONFIG_VALUE_${index}`] = value
  }
  return variables
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
  const [version = '', major = '0', minor = '0'] = /(\d+)\.(\d+)[\d.]*/.exec(text) ?? []
  const isOld = Number(major) < MIN_VERSION[0] || (Number(major) === MIN_VERSION[0] && Number(minor) < MIN_VERSION[1])
  if (isOld) throw new AddressError(`git ${version} is too old: install ${MIN_VERSION.join('.')} or later`)
  return version
}
