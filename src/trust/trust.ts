import { EventEmitter } from 'node:events'
import { basename } from 'node:path'
import type { SkillState } from '../core/revisions/state.ts'
import { finding } from '../core/format/findings.ts'
import type { EntryState, JudgedEntry } from '../core/listing/entry.ts'
import type { RootOptions } from '../core/roots/root.ts'
import type { CoreLog } from '../core/shared/log.ts'
import type { TrustChange, TrustReport } from '../core/shared/origin.ts'
import type { Finding } from '../core/shared/skill.ts'
import { FollowedFile, type FollowedPolicy } from '../config/files/followed-file.ts'
import { ConfigError } from '../config/setting.ts'
import { readSetting } from '../config/files/yaml-file.ts'
import { AddressError } from '../sources/source-error.ts'
import { type CheckedSkill, VerifiedRoot } from '../sources/verified-root.ts'
import type { StateFolder } from '../sources/publish/state-folder.ts'
import type { Sources } from '../sources/sources.ts'
import { approveCandidate } from './approve-candidate.ts'
import { parseLock } from './lock-file.ts'
import { Policy, type Verdict } from './policy.ts'
import { subjectOf } from './subject.ts'
import { parseTrust, type Trust as TrustFile } from './trust-file.ts'

export const LOCK_REMEDY = '; `skillserve lock` writes it, and --locked=FILE names another'

/** The roots of a service. */
interface Roots {
  readonly projectRoots: readonly RootOptions[]
  readonly personalRoot?: RootOptions
}

/** The same with what keeps them up to date, and the folder for verified copies. */
interface OpenedRoots extends Roots {
  readonly sources: Sources | undefined
  readonly state: StateFolder
}

/** What operators name: absolute paths. */
export interface TrustSettings {
  readonly lockFile?: string | undefined
  readonly trustFile?: string | undefined
  readonly watchPolling?: boolean
  readonly linkTargets?: readonly string[] | undefined
}

/** What answers say of a state of a skill. */
interface Origin {
  readonly report: TrustReport
  readonly findings: readonly Finding[]
}

/** What guards roots. */
export type RootPolicy = Pick<Policy, 'guards' | 'judge' | 'allows' | 'on'>

interface TrustParts {
  readonly policy: RootPolicy
  readonly files: ReadonlyArray<{ readonly name: string, readonly file: FollowedPolicy & Pick<FollowedFile<unknown>, 'remark' | 'close'> }>
  readonly roots: ReadonlyArray<VerifiedRoot<Verdict>>
}

/** The lock and the trust file of a service, and the roots that they guard. They follow their files until `close`. */
export class Trust extends EventEmitter<{ verdict: [TrustChange] }> {
  readonly #parts: TrustParts
  /** The same array for the same findings, by those of a state without its origin. */
  readonly #findings = new WeakMap<readonly Finding[], readonly Finding[]>()

  constructor (parts: TrustParts) {
    super()
    this.#parts = parts
    parts.policy.on('changed', () => { for (const root of parts.roots) void root.guardChanged() })
  }

  /** What the catalog gets instead of the roots that were opened. */
  guarded ({ projectRoots, personalRoot }: Roots): Roots {
    const [own, personal] = [this.#parts.roots.slice(0, projectRoots.length), this.#parts.roots[projectRoots.length]]
    return { projectRoots: own.map(({ root }) => root), ...personalRoot !== undefined && personal && { personalRoot: personal.root } }
  }

  get files (): readonly FollowedPolicy[] {
    return this.#parts.files.map(({ file }) => file)
  }

  /** What is wrong with the files, for /readyz. */
  remark (): string | undefined {
    return this.#parts.files.flatMap(({ file, name }) => file.remark(name) ?? []).join('; ') || undefined
  }

  /**
   * Checks the skills of guarded roots, and returns when the good ones can be served.
   * @throws ConfigError that names the setting, where there is no folder for the verified copies
   */
  async start (): Promise<void> {
    try {
      await Promise.all(this.#parts.roots.map((root) => root.start()))
    } catch (error) {
      throw error instanceof AddressError ? new ConfigError(error.message, { cause: error }) : error
    }
  }

  async close (): Promise<void> {
    for (const { file } of this.#parts.files) file.close()
    await Promise.all(this.#parts.roots.map((root) => root.close()))
  }

  /** How many skills of these roots are refused; undefined while none can be. */
  refusedIn (roots: readonly string[]): number | undefined {
    const counts = this.#parts.roots.flatMap(({ root, refused }) => roots.includes(root.name) ? refused ?? [] : [])
    return counts.length === 0 ? undefined : counts.reduce((sum, count) => sum + count, 0)
  }

  /** Where a state of a skill comes from. It is worked out once for each revision. */
  async originOf (state: SkillState): Promise<Origin> {
    const { revision, skill_name: name } = await state.manifest()
    const known = this.#parts.roots.map((root) => root.verdictOn(name, revision)).find((verdict) => verdict !== undefined)
    return known ?? await this.#parts.policy.judge('', await subjectOf(state))
  }

  /** Adds the origin of skills to what a judge says of them. */
  judging<Judged extends JudgedEntry, More extends readonly unknown[]> (
    judge: (state: EntryState, ...more: More) => Promise<Judged>
  ): (state: EntryState, ...more: More) => Promise<Judged & JudgedEntry> {
    return async (state, ...more) => {
      if (state.state === undefined) return await judge(state, ...more)
      const origin = await this.originOf(state.state)
      const judged = await judge({ ...state, fileFindings: this.#withFindings(origin, state.fileFindings) }, ...more)
      return { ...judged, trust: origin.report }
    }
  }

  #withFindings (origin: Origin, before: readonly Finding[]): readonly Finding[] {
    if (origin.findings.length === 0) return before
    const all = [...before, ...origin.findings]
    const known = this.#findings.get(before)
    if (known?.every((each, index) => each.message === all[index]?.message) === true && known.length === all.length) return known
    this.#findings.set(before, all)
    return all
  }
}

/**
 * The lock and the trust file that the settings name. Sources ask them from then on, before they publish.
 * @throws ConfigError when a file cannot be used now
 */
export async function openTrust (
  { lockFile, trustFile, watchPolling, linkTargets }: TrustSettings,
  { projectRoots, personalRoot, sources, state }: OpenedRoots, log: CoreLog
): Promise<Trust | undefined> {
  if (lockFile === undefined && trustFile === undefined) return undefined
  const opened = [...projectRoots, ...personalRoot === undefined ? [] : [personalRoot]].map(withName)
  const names = opened.map(({ name }) => name)
  const given = sources?.givenNames ?? new Map<string, string>()
  const lock = lockFile === undefined
    ? undefined
    : await readSetting('LOCKED or --locked', FollowedFile.open(lockFile, (text) => parseLock(lockFile, text)), LOCK_REMEDY)
  const trust = trustFile === undefined
    ? undefined
    : await readSetting('TRUST_FILE or --trust', FollowedFile.open(trustFile, (text, reads) => withGivenNames(parseTrust(trustFile, text, names, reads), given)))
  const policy = new Policy({ lock: lock?.value, trust: trust?.value })
  // Of sources, a whole state is refused in which a skill is not signed; a lock refuses single skills.
  const signatures = new Policy({ trust: trust?.value })
  const follow = <Value>(file: FollowedFile<Value> | undefined, name: string): void => {
    file?.on('changed', () => {
      log.info({}, `${name} was read again: it is in force`)
      signatures.replace({ trust: trust?.value })
      policy.replace({ lock: lock?.value, trust: trust?.value })
    })
    file?.on('failed', (error) => {
      if (error !== undefined) log.warn({ problem: error.message }, `${name} cannot be used; the last good one stays in force`)
    })
  }
  follow(lock, 'the lock')
  follow(trust, 'the trust file')
  sources?.guardBy(async (candidate) => {
    if (trust?.value.roots.get(candidate.source) === 'require') await approveCandidate(candidate, signatures)
  })
  const files = [...lock === undefined ? [] : [{ name: 'the lock', file: lock }], ...trust === undefined ? [] : [{ name: 'the trust file', file: trust }]]
  return createTrust({ policy, files, roots: opened, state, log, polling: watchPolling, linkTargets })
}

interface TrustOptions {
  readonly policy: RootPolicy
  readonly files?: TrustParts['files']
  /** Project roots first, the personal root last. */
  readonly roots: ReadonlyArray<RootOptions & { readonly name: string }>
  readonly state: StateFolder
  readonly log: CoreLog
  readonly polling?: boolean | undefined
  readonly linkTargets?: readonly string[] | undefined
}

/** Guards roots by a policy. */
export function createTrust ({ policy, files = [], roots, ...options }: TrustOptions): Trust {
  const notes = new Notes(options.log, (change) => { trust.emit('verdict', change) })
  const guarded = roots.map((root) => new VerifiedRoot<Verdict>({
    ...options,
    root,
    guard: {
      guards: () => policy.guards(root.name),
      check: async (skill) => await policy.judge(root.name, await subjectOf(skill)),
      refusal: unchecked,
      allows: (name, revision) => policy.allows(root.name, name, revision),
      onVerdict: (name, verdict) => { notes.add(root, name, verdict) }
    }
  }))
  const trust = new Trust({ policy, files, roots: guarded })
  return trust
}

function withName (root: RootOptions): RootOptions & { readonly name: string } {
  return { ...root, name: root.name ?? basename(root.path) }
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

function unchecked (reason: string): Verdict {
  const fix = 'Make all files of the skill readable, and remove what agents do not need'
  const findings = [finding('trust_unchecked', `the skill could not be checked: ${reason}`, fix)]
  const report = { signed: false, signer: null, status: null, checked_revision: '', pinned: null }
  return { isServed: false, report, findings, files: [], revision: '' }
}

/** Logs which skills are refused, and which are served again. */
class Notes {
  readonly #log: CoreLog
  readonly #onChange: (change: TrustChange) => void
  /** The reason for which a skill is refused, by root and name; '' for one that is served. */
  readonly #reasons = new Map<string, string>()

  constructor (log: CoreLog, onChange: (change: TrustChange) => void) {
    this.#log = log
    this.#onChange = onChange
  }

  add (root: RootOptions & { readonly name: string }, skill: string, verdict: (Verdict & CheckedSkill) | undefined): void {
    const key = JSON.stringify([root.path, skill])
    if (verdict === undefined) {
      this.#reasons.delete(key)
      return
    }
    const { isServed, report, findings: [first] } = verdict
    const reason = isServed ? undefined : first
    const before = this.#reasons.get(key) ?? ''
    this.#reasons.set(key, reason?.message ?? '')
    if (before === (reason?.message ?? '')) return
    const fields = { skill, root: root.name, ...report.signer !== null && { signer: report.signer } }
    if (isServed) this.#log.info(fields, 'a skill is served: it has passed its check')
    else this.#log.warn({ ...fields, code: reason?.code, problem: reason?.message }, 'a skill is quarantined: it is not served')
    this.#onChange({ skill, root: root.name, isServed, report, reason })
  }
}
