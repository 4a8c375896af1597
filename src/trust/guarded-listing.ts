import { EventEmitter } from 'node:events'
import { isDeepStrictEqual } from 'node:util'
import type { Listing } from '../core/roots/list-root.ts'
import type { Finding } from '../core/shared/skill.ts'
import type { TrustReport } from '../schemas/trust.ts'
import type { PublishedSkill } from '../sources/publish/plan.ts'
import type { Publisher } from '../sources/publish/publisher.ts'
import type { PolicyFiles, TrustPolicy } from './trust-policy.ts'
import { type CheckedSkill, unchecked, type Verdict } from './verdict.ts'

/** A skill was refused, for another reason than before, or is served again. */
export interface TrustChange {
  readonly skill: string
  /** Name of its root. */
  readonly root: string
  readonly isServed: boolean
  readonly report: TrustReport
  readonly reason: Finding | undefined
}

/** The verified copy of a skill, and what is to be said of files that it does not have. */
export interface Copy {
  readonly published: PublishedSkill
  readonly revision: string
  readonly findings: readonly Finding[]
}

/** What is known of a skill in a guarded root: the check and, unless it was refused, the copy; or why there is none. */
export type GuardedSkill = { readonly checked: CheckedSkill, readonly copy?: Copy } | { readonly error: unknown }

/** The verdicts of a time, and what is served by them. */
interface Judged {
  readonly files: PolicyFiles
  readonly skills: GuardedListing['skills']
  readonly from: number
  readonly until: number
  readonly verdicts: ReadonlyMap<string, Verdict>
  readonly folders: NonNullable<Listing['folders']>
}

interface GuardedListingOptions {
  /** Of the root. */
  readonly name: string
  readonly policy: TrustPolicy
  readonly copies: Pick<Publisher, 'folders' | 'changedAmong'>
  /** The listing that the root has otherwise. */
  readonly original: Listing | undefined
}

/**
 * Lists the copies of those skills that the policy accepts at the time of the question. While the policy can refuse no
 * skill of the root, the root has the listing that it has otherwise.
 */
export class GuardedListing extends EventEmitter<{ changed: [], verdict: [TrustChange] }> implements Listing {
  readonly #options: GuardedListingOptions
  #skills: ReadonlyMap<string, GuardedSkill> | undefined
  #judged: Judged | undefined
  /** What listeners know. */
  #announced: Judged | undefined
  #wasGuarded = false
  #wasRequired = false
  skipped = 0

  constructor (options: GuardedListingOptions) {
    super()
    this.#options = options
    options.original?.on('changed', () => { if (!this.isGuarded) this.emit('changed') })
  }

  /** Undefined until the skills have been checked. */
  get skills (): ReadonlyMap<string, GuardedSkill> | undefined {
    return this.#skills
  }

  get isGuarded (): boolean {
    return this.#wasGuarded || this.#options.policy.guards(this.#options.name)
  }

  /** Whether each skill must be signed. */
  get isRequired (): boolean {
    return this.#wasRequired || this.#options.policy.requires(this.#options.name)
  }

  /** Whether the root lists its own folder, as without this listing. */
  get isDirect (): boolean {
    return !this.isGuarded && this.#options.original === undefined
  }

  get isFixed (): boolean {
    return this.isGuarded || this.#options.original?.isFixed === true
  }

  get folders (): Listing['folders'] {
    const { original } = this.#options
    if (!this.isGuarded) return original?.folders
    const isFetched = original?.isFixed !== true || original.folders !== undefined
    return isFetched ? this.#now?.folders : undefined
  }

  get ignored (): Listing['ignored'] {
    return this.isGuarded ? undefined : this.#options.original?.ignored
  }

  hint (): void {
    this.#options.original?.hint?.()
  }

  /** Whether a revision that was read before may be served now. A skill that is quarantined is in no revision. */
  allows (name: string, revision: string): boolean {
    if (!this.isGuarded) return true
    if (reasonIn(this.#now?.verdicts.get(name)) !== undefined) return false
    const verdict = this.#options.policy.judgeRevision(name, revision, this.isRequired)
    return verdict?.isServed === true && verdict.revision === revision
  }

  /** The verdict on a revision of a skill that is served now; undefined for others. */
  verdictOn (name: string, revision: string): Verdict | undefined {
    const skill = this.#skills?.get(name)
    const copy = skill !== undefined && 'copy' in skill ? skill.copy : undefined
    const verdict = this.#now?.verdicts.get(name)
    if (!this.isGuarded || copy?.revision !== revision || verdict?.isServed !== true) return undefined
    return { ...verdict, findings: [...verdict.findings, ...copy.findings] }
  }

  /** The skills that are refused now, and why. Undefined while none can be. */
  get quarantined (): ReadonlyArray<{ readonly skill: string, readonly reason: Finding }> | undefined {
    if (!this.isGuarded) return undefined
    return [...this.#now?.verdicts ?? []].flatMap(([skill, verdict]) => {
      const reason = reasonIn(verdict)
      return reason === undefined ? [] : { skill, reason }
    })
  }

  /** Whether a skill has to be checked: it could not be, or is accepted and has no copy. */
  isIncomplete (name: string): boolean {
    const skill = this.#skills?.get(name)
    if (skill === undefined || 'error' in skill) return true
    const verdict = this.#now?.verdicts.get(name)
    return verdict?.isServed === true && skill.copy?.revision !== verdict.revision
  }

  /** Takes what was found out about the skills; undefined where nothing is known. */
  take (skills: GuardedListing['skills']): void {
    this.#skills = skills
    this.announce()
  }

  /** Reports what has changed since it was called last: skills that are refused or released, and other folders. */
  announce (): void {
    const before = this.#announced
    const now = this.#announced = this.isGuarded ? this.#now : undefined
    for (const [skill, verdict] of now?.verdicts ?? []) {
      const reason = reasonIn(verdict)
      if (reason?.message === reasonIn(before?.verdicts.get(skill))?.message) continue
      const { isServed, report } = verdict
      this.emit('verdict', { skill, root: this.#options.name, isServed, report, reason })
    }
    if (now?.folders !== before?.folders) this.emit('changed')
  }

  /** Keeps the rules of this moment until the root is gone, although the next trust file may have none for it. */
  retire (): void {
    this.#wasGuarded = this.isGuarded
    this.#wasRequired = this.isRequired
  }

  get #now (): Judged | undefined {
    const { policy, copies } = this.#options
    const skills = this.#skills
    const { files } = policy
    const known = this.#judged
    const from = Date.now()
    const isSame = known?.files === files && known.skills === skills
    if (skills === undefined || (isSame && from >= known.from && from < known.until)) return skills && known
    const verdicts = new Map([...skills].map(([name, skill]) =>
      [name, 'error' in skill ? unchecked(skill.error) : policy.judge(name, skill.checked, this.isRequired)]))
    const accepted = [...skills].flatMap(([name, skill]) => {
      const { isServed, revision } = verdicts.get(name) ?? {}
      return isServed === true && 'copy' in skill && skill.copy?.revision === revision ? skill.copy.published : []
    })
    const missing = copies.changedAmong(accepted)
    const folders = new Map(accepted.flatMap(({ name }) => {
      const folder = copies.folders?.get(name)
      return folder === undefined || missing.has(name) ? [] : [[name, folder]]
    }))
    const until = Math.min(...[...verdicts.values()].map((verdict) => verdict.until), Infinity)
    const isListed = known !== undefined && isDeepStrictEqual(folders, known.folders)
    this.#judged = { files, skills, from, until, verdicts, folders: isListed ? known.folders : folders }
    return this.#judged
  }
}

/** Why a skill is refused. */
function reasonIn (verdict: Verdict | undefined): Finding | undefined {
  return verdict?.isServed === false ? verdict.findings[0] : undefined
}
