import { type Claim, type Content, hasSameContent, type Ledger, type LedgerChange, NEW } from '../ledger.ts'

/** Change events that a client can resume over: one that missed more reads the catalog again. */
export const MAX_RECENT_EVENTS = 1_024

/** What became of a skill. `revision` is its manifest's; a skill whose files cannot be listed has none. */
export type SkillChange =
  | { readonly type: 'added' | 'changed', readonly name: string, readonly revision?: string }
  | { readonly type: 'removed', readonly name: string }

/**
 * A change with an id to resume from: the revision of the catalog after it. `position` has a new id alone. `reset`
 * says that changes were missed, so that whatever is known of skills may be out of date.
 */
export type FeedEvent = { readonly id: string } & (SkillChange | { readonly type: 'position' | 'reset' })

export type FeedListener = (event: FeedEvent) => void

interface FollowedSkills {
  readonly parts: { readonly ledger: Ledger }
  /** Undefined for a root of which nothing may be seen. */
  grantOf (root: string): unknown
  isGranted (root: string, name: string): boolean
}

export interface ChangeFeedOptions {
  readonly skills: FollowedSkills
}

/**
 * The changes of the skills of one view, any of their files included, and the revision of all of them: what the ledger
 * records, as the view sees it. Nothing keeps a feed but those who listen to it.
 *
 * Ids come from content, so that a client resumes at any replica that was in the same state; until all skills have
 * been read once, they are of this process alone.
 */
export class ChangeFeed {
  readonly #skills: FollowedSkills
  readonly #stops = new Set<() => void>()
  /** Sum of the parts of all skills, as of a version of the ledger. */
  #sum = 0n
  #version = -1

  constructor (skills: FollowedSkills) {
    this.#skills = skills
  }

  get #ledger (): Ledger {
    return this.#skills.parts.ledger
  }

  /** Id of the latest event. */
  get position (): string {
    return this.#idAt(this.#ledger.count, this.#sumNow())
  }

  /**
   * The revision of the catalog: equal content has an equal one everywhere. Undefined until all skills have been read
   * once, and while a skill that has changed is read.
   */
  get revision (): string | undefined {
    const isKnown = this.#isComplete && !this.#ledger.isReading((root, name) => this.#skills.isGranted(root, name))
    return isKnown ? textOf(this.#sumNow()) : undefined
  }

  /** Calls the listener with all later changes. Returns a function that ends this. */
  onChange (listener: (change: SkillChange) => void): () => void {
    return this.#follow((change, isNews) => { if (isNews) listener(change) })
  }

  /**
   * Calls the listener with all later events, until the returned function is called. Their revisions stay readable.
   * @param lastId id of the last known event: the listener gets those after it, or one `reset`. They come later while
   * `lastId` may be a revision of the catalog and the present one is not known.
   */
  subscribe (listener: FeedListener, lastId?: string): () => void {
    const ledger = this.#ledger
    let isWaiting = lastId !== undefined
    const resume = (): void => {
      const missed = lastId === undefined ? [] : this.#after(lastId)
      if (missed === undefined && !this.#isComplete) return
      isWaiting = false
      for (const event of missed ?? [{ type: 'reset', id: this.position } as const]) listener(event)
    }
    let wasComplete = this.#isComplete
    const stop = this.#follow((change, isNews) => {
      if (isNews && !isWaiting) listener({ id: this.position, ...change })
    }, () => {
      if (isWaiting) resume()
      else if (this.#isComplete && !wasComplete) listener({ type: 'position', id: this.position })
      wasComplete = this.#isComplete
    })
    ledger.readers++
    resume()
    return () => { if (stop()) ledger.readers-- }
  }

  close (): void {
    for (const stop of this.#stops) stop()
  }

  /** Returns a function that ends this, and returns whether it did. */
  #follow (onSeen: (change: SkillChange, isNews: boolean) => void, onFilled = (): void => {}): () => boolean {
    const ledger = this.#ledger
    const onChange = (change: LedgerChange): void => {
      const seen = this.#seen(change)
      if (seen === undefined) return this.#add(change.version, 0n)
      this.#add(change.version, seen.difference)
      onSeen(seen.change, change.isNews)
    }
    ledger.on('change', onChange).on('filled', onFilled)
    ledger.start()
    const stop = (): boolean => {
      ledger.off('change', onChange).off('filled', onFilled)
      return this.#stops.delete(stop)
    }
    this.#stops.add(stop)
    return stop
  }

  get #isComplete (): boolean {
    return this.#completeSince !== undefined
  }

  get #completeSince (): number | undefined {
    return this.#ledger.completeSince((root) => this.#skills.grantOf(root) !== undefined)
  }

  #idAt (count: number, sum: bigint): string {
    const since = this.#completeSince
    return since !== undefined && count >= since ? textOf(sum) : this.#ledger.idOf(count)
  }

  /** The events after the one with this id; undefined when the id is not, or no longer, known. */
  #after (lastId: string): readonly FeedEvent[] | undefined {
    const { journal, count } = this.#ledger
    const events: FeedEvent[] = []
    let sum = this.#sumNow()
    const isAt = (number: number): boolean => lastId === this.#idAt(number, sum) || lastId === this.#ledger.idOf(number)
    if (isAt(count)) return []
    for (const change of journal.toReversed()) {
      const seen = this.#seen(change)
      if (seen !== undefined) {
        events.push({ id: this.#idAt(change.count, sum), ...seen.change })
        sum -= seen.difference
      }
      if (events.length > MAX_RECENT_EVENTS) return undefined
      if (isAt(change.count - 1)) return events.toReversed()
    }
    return undefined
  }

  /** Returns the change as the view sees it, and what it adds to the sum; undefined where the view sees none. */
  #seen ({ name, before, now }: LedgerChange): { change: SkillChange, difference: bigint } | undefined {
    const had = this.#contentIn(name, before)
    const has = this.#contentIn(name, now)
    if (hasSameContent(had, has)) return undefined
    const difference = (has?.part ?? 0n) - (had?.part ?? 0n)
    if (has === undefined) return { change: { type: 'removed', name }, difference }
    const { revision } = has
    const type = had === undefined || had === NEW ? 'added' : 'changed'
    return { change: { type, name, ...revision !== undefined && { revision } }, difference }
  }

  #contentIn (name: string, claims: readonly Claim[]): Content | undefined {
    return claims.find(({ root }) => this.#skills.isGranted(root, name))?.content
  }

  #sumNow (): bigint {
    const { version, claims } = this.#ledger
    if (this.#version !== version) {
      this.#sum = 0n
      for (const [name, of] of claims) this.#sum += this.#contentIn(name, of)?.part ?? 0n
      this.#version = version
    }
    return this.#sum
  }

  /** The same, without counting all skills again. */
  #add (version: number, difference: bigint): void {
    if (this.#version !== version - 1) return
    this.#sum += difference
    this.#version = version
  }
}

export function createChangeFeed ({ skills }: ChangeFeedOptions): ChangeFeed {
  return new ChangeFeed(skills)
}

/** A sum modulo 2^256 as 64 hex digits. */
function textOf (sum: bigint): string {
  return BigInt.asUintN(256, sum).toString(16).padStart(64, '0')
}
