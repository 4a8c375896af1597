import { LRUCache } from 'lru-cache'
import type { SkillManager } from '../core/skill-manager.ts'
import type { SkillService } from '../core/service.ts'
import type { View } from '../core/view.ts'
import { type Policy, type Proof, READ_SCOPE } from './policy.ts'

/** Views that are kept while nobody uses them. */
const MAX_VIEWS = 256

/** The longest delay of a timer. */
const MAX_TIMER_MS = 2_147_483_647

interface Stream {
  readonly proof: Proof
  /** What its caller sees, and until when, comparable between policies. */
  readonly terms: string
  readonly end: () => void
}

/** What callers see under the present policy: one view for all with the same groups. Streams end when their caller's view changes. */
export class CallerViews {
  readonly #skills: SkillManager
  readonly #views = new LRUCache<string, View>({ max: MAX_VIEWS })
  readonly #streams = new Set<Stream>()
  #policy: Policy

  constructor (skills: SkillManager, policy: Policy) {
    this.#skills = skills
    this.#policy = policy
  }

  /** @param key the `view` of a principal of the present policy */
  of (key: string): View {
    const view = this.#views.get(key) ?? this.#skills.createView(key, this.#policy.grantsOf(key))
    this.#views.set(key, view)
    return view
  }

  /** Ends the streams of callers who may no longer read, or see something else from now on: clients connect again. */
  usePolicy (policy: Policy): void {
    this.#policy = policy
    this.#views.clear()
    for (const stream of [...this.#streams]) if (this.#termsOf(stream.proof) !== stream.terms) stream.end()
  }

  /**
   * Calls `end` once, when the caller may no longer have an answer that goes on for long.
   * @param view what the caller saw when its request came
   * @returns stops the watch
   */
  watch (proof: Proof, view: SkillService, end: () => void): () => void {
    const terms = this.#termsOf(proof)
    // The file may have changed since the request came.
    if (terms === undefined || this.of(this.#policy.principalOf(proof)?.view ?? '') !== view) {
      end()
      return () => {}
    }
    const { expiresAt = Infinity } = this.#policy.principalOf(proof) ?? {}
    const stop = (): void => {
      clearTimeout(timer)
      this.#streams.delete(stream)
    }
    const stream = {
      proof,
      terms,
      end () {
        stop()
        end()
      }
    }
    const timer = expiresAt === Infinity ? undefined : setTimeout(stream.end, Math.min(expiresAt - Date.now(), MAX_TIMER_MS)).unref()
    this.#streams.add(stream)
    return stop
  }

  #termsOf (proof: Proof): string | undefined {
    const principal = this.#policy.principalOf(proof)
    if (principal?.scopes.has(READ_SCOPE) !== true) return undefined
    return JSON.stringify([this.#policy.termsOfView(principal.view), principal.expiresAt])
  }
}
