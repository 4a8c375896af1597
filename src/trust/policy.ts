import { EventEmitter } from 'node:events'
import { LRUCache } from 'lru-cache'
import { finding, type FindingCode, quoteList } from '../core/format/findings.ts'
import { sha256 } from '../core/shared/digest.ts'
import type { TrustReport, TrustStatus } from '../core/shared/origin.ts'
import type { Finding, ManifestFile } from '../core/shared/skill.ts'
import { SIGNATURE_FILE } from './bundle.ts'
import { checkSignature, type SignatureResult } from './check-signature.ts'
import type { Lock } from './lock-file.ts'
import { judgeScans } from './scans.ts'
import type { TrustSubject } from './subject.ts'
import type { Trust } from './trust-file.ts'

/** What a policy says of one state of a skill. */
export interface Verdict {
  /** False: no byte of this state is served. */
  readonly isServed: boolean
  readonly report: TrustReport
  readonly findings: readonly Finding[]
  /** The files that are served where the root is guarded. */
  readonly files: readonly ManifestFile[]
  /** The revision that these files have. */
  readonly revision: string
}

/** The files of an operator as they are now; `changed` follows them. */
export interface PolicyFiles {
  readonly lock?: Lock | undefined
  readonly trust?: Trust | undefined
}

interface PolicyOptions {
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
export class Policy extends EventEmitter<{ changed: [] }> {
  readonly #options: PolicyOptions
  #files: PolicyFiles
  /** By revision: the same bytes have the same signature. Expiry and the rules of a root are applied later. */
  readonly #results = new LRUCache<string, SignatureResult>({ maxSize: MAX_RESULTS, sizeCalculation: () => 1 })

  constructor (files: PolicyFiles, options: PolicyOptions = {}) {
    super()
    this.#files = files
    this.#options = options
  }

  /** Puts other files in force. */
  replace (files: PolicyFiles): void {
    if (files.trust !== this.#files.trust) this.#results.clear()
    this.#files = files
    this.emit('changed')
  }

  /** Whether it may refuse skills of the root of this name. */
  guards (root: string): boolean {
    const { lock, trust } = this.#files
    return lock !== undefined || (trust !== undefined && (trust.deny.size > 0 || this.#requires(trust, root)))
  }

  /** Whether a revision that was handed out before may still be read. Of a signature that is not known any more, it may not. */
  allows (root: string, name: string, revision: string): boolean {
    const { lock, trust } = this.#files
    if (lock?.get(name)?.has(revision) === false || (lock !== undefined && !lock.has(name))) return false
    if (trust === undefined) return true
    const signer = this.#results.get(revision)?.identity?.signer.name
    return !trust.deny.has(revision) && !trust.deny.has(signer ?? '') && (signer !== undefined || !this.#requires(trust, root))
  }

  /** Does not throw for anything that a skill contains. */
  async judge (root: string, subject: TrustSubject): Promise<Verdict> {
    const { lock, trust } = this.#files
    const { skill_name: name, revision, files } = subject.manifest
    const signature = trust && await this.#check(trust, subject)
    const exempt = trust !== undefined && this.#requires(trust, root) ? signature?.exempt ?? [] : []
    const served = exempt.length === 0 ? files : files.filter(({ path }) => !exempt.includes(path))
    const servedRevision = exempt.length === 0 ? revision : revisionOf(served)
    // Operators name the whole skill, or what is served of it.
    const revisions = [revision, servedRevision]
    const origin = trust && signature && this.#judgeOrigin(trust, root, signature, revisions)
    const pin = lock && checkPin(lock, name, revisions)
    // The reason of a refusal comes first.
    const all = origin?.isServed === false ? [origin, pin] : [pin, origin]
    const report = { signed: false, signer: null, status: null, ...origin?.report, checked_revision: revision }
    return {
      isServed: origin?.isServed !== false && pin?.isPinned !== false,
      report: { ...report, pinned: pin?.isPinned ?? null },
      findings: all.flatMap((each) => each?.findings ?? []),
      files: served,
      revision: servedRevision
    }
  }

  #judgeOrigin (trust: Trust, root: string, signature: SignatureResult, revisions: readonly string[]): {
    readonly isServed: boolean
    readonly report: Pick<TrustReport, 'signed' | 'signer' | 'status' | 'scans'>
    readonly findings: readonly Finding[]
  } {
    const { status, identity, problem, exempt } = this.#atThisTime(signature)
    const signer = identity?.signer.name
    const report = { signed: status !== 'unsigned', signer: signer ?? null }
    const denied = [...revisions, signer].find((each) => each !== undefined && trust.deny.has(each))
    if (denied !== undefined) {
      const sentence = `the trust file denies ${denied === signer ? `the signer ${denied}` : 'this revision'}`
      const findings = [finding('trust_denied', sentence, 'Replace the skill')]
      return { isServed: false, report: { ...report, status: 'denied' }, findings }
    }
    const scan = trust.scans && judgeScans(trust.scans, revisions[0] ?? '', this.#now())
    const isRequired = this.#requires(trust, root)
    const isValid = status === 'valid' || (status === 'expired' && identity?.signer.acceptsExpired === true)
    const isScanned = scan?.isRefused !== true
    const origin = [
      ...problem === '' ? [] : [describe(status, problem)],
      ...exempt.length === 0 ? [] : [describeExempt(exempt, isRequired)]
    ]
    return {
      isServed: !isRequired || (isValid && isScanned),
      report: { ...report, status, ...scan && { scans: scan.reports } },
      // The reason of a refusal comes first.
      findings: isValid && !isScanned ? [...scan.findings, ...origin] : [...origin, ...scan?.findings ?? []]
    }
  }

  async #check (trust: Trust, subject: TrustSubject): Promise<SignatureResult> {
    const { revision } = subject.manifest
    const known = this.#results.get(revision)
    if (known !== undefined) return known
    const result = await checkSignature(subject, trust.signers)
    // Another trust file may have come meanwhile.
    if (this.#files.trust === trust) this.#results.set(revision, result)
    return result
  }

  #atThisTime (result: SignatureResult): Omit<SignatureResult, 'status'> & { readonly status: Exclude<TrustStatus, 'denied'> } {
    const { status, identity } = result
    const now = this.#now()
    if (status !== 'valid' || identity === undefined) return result
    const { signer, validFrom, validTo } = identity
    const what = `the certificate of ${signer.name}, which signed the skill,`
    if (now > validTo) return { ...result, status: 'expired', problem: `${what} expired on ${dayOf(validTo)}` }
    if (now < validFrom) return { ...result, status: 'expired', problem: `${what} is not valid before ${dayOf(validFrom)}` }
    return now < validTo - WARNING_MS ? result : { ...result, problem: `${what} expires on ${dayOf(validTo)}` }
  }

  #now (): number {
    return (this.#options.now ?? Date.now)()
  }

  #requires ({ roots }: Trust, root: string): boolean {
    return (this.#options.mode ?? roots.get(root)) === 'require'
  }
}

/** The revision of a part of a skill, as every skill has it: by its files in their order. */
function revisionOf (files: readonly ManifestFile[]): string {
  return sha256(files.map(({ path, digest }) => `${digest} ${path}\0`).join(''))
}

function checkPin (lock: Lock, name: string, revisions: readonly string[]): { readonly isPinned: boolean, readonly findings: readonly Finding[] } {
  const pinned = lock.get(name)
  const [fix, also] = ['write the lock anew with `skillserve lock`', 'or restore the files']
  if (pinned === undefined) {
    return { isPinned: false, findings: [finding('not_pinned', 'the lock does not name the skill', `Review the skill and ${fix}`)] }
  }
  if (revisions.some((revision) => pinned.has(revision))) return { isPinned: true, findings: [] }
  const sentence = `the skill has the revision ${revisions[0] ?? ''}, the lock has ${[...pinned].join(', ')}`
  return { isPinned: false, findings: [finding('pin_mismatch', sentence, `Review the change and ${fix}, ${also}`)] }
}

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

function describeExempt (exempt: readonly string[], isRequired: boolean): Finding {
  const sentence = `the signature does not cover ${quoteList(exempt)}${isRequired ? ', so it is not served' : ''}`
  return finding('signature_exempt', sentence, 'Have the skill signed with these files, or remove them')
}

function dayOf (time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}
