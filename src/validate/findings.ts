import { TRUST_FINDINGS } from '../trust/findings.ts'
import { FINDINGS as VERDICT_FINDINGS } from '../verdicts/findings.ts'

/** Every kind of finding of the whole program. docs/findings.md lists them. */
export const FINDINGS = { ...VERDICT_FINDINGS, ...TRUST_FINDINGS } as const

export type FindingCode = keyof typeof FINDINGS
