import { NO_CONNECTION, retryAfter, UNKNOWN_HOST } from '../http/http-client.ts'
import { SourceError, type SourceErrorCode } from '../source-error.ts'

const NO_REASON = 'git could not fetch'
const REFUSED_OBJECT = 'git refuses an object of the repository'
const NOT_PERMITTED = 'git may not read or write a file of this machine, which the log names'
const NO_REPOSITORY_AT_PATH = 'the path has no repository, or one that the service may not read'

/** Messages of git and its helpers, in the order in which they are tried. */
const REASONS: ReadonlyArray<readonly [pattern: RegExp, code: SourceErrorCode, sentence: string]> = [
  [/^(?!remote:).*no space left/im, 'disk', 'the disk of the state folder is full'],
  [/detected dubious ownership/i, 'auth_failed', 'the repository on this machine belongs to another user: run the service as its owner, or give it the folder'],
  [/returned error: 429|too many requests/i, 'rate_limited', 'the host asks for fewer requests'],
  [/host key verification failed|host key is known|REMOTE HOST IDENTIFICATION/i, 'host_key', 'the key of the SSH host is not the one in the known hosts'],
  [/couldn't find remote ref|not our ref|remote ref does not exist|unadvertised object/i, 'ref_not_found', 'the host has no such branch, tag or commit'],
  [/returned error: 30\d|redirect/i, 'redirected', 'the address redirects, and credentials do not follow: give the address that it leads to, which the log has'],
  // Without a reason in parentheses, as ssh gives one, and of no connection: a firewall refuses with the same words.
  [/^(?:(?:fatal|error): (?!.*connect to)|\/).*: permission denied$/im, 'disk', NOT_PERMITTED],
  [/^(?!remote:).*connect to .*: permission denied/im, 'unreachable', 'the host cannot be reached: this machine, or a firewall, does not permit the connection'],
  [/authentication failed|could not read (?:username|password)|terminal prompts disabled|permission denied|access denied|returned error: 40[13]/i, 'auth_failed', 'the host refuses the credentials, or asks for some'],
  [/returned error: 4(?:04|10)|repository .* not found|does not appear to be a git repository|does not exist|not found/i, 'not_found', 'the host has no such repository, or does not show it'],
  [/transport .* not allowed/i, 'refused_tree', 'the transport is not allowed'],
  [/fsck error|fsck-objects|hasDot|badTree|zeroPadded/i, 'refused_tree', REFUSED_OBJECT],
  [/out of memory|realloc failed|mmap failed.*cannot allocate/i, 'too_large', 'git needs more memory than 2 GiB for what the host sends'],
  [/file too large|file size limit/i, 'too_large', 'the repository is larger than 512 MiB'],
  [/certificate|SSL|TLS/, 'tls', 'the certificate of the host is not accepted'],
  [/could not resolve host|unable to look up/i, 'unreachable', UNKNOWN_HOST],
  // curl has one sentence for every connection that is not made.
  [/connection refused|couldn't connect to server/i, 'unreachable', NO_CONNECTION],
  [/failed to connect|connection|unreachable|early EOF|hung up|returned error: 5\d\d|timed? ?out|RPC failed|transfer closed/i, 'unreachable', 'the host cannot be reached, or breaks off'],
  // Fits any pack that ends too early, so the more specific messages come first.
  [/index-pack failed|invalid index-pack/i, 'refused_tree', REFUSED_OBJECT]
]

/** SIGXFSZ, as a shell or git's parent reports it. */
const FILE_SIZE_EXCEEDED = new Set([153, 25])

/** Headers of answers, as git's trace of its requests has them. */
const RETRY_AFTER = /<= Recv header: retry-after: *(.*)/gi
const LOCATION = /<= Recv header: location: *([^?\s]*)/gi

/**
 * What a failure of git means.
 * @param trace of the requests: git itself says nothing of the headers of an answer
 * @param protocol of the address: git says the same of a path on this machine as of one on a host
 */
export function gitError (stderr: string, code: number, trace = '', protocol = ''): SourceError {
  const location = lastOf(LOCATION, trace)?.replace(/\/info\/refs$/, '')
  const details = [stderr.trim().split('\n').join(' / ').slice(-800), ...location === undefined ? [] : [`moved to ${location}`]].join(' / ')
  const retryAfterMs = retryAfter(lastOf(RETRY_AFTER, trace))
  if (code === 127) return new SourceError('git_missing', 'git is not installed')
  if (FILE_SIZE_EXCEEDED.has(code) || /signal 25/.test(stderr)) return new SourceError('too_large', 'the repository is larger than 512 MiB', { details })
  const [, reason, sentence] = REASONS.find(([pattern]) => pattern.test(stderr)) ?? [undefined, 'unreachable', NO_REASON]
  return new SourceError(reason, reason === 'not_found' && protocol === 'file' ? NO_REPOSITORY_AT_PATH : sentence, { details, retryAfterMs })
}

function lastOf (pattern: RegExp, text: string): string | undefined {
  return [...text.matchAll(pattern)].at(-1)?.[1]
}

/** A failure of git that reads nothing but the store. */
class StoreError extends SourceError {}

/** Failures that no store is the reason of. */
const NOT_OF_STORE: ReadonlySet<SourceErrorCode> = new Set(['disk', 'git_missing', 'too_large'])

/** What a failure of git means that has only read the store. */
export function storeError (error: unknown): unknown {
  if (!(error instanceof SourceError) || NOT_OF_STORE.has(error.code)) return error
  return new StoreError('disk', 'the copy of the repository in the state folder is damaged, and is fetched again', { ...error.details !== undefined && { details: error.details }, cause: error })
}

/** Whether the local store may be broken, and has to be made anew: a failure without a known reason is none of the host. */
export function isBrokenStore (error: unknown): boolean {
  if (!(error instanceof SourceError)) return false
  return error instanceof StoreError || error.message === NO_REASON || error.message === NOT_PERMITTED || /\.lock'?: File exists|Unable to create|not a git repository|is corrupt|bad object|loose object|unable to read|shallow file has changed/i.test(error.details ?? '')
}
