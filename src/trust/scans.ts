import { type Static, Type } from '@sinclair/typebox'
import { parseYamlFile } from '../operator/yaml-file.ts'
import { SCAN_SEVERITIES, type ScanReport } from '../schemas/trust.ts'
import type { Finding } from '../core/shared/skill.ts'
import { StringEnum } from '../schemas/typebox.ts'
import { finding } from './findings.ts'

type ScanSeverity = (typeof SCAN_SEVERITIES)[number]

/** Findings per revision; a scanner may report thousands. */
const MAX_RESULTS_SHOWN = 50

const SeveritySchema = StringEnum(SCAN_SEVERITIES)

const ScanSchema = Type.Object({
  /** Name and version of the scanner. */
  tool: Type.String({ minLength: 1, maxLength: 200 }),
  scanned_at: Type.String({
    pattern: '^\\d{4}-\\d\\d-\\d\\d(T[\\d:.]+Z)?$', title: 'a date, or a date and time in UTC'
  }),
  results: Type.Array(Type.Object({
    severity: SeveritySchema,
    message: Type.String({ minLength: 1 }),
    /** Path of a file in the skill. */
    file: Type.Optional(Type.String())
  }))
})

type Scan = Static<typeof ScanSchema>

/** Results of scanners by revision. Unknown keys are allowed, and ignored. */
const ScansFileSchema = Type.Record(Type.String(), Type.Array(ScanSchema))

/** Creates the schema of a path that the trust file names. */
export function NamedFile (description: string) {
  return Type.String({ minLength: 1, title: 'a path, from the folder of this file', description })
}

/** When scans refuse skills of roots with `require`. */
export const ScanRulesSchema = Type.Object({
  file: NamedFile('JSON or YAML: what scanners said of revisions'),
  max_severity: Type.Optional(SeveritySchema),
  required: Type.Optional(Type.Boolean({
    description: 'With `require`: whether a skill without a scan is refused. Default `false`'
  }))
}, { additionalProperties: false })

export interface ScanRules extends Omit<Static<typeof ScanRulesSchema>, 'file'> {
  readonly byRevision: ReadonlyMap<string, readonly Scan[]>
}

/** @throws ConfigError of one line, with the file and the line */
export function parseScans (path: string, text: string): ScanRules['byRevision'] {
  return new Map(Object.entries(parseYamlFile(path, text, ScansFileSchema).value))
}

/** Judges the scans of a revision: findings that refuse it where signatures are required, and other ones. */
export function checkScans (rules: ScanRules, revision: string): {
  readonly reports: readonly ScanReport[]
  readonly reasons: readonly Finding[]
  readonly notes: readonly Finding[]
} {
  const { byRevision, max_severity: worstAllowed = 'critical', required } = rules
  const scans = byRevision.get(revision) ?? []
  const results = scans.flatMap(({ tool, scanned_at: at, results }) => results.map((each) => ({ ...each, tool, at })))
    .sort((a, b) => rankOf(b.severity) - rankOf(a.severity))
  const refusing = results.filter(({ severity }) => rankOf(severity) > rankOf(worstAllowed)).length
  const findings = results.slice(0, MAX_RESULTS_SHOWN).map(({ severity, message, file, tool, at }) => {
    const code = rankOf(severity) >= rankOf('medium') ? 'scan_result' : 'scan_note'
    const sentence = `${tool} on ${at.slice(0, 10)} (${severity}): ${message}`
    const fix = 'Read what the scanner says, and change the skill or accept it'
    return { ...finding(code, sentence, fix), ...file !== undefined && { file } }
  })
  const missing = finding('scan_missing', 'there is no scan of this revision',
    'Have the skill scanned, and put the result into the file of scans')
  return {
    reports: scans.map(({ tool, scanned_at: at, results }) =>
      ({ tool, scanned_at: at, results: results.length, severity: worst(results) })),
    reasons: required === true && scans.length === 0 ? [missing] : findings.slice(0, refusing),
    notes: findings.slice(refusing)
  }
}

function rankOf (severity: ScanSeverity): number {
  return SCAN_SEVERITIES.indexOf(severity)
}

function worst (results: Scan['results']): ScanSeverity | null {
  return SCAN_SEVERITIES.findLast((severity) => results.some((result) => result.severity === severity)) ?? null
}
