import { NO_CONNECTION, UNKNOWN_HOST } from '../http/http-client.ts'
import { SourceError, type SourceErrorCode } from '../source-error.ts'

const NO_REASON = 'git could not fetch'
const REFUSED_OBJECT = 'git refuses an object of the repository'
const TOO_LARGE = 'the repository is larger than 512 MiB'
const NOT_PERMITTED = 'git may not read or write a file of this machine, which the log names'
const NO_REPOSITORY_AT_PATH = 'the path has no repository, or one that the service may not read'

/** Messages of git and its helpers, in the order in which they are tried. */
const REASONS: ReadonlyArray<readonly [code: SourceErrorCode, sentence: string, ...patterns: readonly RegExp[]]> = [
  ['disk', 'the disk of the state folder is full', /^(?!remote:).*no space left/im],
  ['auth_failed', 'the repository on this machine belongs to another user: run the service as its owner, ' +
    'or give it the folder', /detected dubious ownership/i],
  ['rate_limited', 'the host asks for fewer requests', /returned error: 429|too many requests/i],
  ['host_key', 'the key of the SSH host is not the one in the known hosts',
    /host key verification failed|host key is known|REMOTE HOST IDENTIFICATION/i],
  ['ref_not_found', 'the host has no such branch, tag or commit',
    /couldn't find remote ref|not our ref|remote ref does not exist|unadvertised object/i],
  ['redirected', 'the address redirects, and credentials do not follow: give the address that it leads to',
    /returned error: 30\d|redirect/i],
  // Without a reason in parentheses, as ssh gives one, and of no connection: a firewall refuses with the same words.
  ['disk', NOT_PERMITTED, /^(?:(?:fatal|error): (?!.*connect to)|\/).*: permission denied$/im],
  ['unreachable', 'the host cannot be reached: this machine, or a firewall, does not permit the connection',
    /^(?!remote:).*connect to .*: permission denied/im],
  ['auth_failed', 'the host refuses the credentials, or asks for some',
    /authentication failed|could not read (?:username|password)|terminal prompts disabled/i,
    /permission denied|access denied|returned error: 40[13]/i],
  ['not_found', 'the host has no such repository, or does not show it',
    /returned error: 4(?:04|10)|repository .* not found|does not appear to be a git repository/i,
    /does not exist|not found/i],
  ['refused_tree', 'the transport is not allowed', /transport .* not allowed/i],
  ['refused_tree', REFUSED_OBJECT, /fsck error|fsck-objects|hasDot|badTree|zeroPadded/i],
  ['too_large', 'git needs more memory than 2 GiB for what the host sends',
    /out of memory|realloc failed|mmap failed.*cannot allocate/i],
  ['too_large', TOO_LARGE, /file too large|file size limit/i],
  ['tls', 'the certificate of the host is not accepted', /certificate|SSL|TLS/],
  ['unreachable', UNKNOWN_HOST, /could not resolve host|unable to look up/i],
  // curl has one sentence for every connection that is not made.
  ['unreachable', NO_CONNECTION, /connection refused|couldn't connect to server/i],
  ['unreachable', 'the host cannot be reached, or breaks off',
    /failed to connect|connection|unreachable|early EOF|hung up|returned error: 5\d\d/i,
    /timed? ?out|RPC failed|transfer closed/i],
  // Fits any pack that ends too early, so the more specific messages come first.
  ['refused_tree', REFUSED_OBJECT, /index-pack failed|invalid index-pack/i]
]

/** SIGXFSZ, as a shell or git's parent reports it. */
const FILE_SIZE_EXCEEDED = new Set([153, 25])

/**
 * What a failure of git means.
 * @param protocol of the address: git says the same of a path on this machine as of one on a host
 */
export function gitError (stderr: string, code: number, protocol = ''): SourceError {
  const details = stderr.trim().split('\n').join(' / ').slice(-800)
  if (code === 127) return new SourceError('git_missing', 'git is not installed')
  const isTooLarge = FILE_SIZE_EXCEEDED.has(code) || /signal 25/.test(stderr)
  if (isTooLarge) return new SourceError('too_large', TOO_LARGE, { details })
  const known = REASONS.find(([, , ...patterns]) => patterns.some((pattern) => pattern.test(stderr)))
  const [reason, sentence] = known ?? ['unreachable', NO_REASON] as const
  const isLocal = reason === 'not_found' && protocol === 'file'
  return new SourceError(reason, isLocal ? NO_REPOSITORY_AT_PATH : sentence, { details })
}

/** Failures that no store is the reason of. */
const NOT_OF_STORE: ReadonlySet<SourceErrorCode> = new Set(['disk', 'git_missing', 'too_large'])

/** What a failure of git means that has only read the store. */
export function storeError (error: unknown): unknown {
  if (!(error instanceof SourceError) || NOT_OF_STORE.has(error.code)) return error
  const sentence = 'the copy of the repository in the state folder is damaged, and is fetched again'
  return new SourceError('disk', sentence, { ...error.details && { details: error.details }, cause: error })
}
