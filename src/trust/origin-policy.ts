import { LRUCache } from 'lru-cache'
import type { FollowedFile } from '../config/files/followed-file.ts'
import type { GateChange, TrustPolicy, TrustReport, TrustStatus, TrustSubject, Verdict } from '../core/content/trust/trust-policy.ts'
import { finding, type FindingCode } from '../core/format/findings.ts'
import { atMost } from '../core/shared/heap.ts'
import { Signal } from '../core/shared/signal.ts'
import type { Finding } from '../core/shared/skill.ts'
import { SIGNATURE_FILE } from './bundle.ts'
import { checkSignature, type SignatureResult } from './check-signature.ts'
import type { Lock } from './lock-file.ts'
import { judgeScans } from './scans.ts'
import { NEVER_SIGNED } from './statement.ts'
import type { Trust } from './trust-file.ts'

interface Followed<Value> extends Pick<FollowedFile<Value>, 'value'> {
  on (event: 'changed', listener: () => void): unknown
}

interface OriginPolicyOptions {
  readonly lock?: Followed<Lock> | undefined
  readonly trust?: Followed<Trust> | undefined
  /** For all roots, whatever the trust file says of them. */
  readonly mode?: 'require' | undefined
  /** Wall clock, in milliseconds. */
  readonly now?: () => number
}

/** Results of checks that are kept: each takes some 200 bytes, and saves 1 to 4 ms. */
const MAX_RESULTS = 50_000

/** How long before its expiry a certificate is reported, in milliseconds. */
const WARNING_MS = 30 * 86_400_000

/** Serves what an operator has reviewed or trusts: revisions of a lock, and skills of signers in a trust file. */
export class OriginPolicy implements TrustPolicy {
  readonly changed = new Signal<void>()
  readonly judged = new Signal<GateChange>()
  readonly hiddenNames: ReadonlySet<string>
  readonly #options: OriginPolicyOptions
  /** By revision: the same bytes have the same signature. Expiry and the rules of a root are applied later. */
  readonly #results = new LRUCache<string, SignatureResult>(atMost(MAX_RESULTS))

  constructor (options: OriginPolicyOptions) {
    this.#options = options
    this.hiddenNames = options.trust === undefined ? new Set() : NEVER_SIGNED
    options.lock?.on('changed', () => { this.changed.emit() })
    options.trust?.on('changed', () => {
      this.#results.clear()
      this.changed.emit()
    })
  }

  guards (root: string): boolean {
    const { lock, trust } = this.#options
    return lock !== undefined || (trust !== undefined && (trust.value.deny.size > 0 || this.#modeOf(trust.value, root) === 'require'))
  }

  async judge (subject: TrustSubject): Promise<Verdict> {
    const { lock, trust } = this.#options
    const { skill_name: name, revision } = subject.manifest
    const origin = trust && await this.#judgeOrigin(trust.value, subject)
    const pin = lock && checkPin(lock.value, name, revision)
    // The reason of a refusal comes first.
    const judges = origin?.isServed === false ? [origin, pin] : [pin, origin]
    return {
      isServed: origin?.isServed !== false && pin?.isPinned !== false,
      report: { signed: false, signer: null, status: null, ...origin?.report, checked_revision: revision, pinned: pin?.isPinned ?? null },
      findings: judges.flatMap((judge) => judge?.findings ?? [])
    }
  }

  async #judgeOrigin (trust: Trust, subject: TrustSubject): Promise<{ isServed: boolean, report: Pick<TrustReport, 'signed' | 'signer' | 'status' | 'scans'>, findings: readonly Finding[] }> {
    const { root, manifest: { revision } } = subject
    const { status, identity, problem } = this.#atThisTime(await this.#check(trust, subject))
    const signer = identity?.signer.name
    const denied = [revision, signer].find((each) => each !== undefined && trust.deny.has(each))
    const report = { signed: status !== 'unsigned', signer: signer ?? null }
    if (denied !== undefined) {
      return { isServed: false, report: { ...report, status: 'denied' }, findings: [finding('trust_denied', `the trust file denies ${denied === revision ? 'this revision' : `the signer ${denied}`}`, 'Replace the skill')] }
    }
    const scan = trust.scans && judgeScans(trust.scans, revision, this.#now())
    const isRequired = this.#modeOf(trust, root) === 'require'
    const isValid = status === 'valid' || (status === 'expired' && identity?.signer.acceptsExpired === true)
    const origin = problem === '' ? [] : [describe(status, problem)]
    // The reason comes first.
    const findings = isValid && scan?.isRefused === true ? [...scan.findings, ...origin] : [...origin, ...scan?.findings ?? []]
    return { isServed: !isRequired || (isValid && scan?.isRefused !== true), report: { ...report, status, ...scan && { scans: scan.reports } }, findings }
  }

  async #check (trust: Trust, subject: TrustSubject): Promise<SignatureResult> {
    const key = `${subject.manifest.revision} ${subject.hasLinks}`
    const known = this.#results.get(key)
    if (known !== undefined) return known
    const result = await checkSignature(subject, trust.signers)
    // Another trust file may have come meanwhile.
    if (this.#options.trust?.value === trust) this.#results.set(key, result)
    return result
  }

  #atThisTime (result: SignatureResult): Omit<SignatureResult, 'status'> & { readonly status: Exclude<TrustStatus, 'denied'> } {
    const { status, identity } = result
    const now = this.#now()
    if (status !== 'valid' || identity === undefined) return result
    const { signer, validFrom, validTo } = identity
    if (now < validFrom || now > validTo) {
      const problem = now > validTo ? `expired on ${dayOf(validTo)}` : `is not valid before ${dayOf(validFrom)}`
      return { status: 'expired', identity, problem: `the certificate of ${signer.name}, which signed the skill, ${problem}` }
    }
    return now < validTo - WARNING_MS ? result : { ...result, problem: `the certificate of ${signer.name}, which signed the skill, expires on ${dayOf(validTo)}` }
  }

  #now (): number {
    return (this.#options.now ?? Date.now)()
  }

  #modeOf ({ roots }: Trust, root: string): 'report' | 'require' {
    return this.#options.mode ?? roots.get(root) ?? 'report'
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

const REMEDIES: Readonly<Record<Exclude<TrustStatus, 'denied'>, readonly [FindingCode, fix: string]>> = {
  valid: ['signature_expires_soon', 'Have the skill signed with a new certificate before that day'],
  unsigned: ['unsigned', `Have the skill signed, which gives it the file ${SIGNATURE_FILE}`],
  stale: ['signature_stale', 'Restore the files that were signed, or have the skill signed again'],
  untrusted: ['signature_untrusted', 'Add the signer to the trust file, or get the skill from a signer who is in it'],
  expired: ['signature_expired', 'Have the skill signed with a new certificate, or accept expired ones of this signer in the trust file'],
  invalid: ['signature_invalid', 'Have the skill signed again']
}

function describe (status: Exclude<TrustStatus, 'denied'>, problem: string): Finding {
  const [code, fix] = REMEDIES[status]
  return finding(code, problem, fix)
}

function dayOf (time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}
