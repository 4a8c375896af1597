import { NO_CONNECTION, UNKNOWN_HOST } from '../http/http-client.ts'
import { SourceError, type SourceErrorCode } from '../source-error.ts'

const TOO_LARGE = 'the repository is larger than 512 MiB'
const REFUSED_OBJECT = 'git refuses an object of the repository'

/** Messages of git and its helpers, in the order in which they are tried. */
const REASONS: ReadonlyArray<readonly [code: SourceErrorCode, sentence: string, pattern: RegExp]> = [
  ['disk', 'the disk of the state folder is full', /^(?!remote:).*no space left/im],
  ['auth_failed', 'the repository on this machine belongs to another user: run the service as its owner, ' +
    'or give it the folder', /detected dubious ownership/i],
  ['rate_limited', 'the host asks for fewer requests', /returned error: 429|too many requests/i],
  ['host_key', 'the key of the SSH host is not in the known hosts (auth.known_hosts_file)',
    /host key verification failed|host key is known|REMOTE HOST IDENTIFICATION/i],
  ['ref_not_found', 'the host has no such branch, tag or commit',
    /couldn't find remote ref|not our ref|remote ref does not exist|unadvertised object/i],
  ['redirected', 'the address redirects, and credentials do not follow: give the address that it leads to',
    /returned error: 30\d|redirect/i],
  ['unreachable', 'the host cannot be reached: this machine, or a firewall, does not permit the connection',
    /^(?!remote:).*connect to .*: permission denied/im],
  // Without a reason in parentheses, as ssh gives one.
  ['disk', 'git may not read or write a file of this machine, which the log names',
    /^(?:fatal: |error: |\/).*: permission denied$/im],
  ['auth_failed', 'the host refuses the credentials, or asks for some', new RegExp('authentication failed|' +
    'could not read (?:username|password)|prompts disabled|(?:permission|access) denied|returned error: 40[13]', 'i')],
  ['not_found', 'there is no such repository, or the service may not read it',
    /returned error: 4(?:04|10)|does not appear to be a git repository|does not exist|not found/i],
  ['refused_tree', REFUSED_OBJECT, /fsck error|fsck-objects|hasDot|badTree|zeroPadded/i],
  ['too_large', 'git needs more memory than 2 GiB for what the host sends',
    /out of memory|realloc failed|mmap failed.*cannot allocate/i],
  // The limit on files ends git by a signal, which it or the shell reports.
  ['too_large', TOO_LARGE, /file too large|file size limit|signal 25/i],
  ['tls', 'the certificate of the host is not accepted', /certificate|SSL|TLS/],
  ['unreachable', UNKNOWN_HOST, /could not resolve host|unable to look up/i],
  // curl has one sentence for every connection that is not made.
  ['unreachable', NO_CONNECTION, /connection refused|couldn't connect to server/i],
  ['unreachable', 'the host cannot be reached, or breaks off', new RegExp('failed to connect|connection|unreachable|' +
    'early EOF|hung up|returned error: 5\\d\\d|timed? ?out|RPC failed|transfer closed', 'i')],
  // Fits any pack that ends too early, so the more specific messages come first.
  ['refused_tree', REFUSED_OBJECT, /index-pack failed|invalid index-pack/i]
]

/** Exit codes of a shell without git, and after SIGXFSZ. */
const NO_GIT = 127
const FILE_SIZE_EXCEEDED = 153

/**
 * What a failure of git means.
 * @param isLocal whether it has only used the store
 */
export function gitError (stderr: string, code: number | null, isLocal = false): SourceError {
  const details = stderr.trim().split('\n').join(' / ').slice(-800)
  if (code === NO_GIT) return new SourceError('git_missing', 'git is not installed')
  if (code === FILE_SIZE_EXCEEDED) return new SourceError('too_large', TOO_LARGE, { details })
  const damaged = 'the copy of the repository in the state folder cannot be read, and is fetched again'
  if (isLocal) return new SourceError('disk', damaged, { details })
  const [reason, sentence] = REASONS.find(([, , pattern]) => pattern.test(stderr)) ??
    ['unreachable', 'git could not fetch'] as const
  return new SourceError(reason, sentence, { details })
}
