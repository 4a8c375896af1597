import { type Static, Type } from '@sinclair/typebox'
import { nullable, type ReadonlyDeep, StringEnum } from './typebox.ts'

/** Severities of a scanner's results, from the mildest to the worst. */
export const SCAN_SEVERITIES = ['info', 'low', 'medium', 'high', 'critical'] as const

/** Report of one scanner about a revision. */
const ScanSchema = Type.Object({
  tool: Type.String({ description: 'Name and version of the scanner' }),
  scanned_at: Type.String({ description: 'ISO 8601' }),
  results: Type.Integer({ minimum: 0 }),
  severity: nullable(StringEnum(SCAN_SEVERITIES, {
    description: 'Of the worst result; `null` without one, which proves nothing'
  }))
})

/** Trust report of a skill in answers. */
export const TrustSchema = Type.Object({
  signed: Type.Boolean({ description: 'Whether the skill has a signature, good or not' }),
  signer: nullable(Type.String({ description: 'Name of the signer in the trust file; `null` if none of them signed' })),
  status: nullable(StringEnum(['valid', 'unsigned', 'stale', 'untrusted', 'expired', 'invalid', 'denied'], {
    description: 'The result of the check. `stale`: files changed after the signing; `null` without a trust file'
  })),
  checked_revision: Type.String({ description: 'The revision that this was found for' }),
  pinned: nullable(Type.Boolean({ description: 'Whether the lock names this revision; `null` without a lock' })),
  scans: Type.Optional(Type.Array(ScanSchema, {
    description: 'What scanners said of this revision; absent where the trust file names no file of scans'
  }))
}, { description: 'Where the skill comes from; absent without a lock and a trust file' })

export type ScanReport = Readonly<Static<typeof ScanSchema>>
export type TrustReport = ReadonlyDeep<Static<typeof TrustSchema>>

/** The result of a check. `stale`: files changed after signing; `untrusted`: the signer is not in the trust file. */
export type TrustStatus = NonNullable<TrustReport['status']>
