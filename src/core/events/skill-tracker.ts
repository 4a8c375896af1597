import { createSlicer } from '../async.ts'
import { RACY_WINDOW_MS, TIMESTAMP_STEP_MS } from '../limits.ts'
import { SkillError } from '../errors.ts'
import type { CoreLog } from '../log.ts'
import type { Inspected } from '../content/manifest.ts'
import type { SkillManager } from '../skill-manager.ts'

/** What became of a skill. `revision` is its manifest's; a skill whose folder may not be read has none. */
export type SkillChange =
  | { readonly type: 'added' | 'changed', readonly name: string, readonly revision?: string }
  | { readonly type: 'removed', readonly name: string }

export type TrackedSkills = Pick<SkillManager, 'available' | 'namesNow' | 'subscribe' | 'observe' | 'inspect'>

export interface SkillTrackerOptions {
  readonly skills: TrackedSkills
  readonly log: CoreLog
  /** Must not throw. */
  readonly onChange: (change: SkillChange) => void
}

/** There from the beginning, and not inspected yet: its timestamps will tell whether it has changed since. */
const UNKNOWN: Inspected = { revision: undefined, fingerprint: undefined, changedAt: 0 }
/** The same, and it is known to have changed. */
const CHANGED: Inspected = { ...UNKNOWN, revision: 'none that a skill can have' }

/** A skill that somebody is writing is looked at this often, RACY_WINDOW_MS apart, before a state is told that may not last. */
const MAX_UNSETTLED_LOOKS = 4

/**
 * Compares skills with what was told of them, wherever the manager says that something may be different, and tells the
 * differences. All skills are inspected once in the background, so that a touch or a rewrite of the same bytes tells nothing.
 */
export class SkillTracker {
  readonly #options: SkillTrackerOptions
  readonly #startedAt = Date.now()
  readonly #told = new Map<string, Inspected>()
  /** Where a change was seen, and where one may be: a skill is in each at most once, however often it is written. */
  readonly #due = new Set<string>()
  readonly #rest = new Set<string>()
  readonly #unsettled = new Map<string, number>()
  readonly #stops: ReadonlyArray<() => void>
  #timer: NodeJS.Timeout | undefined
  #working = false
  #stopped = false

  constructor (options: SkillTrackerOptions) {
    const { skills } = options
    this.#options = options
    for (const name of skills.namesNow()) this.#told.set(name, UNKNOWN)
    this.#stops = [
      skills.subscribe(({ added, changed, removed }) => {
        for (const name of changed) if (this.#told.get(name) === UNKNOWN) this.#told.set(name, CHANGED)
        this.#lookAt(this.#due, [...added, ...changed, ...removed])
      }),
      skills.observe((names) => {
        if (names === undefined) this.#lookAtAll()
        else this.#lookAt(this.#due, names)
      })
    ]
    this.#lookAtAll()
  }

  stop (): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    for (const stop of this.#stops) stop()
  }

  #lookAtAll (): void {
    this.#lookAt(this.#rest, [...this.#told.keys(), ...this.#options.skills.namesNow()])
  }

  #lookAt (queue: Set<string>, names: Iterable<string>): void {
    for (const name of names) queue.add(name)
    if (this.#working || this.#stopped) return
    this.#working = true
    void this.#work()
  }

  async #work (): Promise<void> {
    // The first index is read by one only, and the watcher begins after it.
    await this.#options.skills.available()
    const yieldIfNeeded = createSlicer()
    while (!this.#stopped && this.#due.size + this.#rest.size > 0) {
      const queue = this.#due.size > 0 ? this.#due : this.#rest
      for (const name of queue) {
        queue.delete(name)
        await this.#compare(name)
        await yieldIfNeeded()
        if (this.#stopped || (queue === this.#rest && this.#due.size > 0)) break
      }
    }
    this.#working = false
  }

  async #compare (name: string): Promise<void> {
    const known = this.#told.get(name)
    let now: Inspected | undefined
    try {
      now = await this.#options.skills.inspect(name, known)
    } catch (err) {
      // Written without a pause, or on a failing disk: what comes next, or the next walk, finds it.
      if (!(err instanceof SkillError)) this.#options.log.warn({ err, skill: name }, 'a skill could not be compared with what it was')
      return
    }
    if (this.#stopped || now === known || this.#isUnsettled(name, now)) return
    const before = this.#told.get(name)
    if (now === undefined) {
      if (this.#told.delete(name)) this.#options.onChange({ type: 'removed', name })
      return
    }
    this.#told.set(name, now)
    const { revision, changedAt } = now
    const isChanged = before === UNKNOWN ? changedAt >= this.#startedAt - TIMESTAMP_STEP_MS : before?.revision !== revision
    if (isChanged) this.#options.onChange({ type: before === undefined ? 'added' : 'changed', name, ...revision !== undefined && { revision } })
  }

  /** Whether a skill should be looked at again before anything is told of it; then it is. */
  #isUnsettled (name: string, state: Inspected | undefined): boolean {
    const looks = (this.#unsettled.get(name) ?? 0) + 1
    if (state === undefined || state.fingerprint !== undefined || looks > MAX_UNSETTLED_LOOKS) {
      this.#unsettled.delete(name)
      return false
    }
    this.#unsettled.set(name, looks)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#lookAt(this.#due, this.#unsettled.keys())
    }, RACY_WINDOW_MS).unref()
    return true
  }
}
