import { basename } from 'node:path/posix'
import type { CatalogSkill, Finding, FindingSeverity } from '../../core/shared/skill.ts'
import type { TargetName, TargetVerdict, TokenEstimate } from '../../verdicts/index.ts'

/** One skill in a report. */
export interface SkillReport {
  /** Its folder as the caller's paths name it, with `/` between segments. */
  readonly path: string
  readonly skill: CatalogSkill
  /** Null when its files cannot be listed. */
  readonly revision: string | null
  readonly verdicts: readonly TargetVerdict[]
  /** Those that are to be reported. */
  readonly findings: readonly Finding[]
  readonly tokens: () => TokenEstimate
}

export interface Totals {
  skills: number
  /** Findings by severity, reported or not. */
  error: number
  warning: number
  info: number
  /** Findings that a baseline accepts; counted nowhere else. */
  accepted: number
}

/** Writes a report piece by piece: nothing of a skill is kept. */
export interface Reporter {
  readonly skill: (report: SkillReport) => void
  readonly end?: (totals: Totals) => void
}

export interface ReporterOptions {
  readonly print: (text: string) => void
  /** Undefined when the caller has chosen none. */
  readonly targets: readonly TargetName[] | undefined
  readonly hasColor: boolean
}

/** Begins a report. */
export type ReporterFactory = (options: ReporterOptions) => Reporter

const DOCUMENTATION = 'https://github.com/skillserve/skillserve/blob/main/docs/findings.md'

/** Where the documents explain a code. */
export function helpUrl (code: string): string {
  return `${DOCUMENTATION}#${code}`
}

/** The file that a finding is about, from where the caller is. */
export function fileOf ({ path }: SkillReport, { file }: Finding): string {
  return file === undefined ? path : path === '.' ? file : `${path.replace(/\/$/, '')}/${file}`
}

/** A place for readers that show no folders: findings about a whole skill are shown at its main file. */
export function positionOf (
  report: SkillReport, found: Finding
): { readonly file: string, readonly line: number, readonly column: number | undefined } {
  const { file = basename(report.skill.metadata.path), line = 1, column } = found
  return { file: fileOf(report, { ...found, file }), line, column }
}

export const SEVERITIES: readonly FindingSeverity[] = ['error', 'warning', 'info']

export const FAIL_ON = ['error', 'warning', 'info', 'never'] as const

export const REPORT_FORMATS = ['text', 'json', 'sarif', 'github'] as const

export type ReportFormat = typeof REPORT_FORMATS[number]
