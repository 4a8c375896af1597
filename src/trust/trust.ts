import { EventEmitter } from 'node:events'
import { basename } from 'node:path'
import { FollowedFile } from '../config/files/followed-file.ts'
import { readTextFile } from '../config/files/yaml-file.ts'
import type { OpenedRoots } from '../config/roots.ts'
import type { Config } from '../config/settings.ts'
import type { EntryState, ValidatedEntry } from '../core/listing/entry.ts'
import type { SkillState } from '../core/revisions/state.ts'
import type { RootOptions } from '../core/roots/root.ts'
import type { CoreLog } from '../core/shared/log.ts'
import type { TrustReport } from '../core/shared/origin.ts'
import type { Finding } from '../core/shared/skill.ts'
import { createSkillManager } from '../core/skill-manager.ts'
import { Signal } from '../sources/signal.ts'
import type { StateFolder } from '../sources/publish/state-folder.ts'
import { SourceError } from '../sources/source-error.ts'
import type { Candidate } from '../sources/fetched-origin.ts'
import { parseLock } from './lock-file.ts'
import { Policy, type Verdict } from './policy.ts'
import { parseTrust, type TrustFile } from './trust-file.ts'
import { VerifiedRoot } from './verified-root.ts'
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

type Roots = Pick<OpenedRoots, 'projectRoots' | 'personalRoot'>

/** What guards roots. */
export type RootPolicy = Pick<Policy, 'guards' | 'check' | 'allows' | 'on'>

interface TrustOptions {
  readonly policy: RootPolicy
  /** The files of the policy, by what messages call them. */
  readonly files?: ReadonlyMap<string, FollowedFile<unknown>>
  /** Project roots first, the personal root last. */
  readonly roots: ReadonlyArray<RootOptions & { readonly name: string }>
  readonly state: StateFolder
  readonly log: CoreLog
  readonly polling?: boolean | undefined
  readonly linkTargets?: readonly string[] | undefined
}

/** The lock and the trust file of a service, and the roots that they guard. They follow their files until `close`. */
export class Trust extends EventEmitter<{ verdict: [TrustChange] }> {
  readonly #policy: RootPolicy
  readonly #files: ReadonlyMap<string, FollowedFile<unknown>>
  readonly #log: CoreLog
  readonly #roots: readonly VerifiedRoot[]
  /** Why skills are refused, by root and name. */
  readonly #reasons = new Map<string, string>()

  constructor ({ policy, files = new Map(), roots, ...options }: TrustOptions) {
    super()
    this.#policy = policy
    this.#files = files
    this.#log = options.log
    this.#roots = roots.map((root) => new VerifiedRoot({
      ...options, root, policy, onVerdict: (name, verdict) => { this.#note(root.name, name, verdict) }
    }))
    policy.on('changed', () => { for (const root of this.#roots) void root.policyChanged() })
  }

  /** What the catalog gets instead of the roots that were opened. */
  guarded ({ projectRoots, personalRoot }: Roots): Roots {
    const roots = this.#roots.map(({ root }) => root)
    const last = roots[projectRoots.length]
    const projects = roots.slice(0, projectRoots.length)
    return { projectRoots: projects, ...personalRoot !== undefined && last && { personalRoot: last } }
  }

  get files (): ReadonlyArray<FollowedFile<unknown>> {
    return [...this.#files.values()]
  }

  /** What is wrong with the files, for /readyz. */
  remark (): string | undefined {
    return [...this.#files].flatMap(([name, file]) => file.remark(name) ?? []).join('; ') || undefined
  }

  /**
   * Checks the skills of guarded roots, and returns when the good ones can be served.
   * @throws ConfigError that names the setting, where there is no folder for the verified copies
   */
  async start (): Promise<void> {
    await Promise.all(this.#roots.map((root) => root.start()))
  }

  async close (): Promise<void> {
    for (const file of this.files) file.close()
    await Promise.all(this.#roots.map((root) => root.close()))
  }

  /** How many skills of these roots are refused; undefined while none can be. */
  refusedIn (roots: readonly string[]): number | undefined {
    const counts = this.#roots.flatMap(({ root, refused }) => roots.includes(root.name) ? refused ?? [] : [])
    return counts.length === 0 ? undefined : counts.reduce((sum, count) => sum + count, 0)
  }

  /** What the policy says of a state of a skill. */
  async originOf (state: SkillState): Promise<Pick<Verdict, 'report' | 'findings'>> {
    const { revision, skill_name: name } = await state.manifest()
    const known = this.#roots.map((root) => root.verdictOn(name, revision)).find((verdict) => verdict !== undefined)
    return known ?? await this.#policy.check('', state)
  }

  /** Adds the origin of skills to their entries. */
  validating<Validated extends ValidatedEntry, More extends readonly unknown[]> (
    validate: (entry: EntryState, ...more: More) => Promise<Validated>
  ): (entry: EntryState, ...more: More) => Promise<Validated & ValidatedEntry> {
    return async (entry, ...more) => {
      const validated = await validate(entry, ...more)
      if (entry.state === undefined) return validated
      const { report, findings } = await this.originOf(entry.state)
      return { ...validated, findings: [...validated.findings, ...findings], trust: report }
    }
  }

  /** Reports which skills are refused, and which are served again. */
  #note (root: string, skill: string, verdict: Verdict | undefined): void {
    const key = JSON.stringify([root, skill])
    const before = this.#reasons.get(key)
    this.#reasons.delete(key)
    if (verdict === undefined) return
    const { isServed, report, findings } = verdict
    const reason = isServed ? undefined : findings[0]
    if (reason !== undefined) this.#reasons.set(key, reason.message)
    if (reason?.message === before) return
    const fields = { skill, root, ...report.signer !== null && { signer: report.signer } }
    const problem = { ...fields, code: reason?.code, problem: reason?.message }
    if (isServed) this.#log.info(fields, 'a skill is served: it has passed its check')
    else this.#log.warn(problem, 'a skill is quarantined: it is not served')
    this.emit('verdict', { skill, root, isServed, report, reason })
  }
}

/**
 * The lock and the trust file that the settings name. Sources ask them from then on, before they publish.
 * @throws ConfigError when a file cannot be used now
 */
export async function openTrust (
  { lockFile, trustFile, watchPolling: polling, linkTargets }: TrustSettings,
  { projectRoots, personalRoot, sources, state }: OpenedRoots, log: CoreLog
): Promise<Trust | undefined> {
  if (lockFile === undefined && trustFile === undefined) return undefined
  const roots = [...projectRoots, ...personalRoot === undefined ? [] : [personalRoot]]
    .map((root) => ({ ...root, name: root.name ?? basename(root.path) }))
  const names = roots.map(({ name }) => name)
  const given = sources?.givenNames ?? new Map<string, string>()
  const lock = lockFile === undefined
    ? undefined
    : await FollowedFile.open('LOCKED or --locked', lockFile, (text) => parseLock(lockFile, text))
  const trust = trustFile === undefined
    ? undefined
    : await FollowedFile.open('TRUST_FILE or --trust', trustFile, async (text, readNamed) =>
      withGivenNames(await parseTrust(trustFile, text, names, readNamed), given))
  const present = () => ({ lock: lock?.value, trust: trust?.value })
  const policy = new Policy(present())
  const files = new Map<string, FollowedFile<unknown>>()
  if (lock !== undefined) files.set('the lock', lock)
  if (trust !== undefined) files.set('the trust file', trust)
  for (const [name, file] of files) {
    file.on('changed', () => {
      log.info({}, `${name} was read again: it is in force`)
      policy.replace(present())
    })
    file.on('failed', (error) => {
      if (error === undefined) return
      log.warn({ problem: error.message }, `${name} cannot be used; the last good one stays in force`)
    })
  }
  sources?.guardBy(async (candidate) => {
    if (trust?.value.roots.get(candidate.source) !== 'require') return
    await approve(candidate, new Policy({ trust: trust.value }))
  })
  return new Trust({ policy, files, roots, state, log, polling, linkTargets })
}

/**
 * Refuses a state of a source in which a skill is not signed as the policy asks: the whole previous state stays.
 * @throws SourceError `verification_failed`
 */
async function approve (candidate: Candidate, policy: Policy): Promise<void> {
  const { source: name, revision, skillsFolder: path, folders } = candidate
  const listed = {
    isFixed: true,
    changed: new Signal(),
    folders: new Map([...folders].map(([skill, folder]) => [skill, { path: folder, realPath: folder }]))
  }
  const skills = createSkillManager({ projectRoots: [{ path, name, listed }], watcher: false, keep: { keepMs: 0 } })
  try {
    await skills.start()
    const verified = await verifySkills(skills, [...folders.keys()], policy, name)
    const refused = verified.find(({ isServed }) => !isServed)
    if (refused === undefined) return
    const sentence = `${revision} is refused: the skill ${JSON.stringify(refused.name)}: ${refused.problem}`
    throw new SourceError('verification_failed', sentence)
  } finally {
    await skills.close()
  }
}

/**
 * The policy of files as they are now, which asks of every root what `require` asks.
 * @throws ConfigError when a file cannot be used
 */
export async function readPolicy ({ lockFile, trustFile }: TrustSettings): Promise<{
  readonly policy: Policy
  readonly lockedNames: readonly string[]
}> {
  const lock = lockFile === undefined
    ? undefined
    : parseLock(lockFile, await readTextFile(lockFile, '--locked'))
  const trust = trustFile === undefined
    ? undefined
    : await parseTrust(trustFile, await readTextFile(trustFile, '--trust'))
  return { policy: new Policy({ lock, trust }, { mode: 'require' }), lockedNames: [...lock?.keys() ?? []] }
}

/** A rule for a name holds for all roots that were given it, unless it names the number too. */
function withGivenNames (trust: TrustFile, givenNames: ReadonlyMap<string, string>): TrustFile {
  const roots = new Map(trust.roots)
  for (const [name, given] of givenNames) {
    const mode = trust.roots.get(name) ?? trust.roots.get(given)
    if (mode !== undefined) roots.set(name, mode)
  }
  return { ...trust, roots }
}
