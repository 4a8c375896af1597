import type { SkillFolder } from '../../roots/scan-root.ts'
import type { Signal } from '../../shared/signal.ts'
import type { Finding, Manifest } from '../../shared/skill.ts'

/** What a signature came to. `stale`: files differ from what was signed; `untrusted`: signed by somebody who is not in the trust file. */
export type TrustStatus = 'valid' | 'unsigned' | 'stale' | 'untrusted' | 'expired' | 'invalid' | 'denied'

/** What one scanner said of a revision. That it said nothing is no proof of anything. */
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

/** What a policy says of one state of a skill. */
export interface Verdict {
  /** False: no byte of this state is served. */
  readonly isServed: boolean
  readonly report: TrustReport
  readonly findings: readonly Finding[]
}

/** One state of a skill, for a policy. */
export interface TrustSubject {
  /** Name of the root that the skill comes from. */
  readonly root: string
  readonly manifest: Manifest
  /** Whether a file of the manifest, or one that was left out of it, is a symbolic link. */
  readonly hasLinks: boolean
  /**
   * Bytes of a file of the manifest.
   * @throws {RefusedError} `changed` when the file has other bytes by now
   */
  read (path: string, maxBytes: number): Promise<Buffer>
}

/** A folder is refused, for another reason than before, or served again. */
export interface GateChange {
  readonly folder: SkillFolder
  /** Name of its root. */
  readonly root: string
  readonly verdict: Verdict
}

/** Decides on skills by their origin: by pinned revisions, by signatures. */
export interface TrustPolicy {
  /** Names at the top of a skill that its signature never covers: they are not served. Does not change. */
  readonly hiddenNames: ReadonlySet<string>
  /** Emits after a change of the policy: every verdict may be another. */
  readonly changed: Signal<void>
  /** What all gates that obey the policy refuse and serve again. */
  readonly judged: Signal<GateChange>
  /** Whether the policy may refuse skills of the root of this name. */
  guards (root: string): boolean
  /** Does not throw for anything that a skill contains. */
  judge (subject: TrustSubject): Promise<Verdict>
}
