import { hash, randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { View } from '../view.ts'
import { SkillError } from '../shared/errors.ts'
import { type CoreLog, SILENT } from '../shared/log.ts'

/** Change events that a client can resume over: one that missed more reads the catalog again. */
export const MAX_RECENT_EVENTS = 1_024

/** A skill that is being written is compared again after this pause, in milliseconds. */
const RETRY_MS = 200

/** What became of a skill. `revision` is its manifest's; a skill whose folder may not be read has none. */
type SkillChange =
  | { readonly type: 'added' | 'changed', readonly name: string, readonly revision?: string }
  | { readonly type: 'removed', readonly name: string }

/**
 * A change with an id to resume from: the revision of the catalog after it. `position` has a new id alone. `reset`
 * says that changes were missed, so that whatever is known of skills may be out of date.
 */
export type FeedEvent = { readonly id: string } & (SkillChange | { readonly type: 'position' | 'reset' })

export type FeedListener = (event: FeedEvent) => void

export interface ChangeFeedOptions {
  readonly skills: Pick<View, 'indexed' | 'indexedNames' | 'read' | 'subscribe'>
  readonly log?: CoreLog
}

/** A skill that was there at the beginning, and was not read yet. */
const UNREAD = Symbol('unread')

/**
 * The changes of skills, any of their files included, as a sequence of events, and the revision of the whole catalog.
 * Ids come from content, so that a client resumes at any replica that was in the same state; until all skills have
 * been read once, they are of this feed alone. The first listener, or question for the revision, begins the reading.
 */
export class ChangeFeed {
  readonly #skills: ChangeFeedOptions['skills']
  readonly #log: CoreLog
  readonly #events = new EventEmitter<{ event: [event: FeedEvent] }>().setMaxListeners(0)
  /** The latest events, and the id before the first of them. */
  readonly #recent: FeedEvent[] = []
  #base = randomBytes(6).toString('hex')
  #count = 0
  /** By name; undefined for a skill that cannot be read whole. */
  readonly #revisions = new Map<string, string | undefined | typeof UNREAD>()
  /** Sum of all revisions. */
  #sum = 0n
  readonly #changed = new Set<string>()
  readonly #unread: string[] = []
  readonly #changing = new Set<string>()
  #unsubscribe: (() => void) | undefined
  #isStarted = false
  #isWorking = false
  #isComplete = false
  #isClosed = false

  constructor ({ skills, log = SILENT }: ChangeFeedOptions) {
    this.#skills = skills
    this.#log = log
  }

  /** Id of the latest event; undefined while nothing is followed. */
  get position (): string | undefined {
    return this.#unsubscribe && this.#latestId
  }

  /**
   * The revision of the catalog: equal content has an equal one everywhere. Undefined until all skills have been read
   * once, and while a skill that has changed is compared.
   */
  get revision (): string | undefined {
    this.#begin()
    return this.#isComplete && !this.#isWorking && this.#changing.size === 0 ? textOf(this.#sum) : undefined
  }

  /**
   * Calls the listener with all later events, until the returned function is called.
   * @param lastId id of the last known event: the listener gets those after it, or one `reset`. They come later while
   * `lastId` may be a revision of the catalog and the present one is not known.
   */
  subscribe (listener: FeedListener, lastId?: string): () => void {
    this.#begin()
    let isWaiting = lastId !== undefined
    const resume = (): void => {
      const missed = lastId === undefined ? [] : this.#after(lastId)
      if (missed === undefined && !this.#isComplete) return
      isWaiting = false
      for (const event of missed ?? [{ type: 'reset', id: this.#latestId } as const]) listener(event)
    }
    const onEvent = (event: FeedEvent): void => { if (isWaiting) resume(); else listener(event) }
    this.#events.on('event', onEvent)
    resume()
    return () => { this.#events.off('event', onEvent) }
  }

  close (): void {
    this.#isClosed = true
    this.#events.removeAllListeners()
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
  }

  #begin (): void {
    if (this.#unsubscribe !== undefined || this.#isClosed) return
    this.#unsubscribe = this.#skills.subscribe((names) => {
      for (const name of names) this.#changed.add(name)
      void this.#work()
    })
    // Skills that come while everything is read for the first time have been there before.
    const start = (): Promise<void> => {
      for (const name of this.#skills.indexedNames()) this.#revisions.set(name, UNREAD)
      this.#unread.push(...this.#revisions.keys())
      this.#isStarted = true
      return this.#work()
    }
    this.#skills.indexed().then(start).catch((err: unknown) => {
      if (!this.#isClosed) this.#log.warn({ err }, 'the skills could not be followed')
    })
  }

  /** What has changed comes first, then what was never read. */
  async #work (): Promise<void> {
    if (this.#isWorking || !this.#isStarted) return
    this.#isWorking = true
    for (let name = this.#next(); name !== undefined && !this.#isClosed; name = this.#next()) {
      const isNews = this.#changed.delete(name)
      if (isNews || this.#revisions.get(name) === UNREAD) await this.#compare(name, isNews)
    }
    this.#isWorking = false
    if (this.#isClosed || this.#isComplete) return
    this.#isComplete = true
    this.#emit({ type: 'position' })
  }

  #next (): string | undefined {
    return this.#changed.values().next().value ?? this.#unread.pop()
  }

  async #compare (name: string, isNews: boolean): Promise<void> {
    const now = await this.#revisionOf(name)
    if (this.#isClosed) return
    if (now === 'changing') return this.#tryAgain(name)
    const wasThere = this.#revisions.has(name)
    const before = this.#revisions.get(name)
    if (now === 'gone' ? !wasThere : wasThere && before === now.revision) return
    if (wasThere && before !== UNREAD) this.#sum -= hashOf(name, before)
    if (now === 'gone') {
      this.#revisions.delete(name)
      return this.#emit({ type: 'removed', name })
    }
    this.#sum += hashOf(name, now.revision)
    this.#revisions.set(name, now.revision)
    // That it was read may be how its change was noticed.
    if (isNews || this.#changed.has(name)) this.#emit({ type: wasThere ? 'changed' : 'added', name, ...now })
  }

  /** The revision of a skill; undefined for one that cannot be read whole. */
  async #revisionOf (name: string): Promise<{ readonly revision?: string } | 'gone' | 'changing'> {
    try {
      // The revisions of events that are heard are handed out, and kept.
      const keep = this.#events.listenerCount('event') > 0 ? 'always' : 'never'
      const { revision } = await this.#skills.read(name, (state) => state.manifest(), keep)
      return { revision }
    } catch (error) {
      if (!(error instanceof SkillError)) {
        this.#log.warn({ err: error, skill: name }, 'a skill could not be compared with what it was')
        return {}
      }
      const isGone = error.kind === 'missing' || error.code === 'invalid_skill_name'
      if (isGone || error.code.startsWith('skills_folder_') || error.code === 'source_not_available') return 'gone'
      return error.code === 'skill_changing' ? 'changing' : {}
    }
  }

  #tryAgain (name: string): void {
    this.#changing.add(name)
    setTimeout(() => {
      this.#changing.delete(name)
      this.#changed.add(name)
      void this.#work()
    }, RETRY_MS).unref()
  }

  #emit (event: SkillChange | { readonly type: 'position' }): void {
    this.#count++
    const identified = { id: this.#isComplete ? textOf(this.#sum) : `${this.#base}-${this.#count}`, ...event }
    this.#recent.push(identified)
    const dropped = this.#recent.length > MAX_RECENT_EVENTS ? this.#recent.shift() : undefined
    this.#base = dropped?.id ?? this.#base
    this.#events.emit('event', identified)
  }

  get #latestId (): string {
    return this.#recent.at(-1)?.id ?? this.#base
  }

  /** The events after the latest one with this id; undefined when the id is not, or no longer, known. */
  #after (id: string): readonly FeedEvent[] | undefined {
    const index = this.#recent.findLastIndex((event) => event.id === id)
    return index === -1 && id !== this.#base ? undefined : this.#recent.slice(index + 1)
  }
}

export function createChangeFeed (options: ChangeFeedOptions): ChangeFeed {
  return new ChangeFeed(options)
}

/** The part of one skill in the revision of the catalog: in a sum, one change among many costs two hashes. */
function hashOf (name: string, revision = ''): bigint {
  return BigInt(`0x${hash('sha256', `${name}\0${revision}`)}`)
}

/** A sum modulo 2^256 as 64 hex digits. */
function textOf (sum: bigint): string {
  return BigInt.asUintN(256, sum).toString(16).padStart(64, '0')
}
