import { createSlicer } from '../ground/async.ts'
import type { Inspected } from '../content/manifest.ts'
import { SkillError } from '../ground/errors.ts'
import { PAUSE_FACTOR, RACY_WINDOW_MS, RECONCILE_DEGRADED_MS, TIMESTAMP_STEP_MS } from '../ground/limits.ts'
import type { CoreLog } from '../ground/log.ts'
import type { SkillService } from '../skill-source.ts'

/** What became of a skill. `revision` is its manifest's; a skill whose folder may not be read has none. */
export type SkillChange =
  | { readonly type: 'added' | 'changed', readonly name: string, readonly revision?: string }
  | { readonly type: 'removed', readonly name: string }

export type TrackedSkills = Pick<SkillService, 'available' | 'namesNow' | 'subscribe' | 'observe' | 'inspect'>

export interface SkillTrackerOptions {
  readonly skills: TrackedSkills
  readonly log: CoreLog
  readonly onChange: (change: SkillChange) => void
}

/** A skill from the beginning that was not inspected yet: its timestamps will show whether it has changed since. */
const UNKNOWN: Inspected = { revision: undefined, fingerprint: undefined, changedAt: 0 }
/** The same, but it is known to have changed. */
const CHANGED: Inspected = { ...UNKNOWN, revision: 'none that a skill can have' }

/** A skill that is being written is inspected up to this often, RACY_WINDOW_MS apart, before a state is reported that may not last. */
const MAX_ATTEMPTS = 5

/**
 * Finds out what became of skills, for the change feed. The manager says which skills may be different, and their state is
 * compared with the last one that was reported. Each skill is inspected once in the background, so that a touch or a
 * rewrite of the same bytes is no change.
 */
export class SkillTracker {
  readonly #options: SkillTrackerOptions
  readonly #startedAt = Date.now()
  readonly #lastReported = new Map<string, Inspected>()
  /** Skills to compare: those with a hint first, then those of a pass through all. Each at most once, however often it is written. */
  readonly #hinted = new Set<string>()
  readonly #pass = new Set<string>()
  readonly #attempts = new Map<string, number>()
  readonly #stops: ReadonlyArray<() => void>
  #passStart = 0
  #restTimer: NodeJS.Timeout | undefined
  #isPassDue = false
  #retryTimer: NodeJS.Timeout | undefined
  #isWorking = false
  #stopped = false

  constructor (options: SkillTrackerOptions) {
    const { skills } = options
    this.#options = options
    for (const name of skills.namesNow()) this.#lastReported.set(name, UNKNOWN)
    this.#stops = [
      skills.subscribe(({ added, changed, removed }) => {
        for (const name of changed) if (this.#lastReported.get(name) === UNKNOWN) this.#lastReported.set(name, CHANGED)
        this.#compareSoon(this.#hinted, [...added, ...changed, ...removed])
      }),
      skills.observe((names) => {
        if (names === undefined) this.#compareAll()
        else this.#compareSoon(this.#hinted, names)
      })
    ]
    this.#compareAll()
  }

  stop (): void {
    this.#stopped = true
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
    const restMs = Math.min((performance.now() - this.#passStart) * PAUSE_FACTOR, RECONCILE_DEGRADED_MS)
    this.#restTimer = setTimeout(() => {
      this.#restTimer = undefined
      if (this.#isPassDue) this.#compareAll()
    }, restMs).unref()
  }

  #compareSoon (queue: Set<string>, names: Iterable<string>): void {
    for (const name of names) queue.add(name)
    if (!this.#isWorking && !this.#stopped) void this.#work()
  }

  async #work (): Promise<void> {
    this.#isWorking = true
    // The first index is read by one reader only, and the watcher begins after it.
    await this.#options.skills.available()
    const yieldIfNeeded = createSlicer()
    for (let name = this.#takeName(); name !== undefined && !this.#stopped; name = this.#takeName()) {
      await this.#compare(name)
      await yieldIfNeeded()
    }
    this.#isWorking = false
  }

  #takeName (): string | undefined {
    const [hinted] = this.#hinted
    if (hinted !== undefined && this.#hinted.delete(hinted)) return hinted
    const [name] = this.#pass
    if (name !== undefined && this.#pass.delete(name) && this.#pass.size === 0) this.#endPass()
    return name
  }

  async #compare (name: string): Promise<void> {
    const known = this.#lastReported.get(name)
    let state: Inspected | undefined
    try {
      const inspected = await this.#options.skills.inspect(name, known)
      if (inspected !== undefined && 'ended' in inspected) {
        // The others do not wait for a skill with much to be read.
        void inspected.ended.then(() => { this.#compareSoon(this.#hinted, [name]) })
        return
      }
      state = inspected
    } catch (err) {
      // The skill is being written, or its disk fails: after the attempts, the next hint or pass finds it.
      if (err instanceof SkillError) this.#tryAgain(name)
      else this.#options.log.warn({ err, skill: name }, 'a skill could not be compared with what it was')
      return
    }
    const mayNotLast = state !== undefined && state !== known && state.fingerprint === undefined
    if (this.#stopped || (mayNotLast && this.#tryAgain(name))) return
    this.#attempts.delete(name)
    if (state !== known) this.#report(name, state)
  }

  #report (name: string, state: Inspected | undefined): void {
    const { onChange } = this.#options
    const before = this.#lastReported.get(name)
    if (state === undefined) {
      if (this.#lastReported.delete(name)) onChange({ type: 'removed', name })
      return
    }
    this.#lastReported.set(name, state)
    const { revision, changedAt } = state
    const isOther = before?.revision !== revision || (revision === undefined && before?.fingerprint !== state.fingerprint)
    const isChanged = before === UNKNOWN ? changedAt >= this.#startedAt - TIMESTAMP_STEP_MS : isOther
    if (isChanged) onChange({ type: before === undefined ? 'added' : 'changed', name, ...revision !== undefined && { revision } })
  }

  /** Whether there is another attempt. */
  #tryAgain (name: string): boolean {
    const attempts = (this.#attempts.get(name) ?? 0) + 1
    this.#attempts.set(name, attempts)
    if (attempts >= MAX_ATTEMPTS) {
      this.#attempts.delete(name)
      return false
    }
    this.#retryTimer ??= setTimeout(() => {
      this.#retryTimer = undefined
      this.#compareSoon(this.#hinted, this.#attempts.keys())
    }, RACY_WINDOW_MS).unref()
    return true
  }
}
