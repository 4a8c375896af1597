import type { FollowedFile } from '../config/followed-file.ts'
import type { TrustPolicy, TrustSubject, Verdict } from '../core/content/trust/trust-policy.ts'
import { finding } from '../core/format/findings.ts'
import { Signal } from '../core/ground/signal.ts'
import type { Finding } from '../core/ground/skill.ts'
import type { Lock } from './lock-file.ts'

export interface OriginPolicyOptions {
  readonly lock?: Pick<FollowedFile<Lock>, 'value' | 'changed'> | undefined
}

/** Serves what an operator has reviewed or trusts: revisions of a lock. */
export class OriginPolicy implements TrustPolicy {
  readonly changed = new Signal<void>()
  readonly #lock: OriginPolicyOptions['lock']

  constructor ({ lock }: OriginPolicyOptions) {
    this.#lock = lock
    lock?.changed.subscribe(() => { this.changed.emit() })
  }

  guards (): boolean {
    return this.#lock !== undefined
  }

  judge ({ manifest: { skill_name: name, revision } }: TrustSubject): Verdict {
    const pin = this.#lock && checkPin(this.#lock.value, name, revision)
    return {
      isServed: pin === undefined || pin.isPinned,
      report: { signed: false, signer: null, status: null, checked_revision: revision, pinned: pin?.isPinned ?? null },
      findings: pin?.findings ?? []
    }
  }
}

function checkPin (lock: Lock, name: string, revision: string): { readonly isPinned: boolean, readonly findings: readonly Finding[] } {
  const revisions = lock.get(name)
  if (revisions === undefined) return { isPinned: false, findings: [NOT_PINNED] }
  if (revisions.has(revision)) return { isPinned: true, findings: [] }
  return {
    isPinned: false,
    findings: [finding('pin_mismatch', `the skill has the revision ${revision}, the lock has ${[...revisions].join(', ')}`, 'Review the change and write the lock anew with `skillserve lock`, or restore the files')]
  }
}

const NOT_PINNED = finding('not_pinned', 'the lock does not name the skill', 'Review the skill and write the lock anew with `skillserve lock`')
