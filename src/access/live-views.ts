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
export interface Seen {
  /** For answers: it stays as it is, so that no answer mixes two policies. */
  readonly view: View
  /** For streams: with another policy it becomes another view. */
  readonly followed: View
}

/** An answer that goes on for long. */
interface Stream {
  readonly proof: Proof
  readonly followed: View
  readonly end: () => void
  expiresAt: number | undefined
}

/**
 * The views of the present policy, shared by callers who see the same. With another policy there are other views, and whoever follows
 * one hears of the difference. Streams end when their caller is no longer known, may no longer read, or sees something else than the
 * others who follow the same.
 */
export class LiveViews {
  readonly #skills: SkillManager
  readonly #seen = new LRUCache<string, Seen>({ max: MAX_VIEWS })
  readonly #streams = new Set<Stream>()
  #policy: Policy
  #timer: NodeJS.Timeout | undefined

  constructor (skills: SkillManager, policy: Policy) {
    this.#skills = skills
    this.#policy = policy
  }

  of (key: string): Seen {
    const known = this.#seen.get(key)
    if (known !== undefined) return known
    const view = this.#skills.createView(key, this.#policy.grantsOf(key))
    const seen = { view, followed: view.copy() }
    this.#seen.set(key, seen)
    return seen
  }

  usePolicy (policy: Policy): void {
    this.#policy = policy
    const wanted = new Map<View, Map<string, Stream[]>>()
    for (const { followed } of this.#seen.values()) wanted.set(followed, new Map())
    for (const stream of [...this.#streams]) {
      const principal = policy.principalOf(stream.proof)
      if (principal?.scopes.has(READ_SCOPE) !== true) {
        this.#end(stream)
        continue
      }
      stream.expiresAt = principal.expiresAt
      const keys = wanted.get(stream.followed) ?? new Map<string, Stream[]>()
      wanted.set(stream.followed, keys.set(principal.view, [...keys.get(principal.view) ?? [], stream]))
    }
    const before = new Map(this.#seen.entries())
    this.#seen.clear()
    for (const [followed, keys] of wanted) {
      const [[key] = [policy.viewOf(groupsOf(followed.scope))], ...others] = [...keys].sort(([, a], [, b]) => b.length - a.length)
      for (const [, streams] of others) for (const stream of streams) this.#end(stream)
      const view = this.#seen.get(key)?.view ?? this.#skills.createView(key, policy.grantsOf(key), before.get(key)?.view)
      followed.become(view)
      if (!this.#seen.has(key)) this.#seen.set(key, { view, followed })
    }
  }

  /** Calls `end` once when the caller may no longer have what goes on. Returns a function that stops this. */
  watch ({ expiresAt }: Principal, proof: Proof, followed: View, end: () => void): () => void {
    const stream: Stream = { proof, followed, end, expiresAt }
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
