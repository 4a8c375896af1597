import { basename } from 'node:path/posix'
import { styleText } from 'node:util'
import { encodePath } from '../core/shared/paths.ts'
import type { CatalogSkill, Finding, FindingSeverity } from '../core/shared/skill.ts'
import { counted, grouped, printable } from '../core/shared/text.ts'
import { readPackageVersion } from '../operator/package-files.ts'
import { TRUST_FINDINGS } from '../trust/findings.ts'
import type { TargetVerdict } from '../verdicts/client-verdicts.ts'
import { FINDINGS as VERDICT_FINDINGS } from '../verdicts/findings.ts'
import type { TargetName } from '../verdicts/targets.ts'
import { listedTokens, roundTokens, type TokenEstimate } from '../verdicts/tokens.ts'

/** Every kind of finding of the whole program. docs/findings.md lists them. */
export const FINDINGS = { ...VERDICT_FINDINGS, ...TRUST_FINDINGS } as const

export type FindingCode = keyof typeof FINDINGS

export const SEVERITIES: readonly FindingSeverity[] = ['error', 'warning', 'info']
export const FAIL_ON = ['error', 'warning', 'info', 'never'] as const
export type FailOn = typeof FAIL_ON[number]

export interface SkillReport {
  /** Path of the skill's folder in the report, with `/` between segments. */
  readonly path: string
  readonly skill: CatalogSkill
  /** Null when its files cannot be listed. */
  readonly revision: string | null
  readonly verdicts: readonly TargetVerdict[]
  /** Findings that are reported. */
  readonly findings: readonly Finding[]
  readonly tokens: () => TokenEstimate
}

export interface Totals {
  skills: number
  /** Numbers of findings by severity, reported or not. */
  error: number
  warning: number
  info: number
  /** Number of findings that a baseline accepts; they are counted nowhere else. */
  accepted: number
}

/** Writes a report skill by skill, and keeps none of them. */
export interface Reporter {
  readonly skill: (report: SkillReport) => void
  readonly end?: (totals: Totals) => void
}

interface ReporterOptions {
  readonly print: (text: string) => void
  /** Undefined if the caller has chosen none. */
  readonly targets: readonly TargetName[] | undefined
  readonly hasColor: boolean
}

/** Functions that begin a report, by its format. */
export const REPORTERS = { text: reportText, json: reportJson, sarif: reportSarif, github: reportAnnotations } as const
export type ReportFormat = keyof typeof REPORTERS

const DOCUMENTATION = 'https://github.com/skillserve/skillserve/blob/main/docs/findings.md'
const LEVELS: Readonly<Record<FindingSeverity, string>> = { error: 'error', warning: 'warning', info: 'note' }

/** Returns the path of the file that a finding is about, from where the caller is. */
function fileOf ({ path }: SkillReport, file: string | undefined): string {
  return file === undefined ? path : path === '.' ? file : `${path.replace(/\/$/, '')}/${file}`
}

/** Returns a place for hosts that show no folders: findings about a whole skill are shown at its main file. */
function positionOf (report: SkillReport, { file, line = 1, column }: Finding) {
  return { file: fileOf(report, file ?? basename(report.skill.metadata.path)), line, column }
}

const STYLES = { error: 'red', warning: 'yellow', info: 'cyan', dim: 'dim' } as const
const MAX_NAMED_CLIENTS = 3

/** Writes text for people: a line for each finding, its fix below, and the totals last. */
function reportText ({ print, targets, hasColor }: ReporterOptions): Reporter {
  const explained = new Set<string>()
  let listed = 0
  let only: TokenEstimate | undefined
  const paint = (style: keyof typeof STYLES, text: string): string =>
    hasColor ? styleText(STYLES[style], text, { validateStream: false }) : text

  function describe (report: SkillReport, found: Finding): string {
    const { severity, code, message, fix, file, line, column = 1, targets: clients = [] } = found
    const position = `${shown(fileOf(report, file))}${line === undefined ? '' : `:${line}:${column}`}`
    const more = clients.length - MAX_NAMED_CLIENTS
    const named = `${clients.slice(0, MAX_NAMED_CLIENTS).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
    const lines = [
      `${position}  ${paint(severity, severity)}  ${code}  ${printable(message)}`,
      `    fix: ${printable(fix)}`,
      ...clients.length > 0 ? [paint('dim', `    matters to: ${named}`)] : [],
      ...explained.has(code) ? [] : [paint('dim', `    see: ${DOCUMENTATION}#${code}`)]
    ]
    explained.add(code)
    return `${lines.join('\n')}\n`
  }

  return {
    skill (report) {
      const { findings, verdicts, path, skill, tokens } = report
      // The bodies of thousands of skills take a second: only that of a single one is counted.
      only = listed === 0 ? tokens() : undefined
      listed += listedTokens(skill.metadata)
      const isSaid = findings.length > 0 || (targets !== undefined && verdicts.some(({ verdict }) => verdict !== 'ok'))
      if (!isSaid) return
      const said = verdicts.map(({ target, verdict }) => `${target} ${verdict}`).join(', ')
      const head = targets === undefined ? '' : `${shown(path)}: ${said}\n`
      print(`${head}${findings.map((found) => describe(report, found)).join('')}\n`)
    },
    end ({ skills, accepted, ...totals }) {
      const counts = SEVERITIES.filter((severity) => totals[severity] > 0)
        .map((severity) => counted(totals[severity], severity))
      print([
        `${counted(skills, 'skill')}: ${counts.join(', ') || 'no findings'}`,
        accepted > 0 ? `, ${accepted} accepted by the baseline` : '',
        `; about ${grouped(roundTokens(listed))} tokens in each turn`,
        only?.body == null ? '' : `, ${grouped(only.body)} in use`,
        only?.all_files == null ? '' : `, ${grouped(only.all_files)} with all files`,
        '\n'
      ].join(''))
    }
  }
}

/** Returns a printable path that does not begin like a command of a CI service. */
function shown (path: string): string {
  const text = printable(path)
  return /^(?:::|##)/.test(text) ? `./${text}` : text
}

/** Writes one JSON object for programs, with the skills in the shape of `POST /validate`. */
function reportJson ({ print }: ReporterOptions): Reporter {
  let separator = '\n'
  print('{"skills":[')
  return {
    skill ({ path, skill: { name, valid }, revision, verdicts, findings, tokens }) {
      const entry = { path, skill_name: name, revision, valid, tokens: tokens(), targets: verdicts, findings }
      print(`${separator}${printable(JSON.stringify(entry))}`)
      separator = ',\n'
    },
    end ({ skills, error, warning, info, accepted }) {
      const totals = { skills, errors: error, warnings: warning, infos: info, accepted }
      print(`\n],"totals":${JSON.stringify(totals)}}\n`)
    }
  }
}

/** Writes annotations of GitHub Actions: one workflow command per line. */
function reportAnnotations ({ print }: ReporterOptions): Reporter {
  const data = (text: string) => printable(text).replaceAll('%', '%25')
  const property = (text: string) => data(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
  return {
    skill (report) {
      for (const found of report.findings) {
        const { file, line, column } = positionOf(report, found)
        const level = found.severity === 'info' ? 'notice' : found.severity
        const place = `file=${property(file)},line=${line}${column === undefined ? '' : `,col=${column}`}`
        print(`::${level} ${place},title=${found.code}::${data(`${found.message}. ${found.fix}`)}\n`)
      }
    }
  }
}

/** Most results in a run that GitHub's code scanning accepts. */
const MAX_RESULTS = 25_000
const SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json'
/** End of a link's text (SARIF 2.1.0 §3.11.6), and the backslashes before it, which may escape it. */
const LINK_TEXT_END = /(?<!\\)((?:\\\\)*)\]\(/g

/** Writes SARIF 2.1.0, for code scanning: one run, with a rule for each code. */
function reportSarif ({ print }: ReporterOptions): Reporter {
  let count = 0
  const rules = Object.entries(FINDINGS).map(([code, [severity, summary]]) => {
    const helpUri = `${DOCUMENTATION}#${code}`
    return {
      id: code,
      shortDescription: { text: summary },
      // SARIF does not ask for it, and code scanning does.
      fullDescription: { text: `${summary}.` },
      help: { text: `${summary}. See ${helpUri}`, markdown: `${summary}. [More](${helpUri})` },
      helpUri,
      defaultConfiguration: { level: LEVELS[severity] }
    }
  })
  const informationUri = 'https://github.com/skillserve/skillserve'
  const driver = { name: 'skillserve', version: readPackageVersion(), informationUri, rules }
  print(
    `{"$schema":"${SCHEMA}","version":"2.1.0","runs":[{"tool":{"driver":${JSON.stringify(driver)}},` +
    '"columnKind":"utf16CodeUnits","results":['
  )
  return {
    skill (report) {
      for (const found of report.findings) {
        if (++count > MAX_RESULTS) continue
        print(`${count === 1 ? '' : ','}\n${printable(JSON.stringify(toResult(report, found)))}`)
      }
    },
    end () {
      const text = `${count - MAX_RESULTS} more findings are skipped: code scanning accepts ${MAX_RESULTS} in a run`
      const invocation = {
        executionSuccessful: true,
        ...count > MAX_RESULTS && { toolExecutionNotifications: [{ level: 'warning', message: { text } }] }
      }
      print(`\n],"invocations":[${JSON.stringify(invocation)}]}]}\n`)
    }
  }
}

function toResult (report: SkillReport, found: Finding): object {
  const { code, severity, message, fix, targets } = found
  const { file, line, column } = positionOf(report, found)
  // Viewers take braces for arguments (§3.11.5) and `[text](address)` for a link.
  const text = `${message}. ${fix}.`.replaceAll(/[{}]/g, '$&$&').replaceAll(LINK_TEXT_END, '$1\\](')
  const uri = encodePath(file)
  const artifactLocation = file.startsWith('/') ? { uri: `file://${uri}` } : { uri, uriBaseId: '%SRCROOT%' }
  const region = { startLine: line, ...column !== undefined && { startColumn: column } }
  return {
    ruleId: code,
    level: LEVELS[severity],
    message: { text },
    locations: [{ physicalLocation: { artifactLocation, region } }],
    ...targets !== undefined && { properties: { targets } }
  }
}
