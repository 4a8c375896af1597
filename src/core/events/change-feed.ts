import { FEED_GRACE_MS, MAX_RECENT_EVENTS } from '../ground/limits.ts'
import { type CoreLog, SILENT } from '../ground/log.ts'
import { Signal } from '../ground/signal.ts'
import { RecentEvents } from './recent-events.ts'
import { type SkillChange, SkillTracker, type TrackedSkills } from './skill-tracker.ts'

/** A change with an id to resume from; or `reset`: changes were missed, what is known of all skills may be out of date. */
export type FeedEvent = { readonly id: string } & (SkillChange | { readonly type: 'reset' })

export type FeedListener = (event: FeedEvent) => void

export interface ChangeFeedOptions {
  readonly skills: TrackedSkills
  readonly log?: CoreLog
  /** How long the feed goes on without a listener, in milliseconds. Default FEED_GRACE_MS. */
  readonly graceMs?: number
}

/** What goes on while somebody listens. */
interface Run {
  readonly tracker: SkillTracker
  readonly recent: RecentEvents<FeedEvent>
}

/**
 * The changes of skills, any of their files included, as a sequence of events. A change that is complete after `subscribe` is
 * reported once it is found, at the latest by the next comparison of everything; one from just before may be reported too.
 * Without listeners nothing is compared and nothing inside of skills is watched; whoever comes back then gets a `reset`.
 */
export class ChangeFeed {
  readonly #options: ChangeFeedOptions
  readonly #events = new Signal<FeedEvent>()
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
   * Calls the listener with all later events, until the returned function is called.
   * @param lastId id of the last known event: the listener gets those after it before this returns, or one `reset`
   */
  subscribe (listener: FeedListener, lastId?: string): () => void {
    clearTimeout(this.#grace)
    this.#run ??= this.#begin()
    const { recent } = this.#run
    if (lastId !== undefined) {
      for (const event of recent.after(lastId) ?? [{ type: 'reset', id: recent.position } as const]) listener(event)
    }
    const stop = this.#events.subscribe(listener)
    return () => {
      stop()
      if (this.#events.hasListeners) return
      clearTimeout(this.#grace)
      this.#grace = setTimeout(() => { this.#end() }, this.#options.graceMs ?? FEED_GRACE_MS).unref()
    }
  }

  close (): void {
    clearTimeout(this.#grace)
    this.#events.clear()
    this.#end()
  }

  #begin (): Run {
    const { skills, log = SILENT } = this.#options
    const recent = new RecentEvents<FeedEvent>(MAX_RECENT_EVENTS)
    const onChange = (change: SkillChange): void => { this.#events.emit(recent.add((id) => ({ id, ...change }))) }
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
