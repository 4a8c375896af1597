import { LRUCache } from 'lru-cache'
import type { SkillManager } from '../core/skill-manager.ts'
import type { View } from '../core/views/view.ts'
import { groupsOf, type Policy, type Proof, READ_SCOPE } from './policy.ts'
import type { Principal } from '../http/callers.ts'

/** Views that are kept while nobody uses them. */
const MAX_VIEWS = 256

/** Pause between two checks for streams whose caller's proof has expired, in milliseconds. */
const EXPIRY_CHECK_MS = 500

/** What callers with the same groups see. */
export interface CallerViews {
  /** For answers: it stays as it is, so that no answer mixes two policies. */
  readonly view: View
  /** For streams: with another policy it becomes another view. */
  readonly followed: View
}

/** An answer that goes on for long. */
interface Stream {
  readonly proof: Proof
  readonly end: () => void
  readonly move: () => void
  followed: View
  expiresAt: number | undefined
}

/** Streams by what their callers see now. */
type ByView = Map<string, Stream[]>

/**
 * The views of the present policy, shared by callers who see the same. With another policy there are other views, and whoever follows
 * one hears of the difference. Streams end when their caller is no longer known, or may no longer read. They move when it sees something
 * else than others who follow the same.
 */
export class LiveViews {
  readonly #skills: SkillManager
  readonly #byKey = new LRUCache<string, CallerViews>({ max: MAX_VIEWS })
  readonly #streams = new Set<Stream>()
  #policy: Policy
  #timer: NodeJS.Timeout | undefined

  constructor (skills: SkillManager, policy: Policy) {
    this.#skills = skills
    this.#policy = policy
  }

  of (key: string): CallerViews {
    const known = this.#byKey.get(key)
    if (known !== undefined) return known
    const view = this.#skills.createView(key, this.#policy.grantsOf(key))
    const views = { view, followed: view.copy() }
    this.#byKey.set(key, views)
    return views
  }

  usePolicy (policy: Policy): void {
    const last = this.#policy
    this.#policy = policy
    const before = new Map(this.#byKey.entries())
    const shared = new Set([...before.values()].map(({ followed }) => followed))
    const all = new Map<View, ByView>([...shared].map((followed) => [followed, new Map()]))
    for (const stream of this.#allowedStreams()) addTo(all, stream)
    this.#byKey.clear()
    const leaving: Array<readonly [string, Stream]> = []
    for (const [followed, byView] of all) {
      const terms = last.termsOfView(followed.scope)
      const isSame = (view: string): boolean => policy.termsOfView(view) === terms
      const [[key] = [policy.viewOf(groupsOf(followed.scope))], ...others] = [...byView].sort(([a, ofA], [b, ofB]) => Number(isSame(b)) - Number(isSame(a)) || ofB.length - ofA.length)
      leaving.push(...others.flatMap(([view, streams]) => streams.map((stream) => [view, stream] as const)))
      const views = this.#byKey.get(key)
      const view = views?.view ?? this.#skills.createView(key, policy.grantsOf(key), before.get(key)?.view)
      followed.become(view)
      // What was told of other skills is not for who comes now: it is told to the streams that were there alone.
      if (shared.has(followed) && isSame(key)) this.#byKey.set(key, { view, followed })
      else if (views === undefined) this.#byKey.set(key, { view, followed: view.copy() })
    }
    for (const [key, stream] of leaving) {
      stream.followed = this.of(key).followed
      stream.move()
    }
  }

  /** Ends the others. */
  #allowedStreams (): ReadonlyArray<readonly [string, Stream]> {
    return [...this.#streams].flatMap((stream) => {
      const principal = this.#policy.principalOf(stream.proof)
      if (principal?.scopes.has(READ_SCOPE) !== true) {
        this.#end(stream)
        return []
      }
      stream.expiresAt = principal.expiresAt
      return [[principal.view, stream] as const]
    })
  }

  /**
   * Calls `end` once when the caller may no longer have what goes on, and `move` when it follows another view from now on.
   * Returns a function that stops this.
   */
  watch ({ expiresAt }: Principal, proof: Proof, followed: View, end: () => void, move?: () => void): () => void {
    const stream: Stream = { proof, followed, end, move: move ?? (() => { this.#end(stream) }), expiresAt }
    this.#streams.add(stream)
    this.#timer ??= setInterval(() => { this.#endExpired() }, EXPIRY_CHECK_MS).unref()
    return () => { this.#forget(stream) }
  }

  close (): void {
    clearInterval(this.#timer)
    this.#streams.clear()
  }

  #endExpired (): void {
    const now = Date.now()
    for (const stream of [...this.#streams]) if (stream.expiresAt !== undefined && stream.expiresAt <= now) this.#end(stream)
  }

  #end (stream: Stream): void {
    this.#forget(stream)
    stream.end()
  }

  #forget (stream: Stream): void {
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

function addTo (all: Map<View, ByView>, [view, stream]: readonly [string, Stream]): void {
  const byView: ByView = all.get(stream.followed) ?? new Map()
  all.set(stream.followed, byView.set(view, [...byView.get(view) ?? [], stream]))
}
