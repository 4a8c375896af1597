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
import { checkLockFile, parseLock } from './lock-file.ts'
import { parseTrust } from './trust-file.ts'
import { TrustPolicy } from './trust-policy.ts'
import type { Verdict } from './verdict.ts'
import { verifySkills } from './verify.ts'

/** How many of the skills that are quarantined are named. */
const MAX_NAMED = 50

interface TrustOptions extends GuardedOriginOptions {
  readonly files?: ReadonlyArray<FollowedFile<unknown>>
  /** Reads the files for roots of these names. */
  readonly prepareFiles?: (roots: readonly string[]) => Promise<readonly Prepared[]>
}

/** The lock and the trust file of a service, and the roots that they guard. They follow their files until `close`. */
export class Trust extends EventEmitter<{ verdict: [TrustChange] }> {
  /** The lock and the trust file. */
  readonly files: ReadonlyArray<FollowedFile<unknown>>
  readonly #options: TrustOptions
  /** By the roots that they take the place of. */
  #guarded: ReadonlyMap<RootOptions, GuardedOrigin> = new Map()
  readonly #gone = new Set<GuardedOrigin>()

  constructor (options: TrustOptions) {
    super()
    const { policy, files = [] } = this.#options = options
    this.files = files
    policy.on('changed', () => { for (const origin of this.#origins) void origin.policyChanged() })
  }

  /**
   * Reads the lock and the trust file for roots of these names.
   * @throws ConfigError when one of them cannot be used
   */
  async prepare (roots: readonly string[]): Promise<readonly Prepared[]> {
    return await this.#options.prepareFiles?.(roots) ?? []
  }

  /**
   * Returns what the catalog gets instead of these roots: for one that was here before, the same. Those that are gone
   * stay guarded, by the rules of this moment, until `retire`.
   */
  guard (roots: readonly RootOptions[]): readonly RootOptions[] {
    const before = this.#guarded
    this.#guarded = new Map(roots.map((root) => [root, before.get(root) ?? this.#guard(root)]))
    for (const [root, origin] of before) {
      if (this.#guarded.has(root)) continue
      origin.listing.retire()
      this.#gone.add(origin)
    }
    return this.#origins.map(({ root }) => root)
  }

  /** Checks the skills of roots that were not checked yet. What keeps a root from being checked is in the log. */
  async check (): Promise<void> {
    const fresh = this.#origins.filter(({ sync }) => sync.status.checked_at === undefined)
    await Promise.all(fresh.map(({ sync }) => sync.checkNow()))
  }

  /** Closes the roots that are gone. */
  async retire (): Promise<void> {
    const gone = [...this.#gone]
    this.#gone.clear()
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
   * Checks the skills of guarded roots, and returns when those that are accepted can be served.
   * @throws ConfigError that names the setting, where there is no folder for the verified copies
   */
  async start (): Promise<void> {
    await Promise.all(this.#origins.map((origin) => origin.open()))
  }

  async close (): Promise<void> {
    for (const file of this.files) file.close()
    await Promise.all([...this.#origins, ...this.#gone].map(({ sync }) => sync.close()))
  }

  /** The skills of these roots that are refused now; undefined while none can be. */
  quarantinedIn (roots: readonly string[]): Quarantined | undefined {
    const guarded = this.#origins.filter(({ root, listing }) => roots.includes(root.name) && listing.isGuarded)
    if (guarded.length === 0) return undefined
    const all = guarded.flatMap(({ root, listing }) => (listing.quarantined ?? []).map(({ skill, reason }) =>
      ({ name: skill, root: root.name, code: reason.code, message: reason.message })))
    return { count: all.length, first: all.slice(0, MAX_NAMED) }
  }

  /** Returns what the policy says of a state of a skill. */
  async originOf (state: SkillState): Promise<Pick<Verdict, 'report' | 'findings'>> {
    const { revision, skill_name: name } = await state.manifest()
    const verdicts = this.#origins.map(({ listing }) => listing.verdictOn(name, revision))
    const { policy } = this.#options
    return verdicts.find((each) => each !== undefined) ?? policy.judge(name, await policy.check(state), false)
  }
}

/**
 * The lock and the trust file that the settings name. Sources ask them from then on, before they publish.
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
  const present = () => ({ lock: lock?.value, trust: trust?.value })
  const policy = new TrustPolicy(present(), (name) => sources.givenNameOf(name))
  const files = [lock ?? [], trust ?? []].flat()
  for (const file of files) file.on('changed', () => { policy.replace(present()) })
  sources.guardBy(async (candidate) => {
    if (policy.requires(candidate.source)) await approve(candidate, policy)
  })
  const prepareFiles = async (names: readonly string[]): Promise<readonly Prepared[]> => [
    await lock?.prepare() ?? [],
    await trust?.prepare((path, text, readNamed) => parseTrust(path, text, names, readNamed)) ?? []
  ].flat()
  return new Trust({ policy, files, prepareFiles, state, log, polling, linkTargets })
}

/**
 * Refuses a state of a source in which a skill is not signed as the trust file asks: the whole previous state stays.
 * @throws SourceError `verification_failed`
 */
async function approve ({ revision, folders }: Candidate, policy: TrustPolicy): Promise<void> {
  // Each lies in a folder of its own.
  const projectRoots = [...folders.values()].map(dirname)
  const skills = createSkillManager({ projectRoots, watcher: false, keep: { keepMs: 0 } })
  try {
    await skills.start()
    const verdicts = await verifySkills(skills, [...folders.keys()], policy, { trust: policy.files.trust })
    for (const [name, { isServed, findings: [reason] }] of verdicts) {
      if (isServed) continue
      const sentence = `${revision} is refused: the skill ${JSON.stringify(name)}: ${reason?.message ?? ''}`
      throw new SourceError('verification_failed', sentence)
    }
  } finally {
    await skills.close()
  }
}
