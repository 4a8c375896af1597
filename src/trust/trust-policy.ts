import { EventEmitter } from 'node:events'
import { LRUCache } from 'lru-cache'
import { revisionOf } from '../core/revisions/snapshot.ts'
import type { SkillState } from '../core/revisions/state.ts'
import { checkSignature } from './check-signature.ts'
import { isSameSigners } from './signers.ts'
import { type CheckedSkill, judge, type PolicyFiles, type Rules, type Verdict } from './verdict.ts'

/** How many results of checks are remembered. Each takes some 200 bytes and saves 1 to 4 ms. */
const MAX_RESULTS = 50_000

/** The lock and the trust file in force, and the results of checking revisions. */
export class TrustPolicy extends EventEmitter<{ changed: [] }> {
  readonly #givenNameOf: (root: string) => string | undefined
  #files: PolicyFiles
  /** Results by the revision of all files, and by that of the files that the signature covers. */
  readonly #checked = new LRUCache<string, CheckedSkill>({ max: MAX_RESULTS })

  /** @param givenNameOf returns the configured name of a root whose name here has a number */
  constructor (files: PolicyFiles, givenNameOf: (root: string) => string | undefined = () => undefined) {
    super()
    this.#files = files
    this.#givenNameOf = givenNameOf
  }

  get files (): PolicyFiles {
    return this.#files
  }

  /** Puts another lock and trust file in force. */
  replace (files: PolicyFiles): void {
    this.#files = files
    this.emit('changed')
  }

  /** Returns the rules for the root of this name. A rule for a configured name applies to numbered ones too. */
  rulesFor (root: string): Rules {
    const { roots } = this.#files.trust ?? {}
    return { ...this.#files, isRequired: (roots?.get(root) ?? roots?.get(this.#givenNameOf(root) ?? '')) === 'require' }
  }

  /** Checks the bytes of a skill, once for each revision. Does not throw for anything that a skill contains. */
  async check (state: SkillState): Promise<CheckedSkill> {
    const { trust } = this.#files
    const { revision, files } = await state.manifest()
    if (trust === undefined) return { revision, coveredRevision: revision, signature: undefined }
    const known = this.#checked.get(revision)
    if (known?.revision === revision && isSameSigners(known.signature?.signers, trust.signers)) return known
    const signature = await checkSignature(state, trust.signers)
    const covered = files.filter(({ path }) => !signature.exempt.includes(path))
    const coveredRevision = covered.length === files.length ? revision : revisionOf(covered)
    const checked = { revision, coveredRevision, signature }
    for (const each of [revision, coveredRevision]) this.#checked.set(each, checked)
    return checked
  }

  /** Returns the verdict on a revision that was read before; undefined if its check is not kept. */
  judgeRevision (name: string, revision: string, rules: Rules): Verdict | undefined {
    const checked = rules.trust === undefined
      ? { revision, coveredRevision: revision, signature: undefined }
      : this.#checked.get(revision)
    return checked && judge(name, checked, rules)
  }
}
