import { SourceError, type SourceErrorCode } from '../source-error.ts'

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
