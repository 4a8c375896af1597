import { FEED_GRACE_MS, MAX_RECENT_EVENTS } from '../limits.ts'
import { SILENT, type CoreLog } from '../log.ts'
import { RecentEvents } from './recent-events.ts'
import { SkillTracker, type SkillChange, type TrackedSkills } from './skill-tracker.ts'

/** A change with an id to resume from; or `reset`: changes were missed, what is known of all skills may be out of date. */
export type FeedEvent = { readonly id: string } & (SkillChange | { readonly type: 'reset' })

/** Must not throw. */
export type FeedListener = (event: FeedEvent) => void

export interface ChangeFeedOptions {
  readonly skills: TrackedSkills
  readonly log?: CoreLog
  /** How long it goes on without a listener, in milliseconds. Default FEED_GRACE_MS. */
  readonly graceMs?: number
}

/** What goes on while somebody listens. */
interface Run {
  readonly tracker: SkillTracker
  readonly recent: RecentEvents<FeedEvent>
}

/**
 * The changes of skills, any of their files included, as a sequence of events. A change that is complete after
 * `subscribe` is told once it is seen, at the latest by the next walk; one from just before may be told too. Nothing is
 * compared and nothing inside of skills is watched while nobody listens: who comes back after that gets a `reset`.
 */
export class ChangeFeed {
  readonly #options: ChangeFeedOptions
  readonly #listeners = new Set<FeedListener>()
  #run: Run | undefined
  #grace: NodeJS.Timeout | undefined

  constructor (options: ChangeFeedOptions) {
    this.#options = options
  }

  /** Id of the latest event, undefined while nothing is followed. */
  get position (): string | undefined {
    return this.#run?.recent.position
  }

  /**
   * Tells all events from now on.
   * @param lastId id of the last event that is known: those after it are told before this returns, or one `reset`
   * @returns the way to stop
   */
  subscribe (listener: FeedListener, lastId?: string): () => void {
    clearTimeout(this.#grace)
    this.#run ??= this.#begin()
    const { recent } = this.#run
    if (lastId !== undefined) {
      for (const event of recent.after(lastId) ?? [{ type: 'reset', id: recent.position } as const]) listener(event)
    }
    const own: FeedListener = (event) => { listener(event) }
    this.#listeners.add(own)
    return () => {
      if (!this.#listeners.delete(own) || this.#listeners.size > 0) return
      this.#grace = setTimeout(() => { this.#end() }, this.#options.graceMs ?? FEED_GRACE_MS).unref()
    }
  }

  close (): void {
    clearTimeout(this.#grace)
    this.#listeners.clear()
    this.#end()
  }

  #begin (): Run {
    const { skills, log = SILENT } = this.#options
    const recent = new RecentEvents<FeedEvent>(MAX_RECENT_EVENTS)
    const onChange = (change: SkillChange): void => {
      const event = recent.add((id) => ({ id, ...change }))
      for (const listener of this.#listeners) listener(event)
    }
    return { recent, tracker: new SkillTracker({ skills, log, onChange }) }
  }

  #end (): void {
    this.#run?.tracker.stop()
    this.#run = undefined
  }
}

export function createChangeFeed (options: ChangeFeedOptions): ChangeFeed {
  return new ChangeFeed(options)
}
