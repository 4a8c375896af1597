import { EventEmitter } from 'node:events'
import { LRUCache } from 'lru-cache'
import { quoteList } from '../core/format/findings.ts'
import { revisionOf } from '../core/revisions/snapshot.ts'
import type { SkillState } from '../core/revisions/state.ts'
import type { TrustReport } from '../schemas/trust.ts'
import type { Finding, ManifestFile } from '../core/shared/skill.ts'
import { SIGNATURE_FILE } from './bundle.ts'
import { checkSignature, type SignatureResult } from './check-signature.ts'
import type { Lock } from './lock-file.ts'
import { finding, type TrustFindingCode } from './findings.ts'
import { checkScans } from './scans.ts'
import type { TrustFile } from './trust-file.ts'

/** What a policy says of one state of a skill. */
export interface Verdict {
  /** False: no byte of this state is served. */
  readonly isServed: boolean
  readonly report: TrustReport
  /** The first one of a refused state is the reason. */
  readonly findings: readonly Finding[]
  /** The files that are served where the root is guarded, and the revision that they have. */
  readonly files: readonly ManifestFile[]
  readonly revision: string
}

/** What guards roots. */
export type RootPolicy = Pick<Policy, 'requires' | 'guards' | 'check' | 'allows' | 'on'>

/** The files of an operator as they are now. */
interface PolicyFiles {
  readonly lock?: Lock | undefined
  readonly trust?: TrustFile | undefined
}

/** Results of checks that are kept: each takes some 200 bytes, and saves 1 to 4 ms. */
const MAX_RESULTS = 50_000

/** How long before its expiry a certificate is reported, in milliseconds. */
const WARNING_MS = 30 * 86_400_000

/** Serves what an operator has reviewed or trusts: revisions of a lock, and skills of signers in a trust file. */
export class Policy extends EventEmitter<{ changed: [] }> {
  readonly #givenNameOf: (root: string) => string | undefined
  #files: PolicyFiles
  /** By revision: the same bytes have the same signature. Expiry and the rules of a root are applied later. */
  readonly #results = new LRUCache<string, SignatureResult>({ max: MAX_RESULTS })

  /** @param givenNameOf the name that an operator gave to a root: it may have a number here */
  constructor (files: PolicyFiles, givenNameOf: (root: string) => string | undefined = () => undefined) {
    super()
    this.#files = files
    this.#givenNameOf = givenNameOf
  }

  /** Puts other files in force. */
  replace (files: PolicyFiles): void {
    if (files.trust !== this.#files.trust) this.#results.clear()
    this.#files = files
    this.emit('changed')
  }

  /** Whether skills of the root of this name must be signed. A rule for a given name holds for numbered ones too. */
  requires (root: string): boolean {
    const roots = this.#files.trust?.roots
    return (roots?.get(root) ?? roots?.get(this.#givenNameOf(root) ?? '')) === 'require'
  }

  /** Whether it may refuse skills of the root of this name. */
  guards (root: string): boolean {
    const { lock, trust } = this.#files
    return lock !== undefined || this.requires(root) || (trust?.deny.size ?? 0) > 0
  }

  /** Whether a revision that was handed out before may still be read: under `require`, while its signature is known. */
  allows (root: string, name: string, revision: string): boolean {
    const { lock, trust } = this.#files
    if (lock !== undefined && lock.get(name)?.has(revision) !== true) return false
    const signer = this.#results.get(revision)?.identity?.signer.name
    if ([revision, signer].some((each) => each !== undefined && trust?.deny.has(each))) return false
    return signer !== undefined || !this.requires(root)
  }

  /** @param isRequired whether the skill must be signed. Does not throw for anything that a skill contains. */
  async check (state: SkillState, isRequired: boolean): Promise<Verdict> {
    const { lock, trust } = this.#files
    const { skill_name: name, revision, files } = await state.manifest()
    const signature = trust && atThisTime(await this.#check(trust, revision, state))
    const exempt = isRequired ? signature?.exempt ?? [] : []
    const served = files.filter(({ path }) => !exempt.includes(path))
    const servedRevision = revisionOf(served)
    // Operators name the whole skill, or what is served of it.
    const revisions = [revision, servedRevision]
    const origin = trust && signature && checkOrigin(trust, isRequired, signature, revisions)
    const pin = lock && checkPin(lock, name, revisions)
    const reasons = [...origin?.reasons ?? [], ...pin ?? []]
    const report = { signed: false, signer: null, status: null, ...origin?.report, checked_revision: revision }
    return {
      isServed: reasons.length === 0,
      report: { ...report, pinned: pin === undefined ? null : pin.length === 0 },
      findings: [...reasons, ...origin?.notes ?? []],
      files: served,
      revision: servedRevision
    }
  }

  async #check (trust: TrustFile, revision: string, state: SkillState): Promise<SignatureResult> {
    const known = this.#results.get(revision)
    if (known !== undefined) return known
    const result = await checkSignature(state, trust.signers)
    // Another trust file may have come meanwhile.
    if (this.#files.trust === trust) this.#results.set(revision, result)
    return result
  }
}

function atThisTime (result: SignatureResult): SignatureResult {
  const { status, identity } = result
  if (status !== 'valid' || identity === undefined) return result
  const now = Date.now()
  const { signer, validFrom, validTo } = identity
  const what = `the certificate of ${signer.name}, which signed the skill,`
  const expired = (problem: string) => ({ ...result, status: 'expired' as const, problem: `${what} ${problem}` })
  if (now > validTo) return expired(`expired on ${dayOf(validTo)}`)
  if (now < validFrom) return expired(`is not valid before ${dayOf(validFrom)}`)
  return now < validTo - WARNING_MS ? result : { ...result, problem: `${what} expires on ${dayOf(validTo)}` }
}

/** What the trust file says of a skill: why it is refused, and what else there is to say. */
function checkOrigin (trust: TrustFile, isRequired: boolean, signature: SignatureResult, revisions: readonly string[]) {
  const { status, identity, problem, exempt } = signature
  const signer = identity?.signer.name
  const report = { signed: status !== 'unsigned', signer: signer ?? null }
  const denied = [...revisions, signer].find((each) => each !== undefined && trust.deny.has(each))
  if (denied !== undefined) {
    const sentence = `the trust file denies ${denied === signer ? `the signer ${denied}` : 'this revision'}`
    const reasons = [finding('trust_denied', sentence, 'Replace the skill')]
    return { report: { ...report, status: 'denied' as const }, reasons, notes: [] }
  }
  const scan = trust.scans && checkScans(trust.scans, revisions[0] ?? '', Date.now())
  const isValid = status === 'valid' || (status === 'expired' && identity?.signer.acceptsExpired === true)
  const [code, fix] = REMEDIES[status]
  const problems = status === 'valid' && problem === '' ? [] : [finding(code, problem, fix)]
  const exemption = `the signature does not cover ${quoteList(exempt)}${isRequired ? ', so it is not served' : ''}`
  const uncovered = finding('signature_exempt', exemption, 'Have the skill signed with these files, or remove them')
  const reasons = [...isValid ? [] : problems, ...scan?.reasons ?? []]
  const notes = [...isValid ? problems : [], ...exempt.length > 0 ? [uncovered] : [], ...scan?.notes ?? []]
  return {
    report: { ...report, status, ...scan && { scans: scan.reports } },
    ...isRequired ? { reasons, notes } : { reasons: [], notes: [...reasons, ...notes] }
  }
}

/** Why the lock refuses a skill. */
function checkPin (lock: Lock, name: string, revisions: readonly string[]): readonly Finding[] {
  const pinned = lock.get(name)
  const fix = 'write the lock anew with `skillserve lock`'
  if (pinned === undefined) {
    return [finding('not_pinned', 'the lock does not name the skill', `Review the skill and ${fix}`)]
  }
  if (revisions.some((revision) => pinned.has(revision))) return []
  const sentence = `the skill has the revision ${revisions[0] ?? ''}, the lock has ${[...pinned].join(', ')}`
  return [finding('pin_mismatch', sentence, `Review the change and ${fix}, or restore the files`)]
}

const REMEDIES: Readonly<Record<SignatureResult['status'], readonly [TrustFindingCode, fix: string]>> = {
  valid: ['signature_expires_soon', 'Have the skill signed with a new certificate before that day'],
  unsigned: ['unsigned', `Have the skill signed, which gives it the file ${SIGNATURE_FILE}`],
  stale: ['signature_stale', 'Restore the files that were signed, or have the skill signed again'],
  untrusted: ['signature_untrusted', 'Add the signer to the trust file, or get the skill from a signer who is in it'],
  expired: [
    'signature_expired',
    'Have the skill signed with a new certificate, or accept expired ones of this signer in the trust file'
  ],
  invalid: ['signature_invalid', 'Have the skill signed again']
}

function dayOf (time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}
