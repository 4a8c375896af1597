import { setTimeout as sleep } from 'node:timers/promises'
import { createSlicer } from '../shared/async.ts'
import type { Inspected } from '../content/manifest.ts'
import { SkillError } from '../shared/errors.ts'
import { PAUSE_FACTOR, RACY_WINDOW_MS, RECONCILE_MS, SLICE_MS, TIMESTAMP_STEP_MS } from '../shared/limits.ts'
import type { CoreLog } from '../shared/log.ts'
import type { SkillService } from '../skill-source.ts'
import { RevisionSum } from './revision-sum.ts'
import { ReportedRevisions } from './reported-revisions.ts'

/** What became of a skill. `revision` is its manifest's; a skill whose folder may not be read has none. */
export type SkillChange =
  | { readonly type: 'added' | 'changed', readonly name: string, readonly revision?: string }
  | { readonly type: 'removed', readonly name: string }

export type TrackedSkills = Pick<SkillService, 'available' | 'namesNow' | 'subscribe' | 'observe' | 'inspect' | 'manifest' | 'keptRevisions'>

interface SkillTrackerOptions {
  readonly skills: TrackedSkills
  readonly log: CoreLog
  /** Whether somebody is told of changes: their revisions are handed out, and kept. */
  readonly isHeard: () => boolean
  /** @param revision of the catalog after the change; undefined until all skills have been read once */
  readonly onChange: (change: SkillChange, revision: string | undefined) => void
  /** The revision of the catalog is known, or is another without a change to report. */
  readonly onRevision: (revision: string) => void
}

/** A skill of which no state was reported yet. */
interface Unreported extends Inspected {
  /** What its first state is reported as, if that is news. */
  readonly reportedAs: 'added' | 'changed'
  /** Whether the first state is news in any case. Otherwise its timestamps show whether it has changed since the beginning. */
  readonly isNews: boolean
}

/** A skill from the beginning, and one that is known to have changed since. */
const UNKNOWN: Unreported = { revision: undefined, fingerprint: undefined, changedAt: 0, reportedAs: 'changed', isNews: false }
const CHANGED: Unreported = { ...UNKNOWN, isNews: true }

/** A skill that the first index has let in: it may have come before the beginning, or after. */
const LET_IN: Unreported = { ...UNKNOWN, reportedAs: 'added' }

/** A skill that is being written is inspected up to this often, RACY_WINDOW_MS apart, before a state is reported that may not last. */
const MAX_INSPECTIONS = 5

/**
 * Finds out what became of skills, for the change feed, and sums up the revision of the catalog. The skills say which of them may
 * be different, and the state of those is compared with the last one that was reported. Each skill is inspected once in the background,
 * so that a touch or a rewrite of the same bytes is no change. Measured: 10,000 skills of ten files take 15 s of CPU time and 75 MB.
 */
export class SkillTracker {
  readonly #options: SkillTrackerOptions
  readonly #startedAt = Date.now()
  readonly #lastReported = new Map<string, Inspected>()
  /** Skills to compare: those with a hint first, then those of a pass through all. Each at most once, however often it is written. */
  readonly #hinted = new Set<string>()
  readonly #pass = new Set<string>()
  readonly #attempts = new Map<string, number>()
  readonly #reported: ReportedRevisions
  /** Skills from the beginning that were not inspected yet, and skills with a hint that is not followed up. */
  readonly #unread: Set<string>
  readonly #due = new Set<string>()
  readonly #sum = new RevisionSum()
  readonly #stops: ReadonlyArray<() => void>
  /** The names of the index, once they have been those of `#lastReported`. */
  #summedNames: readonly string[] | undefined
  #passStart = 0
  #restTimer: NodeJS.Timeout | undefined
  #isPassDue = false
  #retryTimer: NodeJS.Timeout | undefined
  #isWorking = false
  #isIndexed = false
  #isComplete = false
  #stopped = false

  constructor (options: SkillTrackerOptions) {
    const { skills } = options
    this.#options = options
    this.#reported = new ReportedRevisions(options)
    this.#unread = new Set(skills.namesNow())
    for (const name of this.#unread) this.#lastReported.set(name, UNKNOWN)
    this.#stops = [
      skills.subscribe(({ added, changed, removed }) => {
        for (const name of changed) if (this.#lastReported.get(name) === UNKNOWN) this.#lastReported.set(name, CHANGED)
        this.#compareHinted([...added, ...changed, ...removed])
      }),
      skills.observe((names) => {
        if (names === undefined) this.#compareAll()
        else this.#compareHinted(names)
      })
    ]
    this.#compareAll()
  }

  /** Whether all skills have been read once, or cannot be. */
  get isComplete (): boolean {
    return this.#isComplete
  }

  /**
   * The revision of the catalog; undefined before that, and while a skill may have another revision than the last reported. A list
   * shows a new index before the hints of what is new in it come: until then it has other names.
   */
  get revision (): string | undefined {
    if (!this.#isComplete || this.#due.size > 0) return undefined
    const names = this.#options.skills.namesNow()
    const areSummed = names === this.#summedNames || (names.length === this.#lastReported.size && names.every((name) => this.#lastReported.has(name)))
    if (areSummed) this.#summedNames = names
    return areSummed ? this.#sum.text : undefined
  }

  stop (): void {
    this.#stopped = true
    this.#reported.stop()
    clearTimeout(this.#restTimer)
    clearTimeout(this.#retryTimer)
    for (const stop of this.#stops) stop()
  }

  /** Begins a pass, or has one follow: a pass rests afterwards, so that passes take a tenth of a core at most. */
  #compareAll (): void {
    this.#isPassDue = this.#pass.size > 0 || this.#restTimer !== undefined
    if (this.#isPassDue) return
    this.#passStart = performance.now()
    this.#compareSoon(this.#pass, [...this.#lastReported.keys(), ...this.#options.skills.namesNow()])
  }

  #endPass (): void {
    const restMs = Math.min((performance.now() - this.#passStart) * PAUSE_FACTOR, RECONCILE_MS)
    this.#restTimer = setTimeout(() => {
      this.#restTimer = undefined
      if (this.#isPassDue) this.#compareAll()
    }, restMs).unref()
  }

  #compareHinted (names: Iterable<string>): void {
    const hinted = [...names]
    for (const name of hinted) this.#due.add(name)
    this.#compareSoon(this.#hinted, hinted)
  }

  #compareSoon (queue: Set<string>, names: Iterable<string>): void {
    for (const name of names) queue.add(name)
    if (!this.#isWorking && !this.#stopped) void this.#work()
  }

  async #work (): Promise<void> {
    this.#isWorking = true
    // The first index is read by one reader only, and the watcher begins after it.
    if (!this.#isIndexed && !await this.#awaitIndex()) {
      this.#isWorking = false
      return
    }
    this.#completeOnce()
    const yieldIfNeeded = createSlicer()
    for (let name = this.#takeName(); name !== undefined && !this.#stopped; name = this.#takeName()) {
      if (await this.#compare(name)) this.#conclude(name)
      const nextTurn = yieldIfNeeded()
      await nextTurn
      // Folders inside of skills are watched from now on: work that piles up there takes 100 MB with 10,000 skills.
      if (nextTurn !== undefined && this.#hinted.size === 0) await sleep(3 * SLICE_MS)
    }
    this.#isWorking = false
  }

  /** False when there will be none: the skills were closed before their start. */
  async #awaitIndex (): Promise<boolean> {
    try {
      await this.#options.skills.available()
    } catch (err) {
      if (!this.#stopped) this.#options.log.warn({ err }, 'the skills could not be followed')
      return false
    }
    this.#takeLetIn()
    return true
  }

  /** Skills that a policy has to check are there from when the first index is complete. */
  #takeLetIn (): void {
    this.#isIndexed = true
    for (const name of this.#options.skills.namesNow()) {
      if (this.#lastReported.has(name)) continue
      this.#lastReported.set(name, LET_IN)
      this.#unread.add(name)
      this.#pass.add(name)
    }
  }

  #conclude (name: string): void {
    if (!this.#hinted.has(name)) this.#due.delete(name)
    if (this.#unread.delete(name)) this.#completeOnce()
  }

  #completeOnce (): void {
    if (this.#isComplete || this.#stopped || this.#unread.size > 0) return
    this.#isComplete = true
    this.#options.onRevision(this.#sum.text)
  }

  #takeName (): string | undefined {
    const [hinted] = this.#hinted
    if (hinted !== undefined && this.#hinted.delete(hinted)) return hinted
    const [name] = this.#pass
    if (name !== undefined && this.#pass.delete(name) && this.#pass.size === 0) this.#endPass()
    return name
  }

  /** Whether there is nothing more to be done about the skill now. */
  async #compare (name: string): Promise<boolean> {
    const known = this.#lastReported.get(name)
    let state: Inspected | undefined
    try {
      const inspected = await this.#options.skills.inspect(name, known)
      if (inspected !== undefined && 'ended' in inspected) {
        // The others do not wait for a skill with much to be read. One that changes while it is read has as much to be read again.
        void inspected.ended.then(() => { if (!this.#tryAgain(name)) this.#conclude(name) })
        return false
      }
      state = inspected
    } catch (err) {
      // The skill is being written, or its disk fails: after the attempts, the next hint or pass finds it.
      if (err instanceof SkillError) return !this.#tryAgain(name)
      this.#options.log.warn({ err, skill: name }, 'a skill could not be compared with what it was')
      return true
    }
    const mayNotLast = state !== undefined && state.revision !== known?.revision && state.fingerprint === undefined
    if (this.#stopped || (mayNotLast && this.#tryAgain(name))) return false
    if (state?.revision !== known?.revision) this.#reported.forget(name)
    if (state !== known && !await this.#keepNews(name, state) && this.#tryAgain(name)) return false
    if (this.#stopped) return false
    this.#attempts.delete(name)
    if (state !== known) this.#report(name, state)
    return true
  }

  /**
   * Has the present revisions kept that these changes name, for somebody who is told of them later.
   * @returns undefined where all are kept
   */
  keepNamed (changes: Iterable<{ readonly type: string, readonly name?: string, readonly revision?: string }>): Promise<void> | undefined {
    const present = new Map<string, string>()
    for (const { name, revision } of changes) {
      if (name !== undefined && revision !== undefined && this.#lastReported.get(name)?.revision === revision) present.set(name, revision)
    }
    return this.#reported.keepAll(present)
  }

  async #keepNews (name: string, state: Inspected | undefined): Promise<boolean> {
    if (state?.revision === undefined || !this.#options.isHeard() || !this.#isNews(this.#lastReported.get(name), state)) return true
    return await this.#reported.keep(name, state.revision)
  }

  #isNews (before: Inspected | undefined, { revision, fingerprint, changedAt }: Inspected): boolean {
    if (isUnreported(before)) return before.isNews || changedAt >= this.#startedAt - TIMESTAMP_STEP_MS
    return before?.revision !== revision || (revision === undefined && before?.fingerprint !== fingerprint)
  }

  #report (name: string, state: Inspected | undefined): void {
    const { onChange, onRevision } = this.#options
    const before = this.#lastReported.get(name)
    const lastRevision = this.#sum.text
    if (before !== undefined && !isUnreported(before)) this.#sum.remove(name, before.revision)
    if (before === undefined || state === undefined) this.#summedNames = undefined
    if (state === undefined) {
      if (this.#lastReported.delete(name)) onChange({ type: 'removed', name }, this.#reportedRevision)
      return
    }
    this.#lastReported.set(name, state)
    const { revision } = state
    this.#sum.add(name, revision)
    const type = isUnreported(before) ? before.reportedAs : before === undefined ? 'added' : 'changed'
    if (this.#isNews(before, state)) onChange({ type, name, ...revision !== undefined && { revision } }, this.#reportedRevision)
    else if (this.#isComplete && lastRevision !== this.#sum.text) onRevision(this.#sum.text)
  }

  /** Of what was reported, whatever is to be compared now. */
  get #reportedRevision (): string | undefined {
    return this.#isComplete ? this.#sum.text : undefined
  }

  /** Whether there is another attempt. */
  #tryAgain (name: string): boolean {
    const attempts = (this.#attempts.get(name) ?? 0) + 1
    this.#attempts.set(name, attempts)
    if (attempts >= MAX_INSPECTIONS) {
      this.#attempts.delete(name)
      return false
    }
    this.#retryTimer ??= setTimeout(() => {
      this.#retryTimer = undefined
      this.#compareHinted(this.#attempts.keys())
    }, RACY_WINDOW_MS).unref()
    return true
  }
}

function isUnreported (state: Inspected | undefined): state is Unreported {
  return state !== undefined && 'reportedAs' in state
}
