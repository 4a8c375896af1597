import { FollowedFile, type FollowedPolicy } from '../config/files/followed-file.ts'
import type { Config } from '../config/settings.ts'
import { readSetting, readTextFile } from '../config/files/yaml-file.ts'
import type { TrustPolicy } from '../core/content/trust/trust-policy.ts'
import type { CoreLog } from '../core/shared/log.ts'
import { Signal } from '../core/shared/signal.ts'
import { SourceError } from '../sources/source-error.ts'
import type { Candidate } from '../sources/source-keeper.ts'
import { parseLock } from './lock-file.ts'
import { OriginPolicy } from './origin-policy.ts'
import { parseTrust, type Trust } from './trust-file.ts'
import { verifyRoot } from './verify-folder.ts'

/** A policy that follows its files until it is closed. */
export interface OpenPolicy extends TrustPolicy {
  readonly files: readonly FollowedPolicy[]
  close (): void
  /** What is wrong with the files, for /readyz. */
  remark (): string | undefined
  /** Refuses states of sources of which the trust file requires signatures. */
  approve (candidate: Candidate): Promise<void>
}

const LOCK_REMEDY = '; `skillserve lock` writes it, and --locked=FILE names another'

type PolicyFiles = Partial<Pick<Config, 'lockFile' | 'trustFile'>>

/**
 * The policy of a service's settings. Its files are read again when they change; while a file is broken, its last good content counts.
 * @param rootNames names of the folders and sources of the service
 * @param givenNames the names that operators gave to some of them, which got others since two had one name
 * @throws ConfigError when a file cannot be used now
 */
export async function openPolicy ({ lockFile, trustFile }: PolicyFiles, rootNames: readonly string[], log: CoreLog, givenNames: ReadonlyMap<string, string> = new Map()): Promise<OpenPolicy> {
  const lock = lockFile === undefined ? undefined : await readSetting('LOCKED or --locked', FollowedFile.open(lockFile, (text) => parseLock(lockFile, text)), LOCK_REMEDY)
  const trust = trustFile === undefined ? undefined : await readSetting('TRUST_FILE or --trust', FollowedFile.open(trustFile, (text, reads) => withGivenNames(parseTrust(trustFile, text, rootNames, reads), givenNames)))
  if (lock !== undefined) report(lock, 'the lock', log)
  if (trust !== undefined) report(trust, 'the trust file', log)
  // A policy follows its files as long as it lives: one for all states that sources have.
  const signatures = new OriginPolicy({ trust })
  return Object.assign(new OriginPolicy({ lock, trust }), {
    async approve (candidate: Candidate) {
      if (trust?.value.roots.get(candidate.source) === 'require') await approveCandidate(candidate, signatures)
    },
    files: [lock, trust].filter((file) => file !== undefined),
    close () {
      lock?.close()
      trust?.close()
    },
    remark: () => [lock?.remark('the lock') ?? [], trust?.remark('the trust file') ?? []].flat().join('; ') || undefined
  })
}

/** A rule for a name holds for all roots that were given it, unless it names the number too. */
function withGivenNames (trust: Trust, givenNames: ReadonlyMap<string, string>): Trust {
  const roots = new Map(trust.roots)
  for (const [name, given] of givenNames) {
    const mode = trust.roots.get(name) ?? trust.roots.get(given)
    if (mode !== undefined) roots.set(name, mode)
  }
  return { ...trust, roots }
}

/**
 * The policy of files as they are now, which asks of every root what `require` asks.
 * @throws ConfigError when a file cannot be used
 */
export async function readPolicy ({ lockFile, trustFile }: PolicyFiles): Promise<TrustPolicy & { readonly lockedNames: readonly string[] | undefined }> {
  const lock = lockFile === undefined ? undefined : parseLock(lockFile, await readSetting('--locked', readTextFile(lockFile), LOCK_REMEDY))
  const policy = new OriginPolicy({
    lock: lock && { value: lock, on () {} },
    trust: trustFile === undefined ? undefined : { value: parseTrust(trustFile, await readSetting('--trust', readTextFile(trustFile))), on () {} },
    mode: 'require'
  })
  return Object.assign(policy, { lockedNames: lock && [...lock.keys()] })
}

/**
 * Refuses a state of a source in which a skill is not signed as the policy asks: the whole previous state stays.
 * @throws SourceError `verification_failed`
 */
async function approveCandidate ({ source, revision, skillsFolder, folders }: Candidate, policy: TrustPolicy): Promise<void> {
  if (folders.size === 0) return
  const listed = { isFixed: true, changed: new Signal<void>(), folders: new Map([...folders].map(([name, path]) => [name, { path, realPath: path }])) }
  for (const { name, isServed, problem } of await verifyRoot({ path: skillsFolder, name: source, listed }, policy)) {
    if (!isServed) throw new SourceError('verification_failed', `${revision} is refused: the skill ${JSON.stringify(name)}: ${problem}`)
  }
}

function report<Value> (file: FollowedFile<Value>, name: string, log: CoreLog): void {
  file.on('changed', () => { log.info({}, `${name} was read again: it is in force`) })
  file.on('failed', (error) => {
    if (error !== undefined) log.warn({ problem: error.message }, `${name} cannot be used; the last good one stays in force`)
  })
}
