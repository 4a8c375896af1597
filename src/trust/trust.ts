import { EventEmitter } from 'node:events'
import { dirname } from 'node:path'
import { FollowedFile } from '../operator/followed-file.ts'
import type { Prepared } from '../operator/prepared.ts'
import type { OpenedRoots } from '../config/roots.ts'
import type { Config } from '../config/settings.ts'
import type { SkillState } from '../core/revisions/state.ts'
import type { RootOptions } from '../core/roots/root.ts'
import type { CoreLog } from '../core/shared/log.ts'
import { quote } from '../core/shared/text.ts'
import { createSkillManager } from '../core/skill-manager.ts'
import type { Quarantined } from '../schemas/health.ts'
import type { Candidate } from '../sources/fetched-origin.ts'
import { SourceError } from '../sources/source-error.ts'
import type { TrustChange } from './guarded-listing.ts'
import { GuardedOrigin, type GuardedOriginOptions } from './guarded-origin.ts'
import { checkLockFile, type Lock, parseLock } from './lock-file.ts'
import { parseTrust, type TrustFile } from './trust-file.ts'
import { TrustPolicy } from './trust-policy.ts'
import { canRefuse, judge, type PolicyFiles, type Verdict } from './verdict.ts'
import { verifySkills } from './verify.ts'

/** How many quarantined skills /readyz names. */
const MAX_NAMED = 50

interface TrustOptions extends GuardedOriginOptions {
  readonly lock?: FollowedFile<Lock> | undefined
  readonly trust?: FollowedFile<TrustFile> | undefined
}

/** Follows the lock and the trust file of a service, and guards its roots by them. */
export class Trust extends EventEmitter<{ verdict: [TrustChange] }> {
  readonly files: ReadonlyArray<FollowedFile<unknown>>
  readonly #options: TrustOptions
  /** By the root that each guards. */
  #guarded: ReadonlyMap<RootOptions, GuardedOrigin> = new Map()
  #gone: readonly GuardedOrigin[] = []

  constructor (options: TrustOptions) {
    super()
    const { policy, lock, trust } = this.#options = options
    this.files = [lock ?? [], trust ?? []].flat()
    for (const file of this.files) {
      file.on('changed', () => { policy.replace({ lock: lock?.value, trust: trust?.value }) })
    }
    policy.on('changed', () => { for (const origin of this.#origins) void origin.policyChanged() })
  }

  /**
   * Reads the lock and the trust file for roots of these names.
   * @throws ConfigError if one of them, or the folder for verified copies, cannot be used
   */
  async prepare (roots: readonly string[]): Promise<readonly Prepared[]> {
    const lock = await this.#options.lock?.prepare()
    const trust = await this.#options.trust?.prepare((path, text, readNamed) =>
      parseTrust(path, text, roots, readNamed))
    await this.#prepareState({ lock: lock?.value, trust: trust?.value })
    return [lock ?? [], trust ?? []].flat()
  }

  /** Checks the folder for copies if these files can refuse a skill, also by a rule for numbered names of roots. */
  async #prepareState (files: PolicyFiles): Promise<void> {
    const isRequired = [...files.trust?.roots.values() ?? []].includes('require')
    if (canRefuse({ ...files, isRequired })) await this.#options.state.prepare()
  }

  /**
   * Returns guarded roots for the catalog, the same for the same roots. Roots that are gone stay guarded until
   * `retire`, although the next trust file may have no rule for them.
   */
  guard (roots: readonly RootOptions[]): readonly RootOptions[] {
    const before = this.#guarded
    this.#guarded = new Map(roots.map((root) => [root, before.get(root) ?? this.#guard(root)]))
    const gone = [...before.values()].filter((origin) => !this.#origins.includes(origin))
    for (const { listing } of gone) listing.retire()
    this.#gone = [...this.#gone, ...gone]
    return this.#origins.map(({ root }) => root)
  }

  /**
   * Checks the skills of roots that were not checked yet, and resolves when accepted ones can be served. A root that
   * cannot be checked serves nothing; the log and `problem` say so.
   */
  async check (): Promise<void> {
    const fresh = this.#origins.filter(({ sync }) => sync.status.checked_at === undefined)
    await Promise.all(fresh.map(({ sync }) => sync.checkNow()))
  }

  /** Closes the roots that `guard` was not given again. */
  async retire (): Promise<void> {
    const gone = this.#gone
    this.#gone = []
    await Promise.all(gone.map(({ sync }) => sync.close()))
  }

  #guard (root: RootOptions): GuardedOrigin {
    const { log } = this.#options
    const origin = new GuardedOrigin(root, this.#options)
    origin.listing.on('verdict', (change) => {
      const { skill, root, isServed, report: { signer }, reason } = change
      const fields = { skill, root, ...signer !== null && { signer } }
      if (isServed) log.info(fields, `skill ${quote(skill)} is released from quarantine`)
      else log.warn({ ...fields, code: reason?.code }, `skill ${quote(skill)} is quarantined: ${reason?.message ?? ''}`)
      this.emit('verdict', change)
    })
    return origin
  }

  get #origins (): readonly GuardedOrigin[] {
    return [...this.#guarded.values()]
  }

  /**
   * Checks the skills of guarded roots for the first time.
   * @throws ConfigError that names the setting if the folder for the verified copies cannot be used
   */
  async start (): Promise<void> {
    await this.#prepareState(this.#options.policy.files)
    await this.check()
  }

  /** Error for /readyz while skills cannot be checked. It does not name the root, which not every caller may see. */
  get problem (): string | undefined {
    const error = this.#origins.map(({ sync }) => sync.status.error).find((each) => each !== undefined)
    return error && `skills cannot be checked, so they are not served: ${error.message}; the log names their folder`
  }

  async close (): Promise<void> {
    for (const file of this.files) file.close()
    await Promise.all([...this.#origins, ...this.#gone].map(({ sync }) => sync.close()))
  }

  /** Counts the quarantined skills of these roots, and names `max` of them; undefined if none can be refused. */
  quarantinedIn (roots: readonly string[], max = MAX_NAMED): Quarantined | undefined {
    const guarded = this.#origins.filter(({ root, listing }) => roots.includes(root.name) && listing.isGuarded)
    if (guarded.length === 0) return undefined
    const all = guarded.flatMap(({ listing }) => listing.quarantined)
    return { count: all.length, first: all.slice(0, max) }
  }

  /** Judges a state of a skill, for catalog entries. */
  async trustReportOf (state: SkillState): Promise<Pick<Verdict, 'report' | 'findings'>> {
    const { revision, skill_name: name } = await state.manifest()
    const verdicts = this.#origins.map(({ listing }) => listing.verdictOn(name, revision))
    const { policy } = this.#options
    return verdicts.find((each) => each !== undefined) ??
      judge(name, await policy.check(state), { ...policy.files, isRequired: false })
  }
}

/**
 * Opens the lock and the trust file that the settings name. From then on sources ask them before they publish.
 * @throws ConfigError when a file cannot be used now
 */
export async function openTrust (
  { lockFile, trustFile, watchPolling: polling, linkTargets }: Partial<Config>,
  { sources, state }: Pick<OpenedRoots, 'sources' | 'state'>, log: CoreLog
): Promise<Trust | undefined> {
  if (lockFile === undefined && trustFile === undefined) return undefined
  if (lockFile !== undefined) await checkLockFile(lockFile, '--locked (LOCKED)')
  const lock = lockFile === undefined
    ? undefined
    : await FollowedFile.open({ name: 'the lock', setting: 'LOCKED or --locked', path: lockFile, log }, parseLock)
  const trust = trustFile === undefined
    ? undefined
    : await FollowedFile.open({ name: 'the trust file', setting: 'TRUST_FILE or --trust', path: trustFile, log },
      (path, text, readNamed) => parseTrust(path, text, sources.roots.map(({ name }) => name), readNamed))
  const policy = new TrustPolicy({ lock: lock?.value, trust: trust?.value }, (name) => sources.givenNameOf(name))
  sources.guardBy(async (candidate) => { await approve(candidate, policy) })
  return new Trust({ policy, lock, trust, state, log, polling, linkTargets })
}

/**
 * Refuses a new state of a source if one of its skills is not signed as the trust file requires. The source keeps its
 * previous state.
 * @throws SourceError `verification_failed`
 */
async function approve ({ source, revision, folders }: Candidate, policy: TrustPolicy): Promise<void> {
  const { trust, isRequired } = policy.rulesFor(source)
  if (!isRequired) return
  // Each skill lies in a folder of its own.
  const projectRoots = [...folders.values()].map(dirname)
  const skills = createSkillManager({ projectRoots, watcher: false, keep: { keepMs: 0 } })
  try {
    await skills.start()
    const verdicts = await verifySkills(skills, [...folders.keys()], policy, { trust })
    for (const [name, { reason }] of verdicts) {
      if (reason === undefined) continue
      const sentence = `${revision} is refused for the skill ${JSON.stringify(name)}: ${reason.message}`
      throw new SourceError('verification_failed', sentence)
    }
  } finally {
    await skills.close()
  }
}
