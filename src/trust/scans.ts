import { type Static, Type } from '@sinclair/typebox'
import { parseYamlFile } from '../config/files/yaml-file.ts'
import { SCAN_SEVERITIES, type ScanReport } from '../schemas/trust.ts'
import { finding } from '../core/format/findings.ts'
import type { Finding } from '../core/shared/skill.ts'
import { StringEnum } from '../schemas/typebox.ts'

type ScanSeverity = (typeof SCAN_SEVERITIES)[number]

/** For each revision, so that nobody pages through thousands. */
const MAX_RESULTS_SHOWN = 50
const DAY_MS = 86_400_000
const SCANNED_AT = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?Z)?$/

export const SeveritySchema = StringEnum(SCAN_SEVERITIES)

const ScanSchema = Type.Object({
  /** Name and version. */
  tool: Type.String({ minLength: 1, maxLength: 200 }),
  scanned_at: Type.String({ pattern: SCANNED_AT.source, title: 'a date, or a date and time in UTC' }),
  results: Type.Array(Type.Object({
    severity: SeveritySchema,
    message: Type.String({ minLength: 1 }),
    /** A path in the skill. */
    file: Type.Optional(Type.String())
  }))
})

type Scan = Static<typeof ScanSchema>

/** Results of scanners by revision: those of other revisions do not count. Other keys are allowed, and ignored. */
const ScansFileSchema = Type.Record(Type.String(), Type.Array(ScanSchema))

/** What results mean for skills that have to be signed. */
export interface ScanRules {
  readonly byRevision: ReadonlyMap<string, readonly Scan[]>
  /** A worse result refuses the skill. */
  readonly max_severity?: ScanSeverity
  /** Older scans do not count. */
  readonly max_age_days?: number
  /** Whether a skill without a scan is refused. */
  readonly required?: boolean
}

/** @throws ConfigError of one line, with the file and the line */
export function parseScans (path: string, text: string): ScanRules['byRevision'] {
  return new Map(Object.entries(parseYamlFile(path, text, ScansFileSchema).value))
}

/** What scanners said of a revision. The first finding of a refused one is the reason. */
export function checkScans (rules: ScanRules, revision: string, now: number): {
  readonly isRefused: boolean, readonly reports: readonly ScanReport[], readonly findings: readonly Finding[]
} {
  const { byRevision, max_severity: maxSeverity, max_age_days: maxAgeDays = Infinity, required = false } = rules
  const oldest = now - maxAgeDays * DAY_MS
  const scans = (byRevision.get(revision) ?? []).filter(({ scanned_at: at }) => Date.parse(at) >= oldest)
  const results = scans.flatMap(({ tool, scanned_at: at, results }) => results.map((each) => ({ ...each, tool, at })))
    .sort((a, b) => rankOf(b.severity) - rankOf(a.severity))
  const worstAllowed = maxSeverity === undefined ? Infinity : rankOf(maxSeverity)
  const isTooSevere = results.some(({ severity }) => rankOf(severity) > worstAllowed)
  const age = maxAgeDays === Infinity ? '' : `, or none of the last ${maxAgeDays} days`
  const missing = `no scan of this revision is there${age}`
  const isMissing = required && scans.length === 0
  return {
    isRefused: isTooSevere || isMissing,
    reports: scans.map(({ tool, scanned_at: at, results }) =>
      ({ tool, scanned_at: at, results: results.length, severity: worst(results) })),
    findings: [
      ...isMissing
        ? [finding('scan_missing', missing, 'Have the skill scanned, and put the result into the file of scans')]
        : [],
      ...results.slice(0, MAX_RESULTS_SHOWN).map(({ severity, message, file, tool, at }) => {
        const code = rankOf(severity) >= rankOf('medium') ? 'scan_result' : 'scan_note'
        const sentence = `${tool} on ${at.slice(0, 10)} (${severity}): ${message}`
        const fix = 'Read what the scanner says, and change the skill or accept it'
        return { ...finding(code, sentence, fix), ...file !== undefined && { file } }
      })
    ]
  }
}

function rankOf (severity: ScanSeverity): number {
  return SCAN_SEVERITIES.indexOf(severity)
}

function worst (results: Scan['results']): ScanSeverity | null {
  return SCAN_SEVERITIES.findLast((severity) => results.some((result) => result.severity === severity)) ?? null
}
