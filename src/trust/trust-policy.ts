import { EventEmitter } from 'node:events'
import { isDeepStrictEqual } from 'node:util'
import { LRUCache } from 'lru-cache'
import { revisionOf } from '../core/revisions/snapshot.ts'
import type { SkillState } from '../core/revisions/state.ts'
import { checkSignature } from './check-signature.ts'
import type { Lock } from './lock-file.ts'
import type { Signer } from './signers.ts'
import type { TrustFile } from './trust-file.ts'
import { type CheckedSkill, judge, type Verdict } from './verdict.ts'

/** The lock and the trust file that are in force. */
export interface PolicyFiles {
  readonly lock?: Lock | undefined
  readonly trust?: TrustFile | undefined
}

/** Results of checks that are kept: each takes some 200 bytes, and saves 1 to 4 ms. */
const MAX_RESULTS = 50_000

/**
 * Decides which revisions of skills may be served: those that a lock names, and those of signers in a trust file. What
 * was found out about the bytes of a revision is remembered; the verdict is given when somebody asks for it.
 */
export class TrustPolicy extends EventEmitter<{ changed: [] }> {
  readonly #givenNameOf: (root: string) => string | undefined
  #files: PolicyFiles
  /** By the revision of all files, and by that of the files that a signature covers. */
  readonly #checked = new LRUCache<string, CheckedSkill>({ max: MAX_RESULTS })

  /** @param givenNameOf returns the name that an operator gave to a root, which may have a number here */
  constructor (files: PolicyFiles, givenNameOf: (root: string) => string | undefined = () => undefined) {
    super()
    this.#files = files
    this.#givenNameOf = givenNameOf
  }

  /** The same object while the files stay the same. */
  get files (): PolicyFiles {
    return this.#files
  }

  /** Puts other files in force. Skills are checked again only where the signers are others. */
  replace ({ lock, trust }: PolicyFiles): void {
    const signers = this.#files.trust?.signers
    const isSame = signers !== undefined && isDeepStrictEqual(trust?.signers.map(idOf), signers.map(idOf))
    this.#files = { lock, trust: trust && isSame ? { ...trust, signers } : trust }
    this.emit('changed')
  }

  /** Whether skills of the root of this name must be signed. A rule for a given name applies to numbered ones too. */
  requires (root: string, { trust }: PolicyFiles = this.#files): boolean {
    return (trust?.roots.get(root) ?? trust?.roots.get(this.#givenNameOf(root) ?? '')) === 'require'
  }

  /** Whether it may refuse skills of the root of this name. */
  guards (root: string, files: PolicyFiles = this.#files): boolean {
    return files.lock !== undefined || this.requires(root, files) || (files.trust?.deny.size ?? 0) > 0
  }

  /** Checks the bytes of a skill, once for each revision. Does not throw for anything that a skill contains. */
  async check (state: SkillState): Promise<CheckedSkill> {
    const { trust } = this.#files
    const { revision, files } = await state.manifest()
    if (trust === undefined) return { revision, coveredRevision: revision, signature: undefined }
    const known = this.#checked.get(revision)
    if (known?.revision === revision && known.signature?.signers === trust.signers) return known
    const signature = await checkSignature(state, trust.signers)
    const { exempt } = signature
    const coveredRevision = exempt.length === 0
      ? revision
      : revisionOf(files.filter(({ path }) => !exempt.includes(path)))
    const checked = { revision, coveredRevision, signature }
    for (const each of [revision, coveredRevision]) this.#checked.set(each, checked)
    return checked
  }

  /** The verdict on a skill at the present time. */
  judge (name: string, checked: CheckedSkill, isRequired: boolean, files: PolicyFiles = this.#files): Verdict {
    return judge(name, checked, { ...files, isRequired }, Date.now())
  }

  /** The verdict on a revision that was read before; undefined for one whose signature is not known. */
  judgeRevision (name: string, revision: string, isRequired: boolean): Verdict | undefined {
    const checked = this.#files.trust === undefined
      ? { revision, coveredRevision: revision, signature: undefined }
      : this.#checked.get(revision)
    return checked && this.judge(name, checked, isRequired)
  }
}

function idOf ({ id }: Signer): string {
  return id
}
