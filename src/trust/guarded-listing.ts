import { EventEmitter } from 'node:events'
import { isDeepStrictEqual } from 'node:util'
import type { Listing } from '../core/roots/list-root.ts'
import type { Finding } from '../core/shared/skill.ts'
import type { Quarantined } from '../schemas/health.ts'
import type { PublishedSkill } from '../sources/publish/plan.ts'
import type { Publisher } from '../sources/publish/publisher.ts'
import type { TrustPolicy } from './trust-policy.ts'
import { canRefuse, type CheckedSkill, judge, type Rules, unchecked, type Verdict } from './verdict.ts'

/** Event: a skill is refused, is refused for another reason, or is served again. */
export interface TrustChange extends Pick<Verdict, 'isServed' | 'report' | 'reason'> {
  readonly skill: string
  /** Name of its root. */
  readonly root: string
}

/** Verified copy of a skill, and findings about files that were not copied. */
export interface Copy {
  readonly published: PublishedSkill
  readonly revision: string
  readonly findings: readonly Finding[]
}

/** Skill of a guarded root: its check and, unless it was refused, its copy; or the error of its check. */
export type GuardedSkill = { readonly checked: CheckedSkill, readonly copy?: Copy } | { readonly error: unknown }

type Skills = ReadonlyMap<string, GuardedSkill>

type GuardedVerdict = Verdict & { readonly copy?: Copy | undefined }

/** The verdicts on the skills by one set of rules, and the folders of the copies that are served. */
interface Judged {
  readonly rules: Rules
  readonly skills: Skills
  readonly until: number
  readonly verdicts: ReadonlyMap<string, GuardedVerdict>
  readonly folders: NonNullable<Listing['folders']>
}

interface GuardedListingOptions {
  readonly name: string
  readonly policy: TrustPolicy
  readonly copies: Pick<Publisher, 'folders' | 'changedAmong'>
  /** Listing of the root without guard; undefined for a plain folder. */
  readonly original: Listing | undefined
}

/**
 * Lists the copies of the skills that the policy accepts at the time of the call. While the policy can refuse no skill
 * of the root, it lists what the original root has.
 */
export class GuardedListing extends EventEmitter<{ changed: [], verdict: [TrustChange] }> implements Listing {
  /** Skills by name; undefined until they have been checked. */
  skills: Skills | undefined
  readonly #options: GuardedListingOptions
  #lastJudgement: Judged | undefined
  /** The verdicts and folders of the last events. */
  #announced: Judged | undefined
  #staysRequired = false
  skipped = 0

  constructor (options: GuardedListingOptions) {
    super()
    this.#options = options
    options.original?.on('changed', () => { if (!this.isGuarded) this.emit('changed') })
  }

  get rules (): Rules {
    const rules = this.#options.policy.rulesFor(this.#options.name)
    return this.#staysRequired ? { ...rules, isRequired: true } : rules
  }

  get isGuarded (): boolean {
    return canRefuse(this.rules)
  }

  get isDirect (): boolean {
    return !this.isGuarded && this.#options.original === undefined
  }

  get isFixed (): boolean {
    return this.isGuarded || this.#options.original?.isFixed === true
  }

  get folders (): Listing['folders'] {
    const { original } = this.#options
    const isWaiting = original?.isFixed === true && original.folders === undefined
    return this.isGuarded && !isWaiting ? this.#currentJudgement?.folders : original?.folders
  }

  get ignored (): Listing['ignored'] {
    return this.isGuarded ? undefined : this.#options.original?.ignored
  }

  hint (): void {
    this.#options.original?.hint?.()
  }

  /** Whether an older revision of a skill may be served now. No revision of a quarantined skill may. */
  allows (name: string, revision: string): boolean {
    if (!this.isGuarded) return true
    if (this.#currentJudgement?.verdicts.get(name)?.isServed === false) return false
    const verdict = this.#options.policy.judgeRevision(name, revision, this.rules)
    return verdict?.isServed === true && verdict.revision === revision
  }

  /** Returns the verdict on a revision that is served now; undefined for others. */
  verdictOn (name: string, revision: string): Verdict | undefined {
    const verdict = this.isGuarded ? this.#currentJudgement?.verdicts.get(name) : undefined
    return verdict?.copy?.revision === revision ? verdict : undefined
  }

  /** Skills that are refused now, with reasons. */
  get quarantined (): Quarantined['first'] {
    const verdicts = [...this.#currentJudgement?.verdicts ?? []]
    return verdicts.flatMap(([name, { reason }]) =>
      reason === undefined ? [] : { name, root: this.#options.name, code: reason.code, message: reason.message })
  }

  /** Whether a skill must be checked again: its check failed, or it is accepted and has no copy. */
  isIncomplete (name: string): boolean {
    const [skill, verdict] = [this.skills?.get(name), this.#currentJudgement?.verdicts.get(name)]
    return skill === undefined || 'error' in skill || (verdict?.isServed === true && verdict.copy === undefined)
  }

  /**
   * Sets the checked skills; undefined if there are none. Emits what has changed since the last call: skills that are
   * refused or released, and other folders.
   */
  take (skills: Skills | undefined): void {
    this.skills = skills
    const before = this.#announced
    const now = this.#announced = this.isGuarded ? this.#currentJudgement : undefined
    for (const [skill, { isServed, report, reason }] of now?.verdicts ?? []) {
      if (reason?.message === before?.verdicts.get(skill)?.reason?.message) continue
      this.emit('verdict', { skill, root: this.#options.name, isServed, report, reason })
    }
    if (now?.folders !== before?.folders) this.emit('changed')
  }

  /** Requires signatures until the root is closed, if they are required now: the next trust file may not name it. */
  retire (): void {
    this.#staysRequired = this.rules.isRequired
  }

  get #currentJudgement (): Judged | undefined {
    const { copies } = this.#options
    const { rules, skills } = this
    const before = this.#lastJudgement
    if (skills === undefined) return undefined
    const isSame = before?.skills === skills && areSame(before.rules, rules)
    if (isSame && Date.now() < before.until) return before
    const verdicts = new Map([...skills].map(([name, skill]) => [name, judgeSkill(name, skill, rules)]))
    const accepted = [...verdicts.values()].flatMap(({ copy }) => copy?.published ?? [])
    const missing = copies.changedAmong(accepted)
    const folders = new Map(accepted.flatMap(({ name }) => {
      const folder = copies.folders?.get(name)
      return folder === undefined || missing.has(name) ? [] : [[name, folder]]
    }))
    const until = Math.min(...[...verdicts.values()].map((verdict) => verdict.until), Infinity)
    const isListed = before !== undefined && isDeepStrictEqual(folders, before.folders)
    this.#lastJudgement = { rules, skills, until, verdicts, folders: isListed ? before.folders : folders }
    return this.#lastJudgement
  }
}

function areSame (a: Rules, b: Rules): boolean {
  return a.lock === b.lock && a.trust === b.trust && a.isRequired === b.isRequired
}

/** Judges a skill by the rules. The verdict has the copy of a skill that is accepted. */
function judgeSkill (name: string, skill: GuardedSkill, rules: Rules): GuardedVerdict {
  if ('error' in skill) return unchecked(skill.error)
  const verdict = judge(name, skill.checked, rules)
  const { copy } = skill
  if (!verdict.isServed || copy?.revision !== verdict.revision) return verdict
  return { ...verdict, copy, findings: [...verdict.findings, ...copy.findings] }
}
