import { LRUCache } from 'lru-cache'
import type { SkillManager } from '../core/skill-manager.ts'
import type { View } from '../core/view.ts'
import { type Policy, type Proof, READ_SCOPE } from './policy.ts'

/** Views that are kept while nobody uses them. */
const MAX_VIEWS = 256

/** The longest delay of a timer. */
const MAX_TIMER_MS = 2_147_483_647

/** What callers see under the present policy: one view for all with the same groups. */
export class CallerViews {
  readonly #skills: SkillManager
  readonly #views = new LRUCache<string, View>({ max: MAX_VIEWS })
  /** Ends a stream unless its caller sees under the policy what it saw before. */
  readonly #streams = new Set<(policy: Policy) => void>()
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
    for (const check of [...this.#streams]) check(policy)
  }

  /**
   * Calls `end` once, when the caller may no longer have an answer that goes on for long.
   * @param policy the one that admitted the request: the file may have changed since
   * @returns stops the watch
   */
  watch (proof: Proof, policy: Policy, end: () => void): () => void {
    const terms = termsOf(policy, proof)
    const stop = (): void => {
      clearTimeout(timer)
      this.#streams.delete(check)
    }
    const finish = (): void => {
      stop()
      end()
    }
    const check = (present: Policy): void => { if (terms === undefined || termsOf(present, proof) !== terms) finish() }
    const { expiresAt = Infinity } = policy.principalOf(proof) ?? {}
    const leftMs = Math.min(expiresAt - Date.now(), MAX_TIMER_MS)
    const timer = expiresAt === Infinity ? undefined : setTimeout(finish, leftMs).unref()
    this.#streams.add(check)
    check(this.#policy)
    return stop
  }
}

/** What a caller sees and until when, comparable between policies; undefined for one who may not read. */
function termsOf (policy: Policy, proof: Proof): string | undefined {
  const principal = policy.principalOf(proof)
  if (principal?.scopes.has(READ_SCOPE) !== true) return undefined
  return JSON.stringify([policy.termsOfView(principal.view), principal.expiresAt])
}
