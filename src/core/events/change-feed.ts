import { randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { SkillError } from '../shared/errors.ts'
import { MAX_RECENT_EVENTS } from '../shared/limits.ts'
import { type CoreLog, SILENT } from '../shared/log.ts'
import type { SkillService } from '../service.ts'
import { RecentEvents } from './recent-events.ts'
import { RevisionSum } from './revision-sum.ts'

/** A skill that is being written is compared again after this pause, in milliseconds, so often. */
const RETRY_MS = 100
const MAX_RETRIES = 5

/** What became of a skill. `revision` is its manifest's; a skill whose folder may not be read has none. */
export type SkillChange =
  | { readonly type: 'added' | 'changed', readonly name: string, readonly revision?: string }
  | { readonly type: 'removed', readonly name: string }

/**
 * A change with an id to resume from: the revision of the catalog after it. `position` has a new id alone. `reset`
 * says that changes were missed, so that whatever is known of skills may be out of date.
 */
export type FeedEvent = { readonly id: string } & (SkillChange | { readonly type: 'position' | 'reset' })

export type FeedListener = (event: FeedEvent) => void

export interface ChangeFeedOptions {
  readonly skills: Pick<SkillService, 'compared' | 'namesNow' | 'read' | 'subscribe'>
  readonly log?: CoreLog
}

/**
 * The changes of skills, any of their files included, as a sequence of events, and the revision of the whole catalog.
 * Ids come from content, so that a client resumes at any replica that was in the same state. Until all skills have
 * been read once, ids are those of this feed alone. The first listener, or the first question for the revision,
 * begins the reading.
 */
export class ChangeFeed {
  readonly #options: ChangeFeedOptions
  readonly #events = new EventEmitter<{ event: [event: FeedEvent] }>().setMaxListeners(0)
  readonly #recent = new RecentEvents<FeedEvent>(MAX_RECENT_EVENTS, randomBytes(6).toString('hex'))
  readonly #sum = new RevisionSum()
  /** By name; undefined for a skill that has none. */
  readonly #revisions = new Map<string, string | undefined>()
  /** Skills from the beginning that were not read yet. */
  readonly #unread = new Set<string>()
  /** Skills to compare. */
  readonly #due = new Set<string>()
  readonly #retries = new Map<string, number>()
  /** Names at the beginning: what has happened to these is not an arrival. */
  #initial = new Set<string>()
  #unsubscribe: (() => void) | undefined
  #isStarted = false
  #isWorking = false
  #isComplete = false
  #isStopped = false

  constructor (options: ChangeFeedOptions) {
    this.#options = options
  }

  /** Id of the latest event; undefined while nothing is followed. */
  get position (): string | undefined {
    return this.#unsubscribe === undefined ? undefined : this.#recent.position
  }

  /**
   * The revision of the catalog: equal content has an equal one everywhere. Undefined until all skills have been read
   * once, and while a skill that has changed is compared.
   */
  get revision (): string | undefined {
    this.#begin()
    return this.knownRevision
  }

  /** The revision, for a question that begins nothing. */
  get knownRevision (): string | undefined {
    return this.#isComplete && this.#due.size + this.#retries.size === 0 ? this.#sum.text : undefined
  }

  /**
   * Calls the listener with all later events, until the returned function is called.
   * @param lastId id of the last known event: the listener gets those after it, or one `reset`. They come later while
   * `lastId` may be a revision of the catalog and the present one is not known.
   */
  subscribe (listener: FeedListener, lastId?: string): () => void {
    this.#begin()
    let waitsWith = lastId
    const onEvent = (event: FeedEvent): void => {
      if (waitsWith === undefined) listener(event)
      else resume()
    }
    const resume = (): void => {
      if (waitsWith === undefined || (!this.#isComplete && this.#recent.after(waitsWith) === undefined)) return
      const missed = this.#recent.after(waitsWith) ?? [{ type: 'reset', id: this.#recent.position } as const]
      waitsWith = undefined
      for (const event of missed) listener(event)
    }
    this.#events.on('event', onEvent)
    resume()
    return () => {
      waitsWith = undefined
      this.#events.off('event', onEvent)
    }
  }

  close (): void {
    this.#isStopped = true
    this.#events.removeAllListeners()
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
  }

  #begin (): void {
    if (this.#unsubscribe !== undefined || this.#isStopped) return
    this.#unsubscribe = this.#options.skills.subscribe((names) => {
      for (const name of names) {
        this.#retries.delete(name)
        // What has happened to it since the beginning is news.
        this.#unread.delete(name)
        this.#due.add(name)
      }
      if (this.#isStarted) void this.#work()
    })
    void this.#start()
  }

  async #start (): Promise<void> {
    const { skills, log = SILENT } = this.#options
    // Skills that come while everything is read for the first time have been there before.
    await skills.compared().catch((err: unknown) => {
      if (!this.#isStopped) log.warn({ err }, 'the skills could not be followed')
    })
    this.#initial = new Set(skills.namesNow())
    for (const name of this.#initial) if (!this.#due.has(name)) this.#unread.add(name)
    this.#isStarted = true
    await this.#work()
  }

  async #work (): Promise<void> {
    if (this.#isWorking) return
    this.#isWorking = true
    for (let name = this.#next(); name !== undefined && !this.#isStopped; name = this.#next()) {
      await this.#compare(name)
    }
    this.#isWorking = false
    if (this.#isStopped || this.#isComplete || this.#unread.size > 0) return
    this.#isComplete = true
    this.#emit({ id: this.#sum.text, type: 'position' })
  }

  #next (): string | undefined {
    return this.#due.values().next().value ?? this.#unread.values().next().value
  }

  async #compare (name: string): Promise<void> {
    const isNews = this.#due.delete(name)
    this.#unread.delete(name)
    const now = await this.#revisionOf(name)
    if (this.#isStopped) return
    if (now === 'changing') return this.#tryAgain(name)
    this.#retries.delete(name)
    const wasKnown = this.#revisions.has(name)
    const before = this.#revisions.get(name)
    if (now === 'gone') {
      if (wasKnown) this.#sum.remove(name, before)
      this.#revisions.delete(name)
      const wasInitial = this.#initial.delete(name)
      if (wasKnown || wasInitial) this.#report({ type: 'removed', name })
      return
    }
    if (wasKnown && before === now) return
    if (wasKnown) this.#sum.remove(name, before)
    this.#sum.add(name, now)
    this.#revisions.set(name, now)
    if (!isNews) return
    const type = wasKnown || this.#initial.has(name) ? 'changed' : 'added'
    this.#report({ type, name, ...now !== undefined && { revision: now } })
  }

  /** The revision of a skill; undefined for one that cannot be read whole. */
  async #revisionOf (name: string): Promise<string | undefined | 'gone' | 'changing'> {
    try {
      // The revisions of events that are heard are handed out, and kept.
      const keep = this.#events.listenerCount('event') > 0 ? 'always' : 'never'
      return (await this.#options.skills.read(name, (state) => state.manifest(), keep)).revision
    } catch (error) {
      if (!(error instanceof SkillError)) {
        this.#options.log?.warn({ err: error, skill: name }, 'a skill could not be compared with what it was')
        return undefined
      }
      const isGone = error.kind === 'missing' || error.code === 'invalid_skill_name'
      if (isGone || error.code.startsWith('skills_folder_') || error.code === 'source_not_available') return 'gone'
      return error.code === 'skill_changing' ? 'changing' : undefined
    }
  }

  /** A skill that is written without pause causes another event when it rests. */
  #tryAgain (name: string): void {
    const count = (this.#retries.get(name) ?? 0) + 1
    if (count > MAX_RETRIES) {
      this.#retries.delete(name)
      return
    }
    this.#retries.set(name, count)
    void sleep(RETRY_MS, undefined, { ref: false }).then(() => {
      if (this.#isStopped || !this.#retries.has(name)) return
      this.#due.add(name)
      void this.#work()
    })
  }

  #report (change: SkillChange): void {
    this.#emit({ id: this.#isComplete ? this.#sum.text : this.#recent.position, ...change })
  }

  #emit (event: FeedEvent): void {
    this.#events.emit('event', this.#recent.add(event))
  }
}

export function createChangeFeed (options: ChangeFeedOptions): ChangeFeed {
  return new ChangeFeed(options)
}
