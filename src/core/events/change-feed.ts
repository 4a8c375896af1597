import { randomBytes } from 'node:crypto'
import { MAX_RECENT_EVENTS } from '../shared/limits.ts'
import { type CoreLog, SILENT } from '../shared/log.ts'
import { Signal } from '../shared/signal.ts'
import { RecentEvents } from './recent-events.ts'
import { CATALOG_REVISION } from './revision-sum.ts'
import { type SkillChange, SkillTracker, type TrackedSkills } from './skill-tracker.ts'

/** How long the change feed goes on after its last listener has left, in milliseconds: one that comes back misses nothing. */
const FEED_GRACE_MS = 60_000

/**
 * And how many times as long as all skills were read for it: questions that are minutes apart do not have them read again. Measured:
 * 10,000 skills of ten files take 15 s of CPU time and 75 MB.
 */
const FEED_GRACE_PER_READING = 60

/**
 * A change with an id to resume from. `position` has a new id alone. `reset` says that changes were missed, so that whatever is
 * known of skills may be out of date. The id is the revision of the catalog after the change.
 */
export type FeedEvent = { readonly id: string } & (SkillChange | { readonly type: 'position' | 'reset' })

export type FeedListener = (event: FeedEvent) => void

export interface ChangeFeedOptions {
  readonly skills: TrackedSkills
  readonly log?: CoreLog
  /** How long the feed goes on without a listener and a question, in milliseconds. Default FEED_GRACE_MS. */
  readonly graceMs?: number
}

/** What goes on while somebody listens, or asks for the revision. */
interface Run {
  readonly tracker: SkillTracker
  readonly recent: RecentEvents<FeedEvent>
}

/**
 * The changes of skills, any of their files included, as a sequence of events, and the revision of the whole catalog. A change
 * that is complete after `subscribe` is reported at the latest by the next comparison of everything. One from just before may
 * be reported too. Ids come from content, so that a client resumes at any replica that was in the same state.
 * Until all skills have been read once, ids are those of this feed alone. Without listeners and questions nothing is compared and
 * nothing inside of skills is watched.
 */
export class ChangeFeed {
  readonly #options: ChangeFeedOptions
  readonly #events = new Signal<FeedEvent>()
  #run: Run | undefined
  #grace: NodeJS.Timeout | undefined
  /** How long all skills were read, in milliseconds. */
  #readingMs = 0
  #isAsked = false

  constructor (options: ChangeFeedOptions) {
    this.#options = options
  }

  /** Id of the latest event, undefined while nothing is followed. */
  get position (): string | undefined {
    return this.#run?.recent.position
  }

  /**
   * The revision of the catalog: equal content has an equal one everywhere. Undefined until all skills have been read once, and while
   * a skill that may have changed is compared. The first question begins the reading.
   */
  get revision (): string | undefined {
    this.#isAsked = true
    if (this.#run === undefined) {
      this.#endSoon()
      this.#run = this.#begin()
    }
    return this.#run.tracker.revision
  }

  /** The same, for a question that begins nothing. */
  get knownRevision (): string | undefined {
    return this.#run?.tracker.revision
  }

  /**
   * Calls the listener with all later events, until the returned function is called.
   * @param lastId id of the last known event: the listener gets those after it, or one `reset`, before this returns. They come
   * later while `lastId` is a revision of the catalog and the present one is not known. They also wait until the revisions that they
   * name are kept.
   */
  subscribe (listener: FeedListener, lastId?: string): () => void {
    clearTimeout(this.#grace)
    this.#run ??= this.#begin()
    const { recent, tracker } = this.#run
    const mayBecomeKnown = (id: string): boolean => !tracker.isComplete && CATALOG_REVISION.test(id) && recent.after(id) === undefined
    let waitsWith = lastId
    let isKeeping = false
    const sendMissed = (): void => {
      if (waitsWith === undefined) return
      const missed = recent.after(waitsWith) ?? [{ type: 'reset', id: recent.position } as const]
      waitsWith = undefined
      for (const event of missed) listener(event)
    }
    const resume = (): void => {
      if (waitsWith === undefined || isKeeping || mayBecomeKnown(waitsWith)) return
      const kept = tracker.keepNamed(recent.after(waitsWith) ?? [])
      if (kept === undefined) return sendMissed()
      isKeeping = true
      void kept.then(sendMissed)
    }
    const stop = this.#events.subscribe((event) => {
      if (waitsWith === undefined) listener(event)
      else resume()
    })
    resume()
    return () => {
      waitsWith = undefined
      stop()
      if (!this.#events.hasListeners) this.#endSoon()
    }
  }

  close (): void {
    clearTimeout(this.#grace)
    this.#events.clear()
    this.#end()
  }

  #begin (): Run {
    const { skills, log = SILENT } = this.#options
    const recent = new RecentEvents<FeedEvent>(MAX_RECENT_EVENTS, randomBytes(6).toString('hex'))
    const begunAt = performance.now()
    this.#readingMs = 0
    const tracker: SkillTracker = new SkillTracker({
      skills,
      log,
      isHeard: () => this.#events.hasListeners,
      onChange: (change, revision) => { this.#events.emit(recent.add({ id: revision ?? recent.position, ...change })) },
      onRevision: (id) => {
        this.#readingMs ||= performance.now() - begunAt
        this.#events.emit(recent.add({ id, type: 'position' }))
      }
    })
    return { recent, tracker }
  }

  #endSoon (): void {
    clearTimeout(this.#grace)
    this.#grace = setTimeout(() => {
      if (this.#isAsked) this.#endSoon()
      else this.#end()
      this.#isAsked = false
    }, Math.max(this.#options.graceMs ?? FEED_GRACE_MS, this.#readingMs * FEED_GRACE_PER_READING)).unref()
  }

  #end (): void {
    this.#run?.tracker.stop()
    this.#run = undefined
  }
}

export function createChangeFeed (options: ChangeFeedOptions): ChangeFeed {
  return new ChangeFeed(options)
}
