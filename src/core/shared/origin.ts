/** What a signature came to. `stale`: files changed after signing; `untrusted`: the signer is not in the trust file. */
export type TrustStatus = 'valid' | 'unsigned' | 'stale' | 'untrusted' | 'expired' | 'invalid' | 'denied'

/** What one scanner reported of a revision. That it reported nothing proves nothing. */
export interface ScanReport {
  /** Name and version. */
  readonly tool: string
  /** ISO 8601. */
  readonly scanned_at: string
  /** How many results there are, and the worst of them. */
  readonly results: number
  readonly severity: 'info' | 'low' | 'medium' | 'high' | 'critical' | null
}

/** What answers say of the origin of a skill. */
export interface TrustReport {
  readonly signed: boolean
  /** Name in the trust file; `null` for a skill without a signature that holds. */
  readonly signer: string | null
  /** `null` without a trust file. */
  readonly status: TrustStatus | null
  readonly checked_revision: string
  /** Whether the lock names this revision; `null` without a lock. */
  readonly pinned: boolean | null
  /** Of this revision; absent where the trust file names no file of scans. */
  readonly scans?: readonly ScanReport[]
}
