import { type Claim, type Content, hasSameContent, type Ledger, type LedgerChange, NEW } from '../ledger.ts'

/** Most change events that are sent to a resuming client. One that missed more has to read the catalog again. */
export const MAX_RECENT_EVENTS = 1_024

/** Id of events until all skills have been read. No client can resume from it. */
const NO_POSITION = 'indexing'

/** A change of a skill. `revision` is that of its manifest; absent if its files cannot be listed. */
export type SkillChange =
  | { readonly type: 'added' | 'changed', readonly name: string, readonly revision?: string }
  | { readonly type: 'removed', readonly name: string }

/**
 * A change with an id to resume from, which is the catalog revision after it. `position` only reports a new id. `reset`
 * says that changes were missed, so that all that the client knows may be out of date.
 */
export type FeedEvent = { readonly id: string } & (SkillChange | { readonly type: 'position' | 'reset' })

export type FeedListener = (event: FeedEvent) => void

interface FollowedSkills {
  readonly parts: { readonly ledger: Ledger }
  /** Returns undefined for a root of which the view may see nothing. */
  grantOf (root: string): unknown
  isGranted (root: string, name: string): boolean
}

/**
 * The changes of the skills of one view, including those of single files, and the catalog revision of the view. Filters
 * what the ledger records. A feed lives as long as its listeners. Ids come from content, so that a client can resume at
 * any replica that was in the same state.
 */
export class ChangeFeed {
  readonly #skills: FollowedSkills
  readonly #ledger: Ledger
  /** Sum of the parts of all visible skills, at `#version` of the ledger. */
  #sum = 0n
  #version = -1

  constructor (skills: FollowedSkills) {
    this.#skills = skills
    this.#ledger = skills.parts.ledger
  }

  /** Id of the latest event. */
  get position (): string {
    return this.#isComplete ? textOf(this.#sumNow()) : NO_POSITION
  }

  /**
   * The catalog revision, which is equal wherever content is equal. Undefined until all skills have been read once, and
   * while a changed skill is being read.
   */
  get revision (): string | undefined {
    const isKnown = this.#isComplete && !this.#ledger.isReading((root, name) => this.#skills.isGranted(root, name))
    return isKnown ? this.position : undefined
  }

  /**
   * Calls the listener with each later event, until the returned function is called. Revisions of events stay readable.
   * @param lastId id of the client's last event: the listener gets the events after it, or a `reset`. These wait until
   * the catalog revision is known.
   */
  subscribe (listener: FeedListener, lastId?: string): () => void {
    let isWaiting = lastId !== undefined
    const resume = (): void => {
      const missed = lastId === undefined ? [] : this.#after(lastId)
      if (missed === undefined && !this.#isComplete && lastId !== NO_POSITION) return
      isWaiting = false
      for (const event of missed ?? [{ type: 'reset', id: this.position } as const]) listener(event)
    }
    let wasComplete = this.#isComplete
    let stop: (() => void) | undefined = this.onChange((change) => {
      if (!isWaiting) listener({ id: this.position, ...change })
    }, () => {
      if (isWaiting) resume()
      else if (this.#isComplete && !wasComplete) listener({ type: 'position', id: this.position })
      wasComplete = this.#isComplete
    })
    this.#ledger.readers++
    resume()
    return () => {
      if (stop !== undefined) this.#ledger.readers--
      stop?.()
      stop = undefined
    }
  }

  /**
   * Calls the listener with each later change, and `onFilled` whenever all skills of a root have been read. Returns a
   * function that ends this.
   */
  onChange (listener: (change: SkillChange) => void, onFilled = (): void => {}): () => void {
    const ledger = this.#ledger
    const onChange = (each: LedgerChange): void => {
      const change = this.#seen(each)?.change
      if (change !== undefined) listener(change)
    }
    ledger.on('change', onChange).on('filled', onFilled)
    ledger.start()
    return () => { ledger.off('change', onChange).off('filled', onFilled) }
  }

  get #isComplete (): boolean {
    return this.#ledger.isFilled((root) => this.#skills.grantOf(root) !== undefined)
  }

  /** Returns the events after the one with this id; undefined if the id is unknown or too old. */
  #after (lastId: string): readonly FeedEvent[] | undefined {
    if (!this.#isComplete) return undefined
    const events: FeedEvent[] = []
    let sum = this.#sumNow()
    for (const change of this.#ledger.journal.toReversed()) {
      if (textOf(sum) === lastId) break
      const seen = this.#seen(change)
      if (seen === undefined) continue
      events.push({ id: textOf(sum), ...seen.change })
      if (events.length > MAX_RECENT_EVENTS) return undefined
      sum -= seen.difference
    }
    return textOf(sum) === lastId ? events.toReversed() : undefined
  }

  /** Returns a change as the view sees it, and how it changes the sum; undefined if the view does not see it. */
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
    const { version, claims, journal } = this.#ledger
    if (this.#version === version) return this.#sum
    // To apply the changes since then gives the same as to add up all skills.
    const missed = journal.slice(this.#version - version)
    if (missed[0]?.version === this.#version + 1) {
      for (const change of missed) this.#sum += this.#seen(change)?.difference ?? 0n
    } else {
      this.#sum = 0n
      for (const [name, of] of claims) this.#sum += this.#contentIn(name, of)?.part ?? 0n
    }
    this.#version = version
    return this.#sum
  }
}

/** Formats a sum modulo 2^256 as 64 hex digits. */
function textOf (sum: bigint): string {
  return BigInt.asUintN(256, sum).toString(16).padStart(64, '0')
}
