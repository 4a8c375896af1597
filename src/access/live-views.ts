import { LRUCache } from 'lru-cache'
import type { SkillManager } from '../core/skill-manager.ts'
import type { View } from '../core/views/view.ts'
import { groupsOf, type Policy, type Proof, READ_SCOPE } from './policy.ts'
import type { Principal } from '../http/callers.ts'

/** Views that are kept while nobody uses them. */
const MAX_VIEWS = 256

/** Pause between two checks for streams whose caller's proof has expired, in milliseconds. */
const EXPIRY_CHECK_MS = 500

/** An answer that goes on for long. */
interface Stream {
  readonly proof: Proof
  readonly view: View
  readonly end: () => void
  expiresAt: number | undefined
}

/**
 * The views of the present policy, shared by callers who see the same. With another policy, views stay the same objects and get other
 * members: whoever follows one hears of the difference. Streams end when their caller is no longer known, may no longer read, or sees
 * something else than the others of its view.
 */
export class LiveViews {
  readonly #skills: SkillManager
  readonly #views = new LRUCache<string, View>({ max: MAX_VIEWS })
  readonly #streams = new Set<Stream>()
  #policy: Policy
  #timer: NodeJS.Timeout | undefined

  constructor (skills: SkillManager, policy: Policy) {
    this.#skills = skills
    this.#policy = policy
  }

  of (key: string): View {
    let view = this.#views.get(key)
    if (view === undefined) this.#views.set(key, view = this.#skills.createView(key, this.#policy.grantsOf(key)))
    return view
  }

  usePolicy (policy: Policy): void {
    this.#policy = policy
    const wanted = new Map<View, Map<string, Stream[]>>()
    for (const view of this.#views.values()) wanted.set(view, new Map())
    for (const stream of [...this.#streams]) {
      const principal = policy.principalOf(stream.proof)
      if (principal?.scopes.has(READ_SCOPE) !== true) {
        this.#end(stream)
        continue
      }
      stream.expiresAt = principal.expiresAt
      const keys = wanted.get(stream.view) ?? new Map<string, Stream[]>()
      wanted.set(stream.view, keys.set(principal.view, [...keys.get(principal.view) ?? [], stream]))
    }
    this.#views.clear()
    for (const [view, keys] of wanted) {
      const [[key] = [policy.viewOf(groupsOf(view.scope))], ...others] = [...keys].sort(([, a], [, b]) => b.length - a.length)
      for (const [, streams] of others) for (const stream of streams) this.#end(stream)
      view.setMembers(key, this.#skills.membersOf(policy.grantsOf(key)))
      if (!this.#views.has(key)) this.#views.set(key, view)
    }
  }

  /** Calls `end` once when the caller may no longer have what goes on. Returns a function that stops this. */
  watch ({ expiresAt }: Principal, proof: Proof, view: View, end: () => void): () => void {
    const stream: Stream = { proof, view, end, expiresAt }
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
