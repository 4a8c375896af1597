import { findingsIn } from '../core/format/findings.ts'

/** Findings of locks, signatures and scanners. */
export const TRUST_FINDINGS = {
  unsigned: ['info', 'the skill has no signature'],
  signature_stale: ['warning', 'files were changed, added or removed after the skill was signed'],
  signature_exempt: ['info', 'the signature does not cover all files'],
  signature_untrusted: ['warning', 'the signer is not in the trust file'],
  signature_expired: ['warning', 'the certificate of the signer has expired, or is not valid yet'],
  signature_expires_soon: ['info', 'the certificate of the signer expires within 30 days'],
  signature_invalid: ['warning', 'the signature cannot be read, or does not match the content'],
  trust_denied: ['warning', 'the trust file denies the revision or its signer'],
  scan_result: ['warning', 'a scanner reports a problem of medium or higher severity'],
  scan_note: ['info', 'a scanner reports a problem of low severity'],
  scan_missing: ['warning', 'the trust file asks for a scan, and there is none of this revision'],
  trust_unchecked: ['warning', 'the skill could not be checked'],
  not_pinned: ['warning', 'the lock does not name the skill'],
  pin_mismatch: ['warning', 'the lock names another revision of the skill']
} as const

export type TrustFindingCode = keyof typeof TRUST_FINDINGS

export const { finding } = findingsIn<TrustFindingCode>(TRUST_FINDINGS)
