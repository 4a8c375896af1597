import { EventEmitter } from 'node:events'
import { dirname } from 'node:path'
import { FollowedFile } from '../config/files/followed-file.ts'
import type { OpenedRoots } from '../config/roots.ts'
import type { Config } from '../config/settings.ts'
import type { SkillState } from '../core/revisions/state.ts'
import type { RootOptions } from '../core/roots/root.ts'
import type { CoreLog } from '../core/shared/log.ts'
import { createSkillManager } from '../core/skill-manager.ts'
import { SourceError } from '../sources/source-error.ts'
import type { Candidate } from '../sources/fetched-origin.ts'
import { parseLock } from './lock-file.ts'
import { Policy, type Verdict } from './policy.ts'
import { parseTrust, type TrustFile } from './trust-file.ts'
import { type TrustChange, VerifiedRoot, type VerifiedRootOptions } from './verified-root.ts'
import { verifySkills } from './verify.ts'

interface TrustOptions extends VerifiedRootOptions {
  readonly files?: ReadonlyArray<FollowedFile<unknown>>
}

/** The lock and the trust file of a service, and the roots that they guard. They follow their files until `close`. */
export class Trust extends EventEmitter<{ verdict: [TrustChange] }> {
  /** The lock and the trust file. */
  readonly files: ReadonlyArray<FollowedFile<unknown>>
  readonly #options: TrustOptions
  /** By the roots that they take the place of. */
  #guarded: ReadonlyMap<RootOptions, VerifiedRoot> = new Map()

  constructor (options: TrustOptions) {
    super()
    const { policy, files = [] } = this.#options = options
    this.files = files
    policy.on('changed', () => { for (const root of this.#verified) void root.policyChanged() })
  }

  /** What the catalog gets instead of these roots: for one that was here before, the same. */
  guard (roots: readonly RootOptions[]): readonly RootOptions[] {
    const before = this.#guarded
    const guard = (root: RootOptions): VerifiedRoot =>
      new VerifiedRoot(root, this.#options).on('verdict', (change) => { this.emit('verdict', change) })
    this.#guarded = new Map(roots.map((root) => [root, before.get(root) ?? guard(root)]))
    for (const [root, { sync }] of before) if (!this.#guarded.has(root)) void sync.close()
    return this.#verified.map(({ root }) => root)
  }

  get #verified (): readonly VerifiedRoot[] {
    return [...this.#guarded.values()]
  }

  /**
   * Checks the skills of guarded roots, and returns when the good ones can be served.
   * @throws ConfigError that names the setting, where there is no folder for the verified copies
   */
  async start (): Promise<void> {
    await Promise.all(this.#verified.map((root) => root.open()))
  }

  async close (): Promise<void> {
    for (const file of this.files) file.close()
    await Promise.all(this.#verified.map(({ sync }) => sync.close()))
  }

  /** How many skills of these roots are refused; undefined while none can be. */
  refusedIn (roots: readonly string[]): number | undefined {
    const counts = this.#verified.flatMap(({ root, refused }) => roots.includes(root.name) ? refused ?? [] : [])
    return counts.length === 0 ? undefined : counts.reduce((sum, count) => sum + count, 0)
  }

  /** What the policy says of a state of a skill. */
  async originOf (state: SkillState): Promise<Pick<Verdict, 'report' | 'findings'>> {
    const { revision, skill_name: name } = await state.manifest()
    const known = this.#verified.map((root) => root.verdictOn(name, revision)).find((verdict) => verdict !== undefined)
    return known ?? await this.#options.policy.check(state, false)
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
  const lock = lockFile === undefined
    ? undefined
    : await FollowedFile.open({ name: 'the lock', setting: 'LOCKED or --locked', path: lockFile, log }, parseLock)
  const trust = trustFile === undefined
    ? undefined
    : await FollowedFile.open({ name: 'the trust file', setting: 'TRUST_FILE or --trust', path: trustFile, log },
      (path, text, readNamed) => parseTrust(path, text, sources.roots.map(({ name }) => name), readNamed))
  const present = () => ({ lock: lock?.value, trust: trust?.value })
  const policy = new Policy(present(), (name) => sources.givenNameOf(name))
  const files = [lock ?? [], trust ?? []].flat()
  for (const file of files) file.on('changed', () => { policy.replace(present()) })
  sources.guardBy(async (candidate) => {
    if (trust !== undefined && policy.requires(candidate.source)) await approve(candidate, trust.value)
  })
  return new Trust({ policy, files, state, log, polling, linkTargets })
}

/**
 * Refuses a state of a source in which a skill is not signed as the trust file asks: the whole previous state stays.
 * @throws SourceError `verification_failed`
 */
async function approve ({ revision, folders }: Candidate, trust: TrustFile): Promise<void> {
  // Each lies in a folder of its own.
  const projectRoots = [...folders.values()].map(dirname)
  const skills = createSkillManager({ projectRoots, watcher: false, keep: { keepMs: 0 } })
  try {
    await skills.start()
    const verdicts = await verifySkills(skills, [...folders.keys()], new Policy({ trust }))
    for (const [name, { isServed, findings: [reason] }] of verdicts) {
      if (isServed) continue
      const sentence = `${revision} is refused: the skill ${JSON.stringify(name)}: ${reason?.message ?? ''}`
      throw new SourceError('verification_failed', sentence)
    }
  } finally {
    await skills.close()
  }
}
