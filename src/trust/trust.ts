import { EventEmitter } from 'node:events'
import { basename, dirname } from 'node:path'
import { FollowedFile } from '../config/files/followed-file.ts'
import type { OpenedRoots } from '../config/roots.ts'
import type { Config } from '../config/settings.ts'
import type { SkillState } from '../core/revisions/state.ts'
import type { RootOptions } from '../core/roots/root.ts'
import type { CoreLog } from '../core/shared/log.ts'
import type { TrustReport } from '../schemas/trust.ts'
import type { Finding } from '../core/shared/skill.ts'
import { createSkillManager } from '../core/skill-manager.ts'
import { SourceError } from '../sources/source-error.ts'
import type { Candidate } from '../sources/fetched-origin.ts'
import { parseLock } from './lock-file.ts'
import { Policy, type Verdict } from './policy.ts'
import { parseTrust, type TrustFile } from './trust-file.ts'
import { VerifiedRoot, type VerifiedRootOptions } from './verified-root.ts'
import { verifySkills } from './verify.ts'

/** A skill is refused, for another reason than before, or served again. */
export interface TrustChange {
  readonly skill: string
  /** Name of its root. */
  readonly root: string
  readonly isServed: boolean
  readonly report: TrustReport
  readonly reason: Finding | undefined
}

/** What operators name: absolute paths. */
type TrustSettings = Partial<Pick<Config, 'lockFile' | 'trustFile' | 'watchPolling' | 'linkTargets'>>

/** What guards roots. */
export type RootPolicy = Pick<Policy, 'guards' | 'check' | 'allows' | 'on'>

type Roots = Pick<OpenedRoots, 'projectRoots' | 'personalRoot'>

interface TrustOptions extends Omit<VerifiedRootOptions, 'root' | 'onVerdict'>, Roots {
  readonly policy: RootPolicy
  readonly files?: ReadonlyArray<FollowedFile<unknown>>
}

/** The lock and the trust file of a service, and the roots that they guard. They follow their files until `close`. */
export class Trust extends EventEmitter<{ verdict: [TrustChange] }> {
  /** The lock and the trust file. */
  readonly files: ReadonlyArray<FollowedFile<unknown>>
  /** What the catalog gets instead of the roots that were opened. */
  readonly roots: Roots
  readonly #options: TrustOptions
  readonly #verified: VerifiedRoot[] = []

  constructor (options: TrustOptions) {
    super()
    const { policy, files = [], projectRoots, personalRoot } = this.#options = options
    this.files = files
    this.roots = {
      projectRoots: projectRoots.map((root) => this.#guard(root)),
      ...personalRoot !== undefined && { personalRoot: this.#guard(personalRoot) }
    }
    policy.on('changed', () => { for (const root of this.#verified) void root.policyChanged() })
  }

  #guard (options: RootOptions): RootOptions {
    const root = { ...options, name: nameOf(options) }
    const verified = new VerifiedRoot({
      ...this.#options, root, onVerdict: (name, verdict, before) => { this.#note(root.name, name, verdict, before) }
    })
    this.#verified.push(verified)
    return verified.root
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
    await Promise.all(this.#verified.map(({ keeper }) => keeper.close()))
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
    return known ?? await this.#options.policy.check('', state)
  }

  /** Reports which skills are refused, and which are served again. */
  #note (root: string, skill: string, verdict: Verdict | undefined, before: Verdict | undefined): void {
    const reason = reasonOf(verdict)
    if (verdict === undefined || reason?.message === reasonOf(before)?.message) return
    const { isServed, report } = verdict
    const fields = { skill, root, ...report.signer !== null && { signer: report.signer } }
    const problem = { ...fields, code: reason?.code, problem: reason?.message }
    if (isServed) this.#options.log.info(fields, 'a skill is served: it has passed its check')
    else this.#options.log.warn(problem, 'a skill is quarantined: it is not served')
    this.emit('verdict', { skill, root, isServed, report, reason })
  }
}

/** Why a skill is refused. */
function reasonOf (verdict: Verdict | undefined): Finding | undefined {
  return verdict?.isServed === false ? verdict.findings[0] : undefined
}

/**
 * The lock and the trust file that the settings name. Sources ask them from then on, before they publish.
 * @throws ConfigError when a file cannot be used now
 */
export async function openTrust (
  { lockFile, trustFile, watchPolling: polling, linkTargets }: TrustSettings, opened: OpenedRoots, log: CoreLog
): Promise<Trust | undefined> {
  if (lockFile === undefined && trustFile === undefined) return undefined
  const { sources, state, ...roots } = opened
  const names = [...roots.projectRoots, roots.personalRoot ?? []].flat().map(nameOf)
  const lock = lockFile === undefined
    ? undefined
    : await FollowedFile.open({ name: 'the lock', setting: 'LOCKED or --locked', path: lockFile, log }, parseLock)
  const trust = trustFile === undefined
    ? undefined
    : await FollowedFile.open({ name: 'the trust file', setting: 'TRUST_FILE or --trust', path: trustFile, log },
      (path, text, readNamed) => parseTrust(path, text, names, readNamed))
  const present = () => ({ lock: lock?.value, trust: trust?.value })
  const policy = new Policy(present(), { givenNames: sources?.givenNames })
  const files = [lock ?? [], trust ?? []].flat()
  for (const file of files) file.on('changed', () => { policy.replace(present()) })
  sources?.guardBy(async (candidate) => {
    if (trust !== undefined && policy.requires(candidate.source)) await approve(candidate, trust.value)
  })
  return new Trust({ policy, files, ...roots, state, log, polling, linkTargets })
}

/**
 * Refuses a state of a source in which a skill is not signed as the trust file asks: the whole previous state stays.
 * @throws SourceError `verification_failed`
 */
async function approve ({ source, revision, folders }: Candidate, trust: TrustFile): Promise<void> {
  // Each lies in a folder of its own.
  const projectRoots = [...folders.values()].map(dirname)
  if (projectRoots.length === 0) return
  const skills = createSkillManager({ projectRoots, watcher: false, keep: { keepMs: 0 } })
  try {
    await skills.start()
    const policy = new Policy({ trust }, { mode: 'require' })
    const refused = (await verifySkills(skills, [...folders.keys()], policy, source)).find(({ isServed }) => !isServed)
    if (refused === undefined) return
    const sentence = `${revision} is refused: the skill ${JSON.stringify(refused.name)}: ${refused.problem}`
    throw new SourceError('verification_failed', sentence)
  } finally {
    await skills.close()
  }
}

function nameOf ({ name, path }: RootOptions): string {
  return name ?? basename(path)
}
