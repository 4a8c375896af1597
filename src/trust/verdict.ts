import { reasonOf } from '../operator/files.ts'
import { quoteList } from '../core/format/findings.ts'
import type { Finding } from '../core/shared/skill.ts'
import type { TrustReport } from '../schemas/trust.ts'
import { SIGNATURE_FILE } from './bundle.ts'
import type { SignatureResult } from './check-signature.ts'
import { finding, type TrustFindingCode } from './findings.ts'
import type { Lock } from './lock-file.ts'
import { checkScans } from './scans.ts'
import { isSameSigners } from './signers.ts'
import type { TrustFile } from './trust-file.ts'

/** The result of checking the bytes of a skill, which no rule and no time changes. */
export interface CheckedSkill {
  /** Revision of all files. */
  readonly revision: string
  /** Revision of the files that the signature covers. */
  readonly coveredRevision: string
  /** Undefined without a trust file. */
  readonly signature: SignatureResult | undefined
}

export interface PolicyFiles {
  readonly lock?: Lock | undefined
  readonly trust?: TrustFile | undefined
}

/** The rules for the skills of one root. */
export interface Rules extends PolicyFiles {
  /** Whether its skills must be signed. */
  readonly isRequired: boolean
}

export function canRefuse ({ lock, trust, isRequired }: Rules): boolean {
  return lock !== undefined || isRequired || (trust !== undefined && trust.deny.size > 0)
}

/** Whether a skill may be served, with the report and the findings about it. */
export interface Verdict {
  /** Whether this revision is served; if not, none of its bytes are. */
  readonly isServed: boolean
  /** Why it is refused; undefined for one that is served. */
  readonly reason: Finding | undefined
  readonly report: TrustReport
  /** The reason too. */
  readonly findings: readonly Finding[]
  /** Revision that may be served: if signatures are required, that of the files that they cover. */
  readonly revision: string
  /** Time at which the same rules may lead to another verdict, in milliseconds since 1970. */
  readonly until: number
}

/** Time before its expiry at which a certificate is reported, in milliseconds. */
const WARNING_MS = 30 * 86_400_000

/** Decides whether a revision of a skill may be served now. All code that serves skills calls it. */
export function judge (name: string, { revision, coveredRevision, signature }: CheckedSkill, rules: Rules): Verdict {
  const now = Date.now()
  const { lock, trust, isRequired } = rules
  // A lock or `deny` may name the revision of all files, or that of the files that are served.
  const revisions = [revision, coveredRevision]
  const origin = trust && judgeByTrustFile(trust, isRequired, revisions, signature && atTime(signature, now))
  const pin = lock && judgePin(lock, name, revisions)
  const reasons = [...origin?.reasons ?? [], ...pin ?? []]
  const report = { signed: false, signer: null, status: null, ...origin?.report, checked_revision: revision }
  const { validFrom = Infinity, validTo = Infinity } = signature?.identity ?? {}
  const changes = [validFrom, validTo - WARNING_MS, validTo + 1]
  return {
    isServed: reasons.length === 0,
    reason: reasons[0],
    report: { ...report, pinned: pin === undefined ? null : pin.length === 0 },
    findings: [...reasons, ...origin?.notes ?? []],
    revision: isRequired ? coveredRevision : revision,
    until: Math.min(...changes.filter((time) => time > now), Infinity)
  }
}

/** Returns the verdict on a skill that could not be checked. */
export function unchecked (error: unknown): Verdict {
  const fix = 'Make all files of the skill readable, and remove what agents do not need'
  const reason = finding('trust_unchecked', `the skill could not be checked: ${reasonOf(error)}`, fix)
  const report = { signed: false, signer: null, status: null, checked_revision: '', pinned: null }
  return { isServed: false, reason, report, findings: [reason], revision: '', until: Infinity }
}

/** Applies the validity of the certificate at a time to the result of a check. */
function atTime (result: SignatureResult, now: number): SignatureResult {
  const { status, identity } = result
  if (status !== 'valid' || identity === undefined) return result
  const { signer, validFrom, validTo } = identity
  const what = `the certificate of ${signer.name}, which signed the skill,`
  const expired = (problem: string) => ({ ...result, status: 'expired' as const, problem: `${what} ${problem}` })
  if (now > validTo) return expired(`expired on ${dayOf(validTo)}`)
  if (now < validFrom) return expired(`is not valid before ${dayOf(validFrom)}`)
  return now < validTo - WARNING_MS ? result : { ...result, problem: `${what} expires on ${dayOf(validTo)}` }
}

/** Judges a skill by the trust file: reasons to refuse it, and other findings. */
function judgeByTrustFile (
  trust: TrustFile, isRequired: boolean, revisions: readonly string[], result: SignatureResult | undefined
) {
  if (result === undefined || !isStillKnown(result, trust)) return NOT_CHECKED
  const { status, identity, problem, exempt } = result
  const signer = identity?.signer.name
  const report = { signed: status !== 'unsigned', signer: signer ?? null }
  const denied = [...revisions, signer].find((each) => each !== undefined && trust.deny.has(each))
  if (denied !== undefined) {
    const sentence = `the trust file denies ${denied === signer ? `the signer ${denied}` : 'this revision'}`
    const reasons = [finding('trust_denied', sentence, 'Replace the skill')]
    return { report: { ...report, status: 'denied' as const }, reasons, notes: [] }
  }
  const scan = trust.scans && checkScans(trust.scans, revisions[0] ?? '')
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

/** Whether a check by the signers of an earlier trust file would have the same result with the present ones. */
function isStillKnown ({ status, signers, identity }: SignatureResult, trust: TrustFile): boolean {
  return status === 'unsigned' || isSameSigners(signers, trust.signers) ||
    trust.signers.some(({ id }) => id === identity?.signer.id)
}

/** Judges a skill by the lock: reasons to refuse it. */
function judgePin (lock: Lock, name: string, revisions: readonly string[]): readonly Finding[] {
  const pinned = lock.get(name)
  const fix = 'write the lock anew with `skillserve lock`'
  if (pinned === undefined) {
    return [finding('not_pinned', 'the lock does not name the skill', `Review the skill and ${fix}`)]
  }
  if (revisions.some((revision) => pinned.has(revision))) return []
  const sentence = `the skill has the revision ${revisions[0] ?? ''}, the lock has ${[...pinned].join(', ')}`
  return [finding('pin_mismatch', sentence, `Review the change and ${fix}, or restore the files`)]
}

/** Until a skill is checked by the signers of a new trust file: `deny` may refuse it in any root. */
const NOT_CHECKED = {
  report: {},
  reasons: [finding('trust_unchecked', 'the skill is being checked by the new trust file', 'Wait a moment')],
  notes: []
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
