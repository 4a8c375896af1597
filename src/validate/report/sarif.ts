import { encodePath } from '../../core/shared/paths.ts'
import { readPackageVersion } from '../../operator/package-files.ts'
import type { Finding, FindingSeverity } from '../../core/shared/skill.ts'
import { printable } from '../../core/shared/text.ts'
import { FINDINGS } from '../findings.ts'
import { helpUrl, positionOf, type ReporterFactory, type SkillReport } from './reporter.ts'

/** What GitHub's code scanning takes in one run. */
const MAX_RESULTS = 25_000

const LEVELS: Readonly<Record<FindingSeverity, string>> = { error: 'error', warning: 'warning', info: 'note' }

/** What ends the text of a link (SARIF 2.1.0 §3.11.6), and the backslashes before it, which may escape it. */
const LINK_TEXT_END = /(?<!\\)((?:\\\\)*)\]\(/g

const SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json'

/** SARIF 2.1.0, for code scanning: one run, a rule for each code. */
export const sarifReporter: ReporterFactory = ({ print }) => {
  let count = 0
  const version = readPackageVersion()
  const driver = {
    name: 'skillserve', version, informationUri: 'https://github.com/skillserve/skillserve', rules: rules()
  }
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
      const left = count - MAX_RESULTS
      const invocation = {
        executionSuccessful: true,
        ...left > 0 && {
          toolExecutionNotifications: [{
            level: 'warning',
            message: { text: `${left} more findings are left out: code scanning takes ${MAX_RESULTS} in a run` }
          }]
        }
      }
      print(`\n],"invocations":[${JSON.stringify(invocation)}]}]}\n`)
    }
  }
}

function rules (): readonly object[] {
  return Object.entries(FINDINGS).map(([code, [severity, summary]]) => ({
    id: code,
    shortDescription: { text: summary },
    // SARIF does not ask for it, and code scanning does.
    fullDescription: { text: `${summary}.` },
    help: { text: `${summary}. See ${helpUrl(code)}`, markdown: `${summary}. [More](${helpUrl(code)})` },
    helpUri: helpUrl(code),
    defaultConfiguration: { level: LEVELS[severity] }
  }))
}

function toResult (report: SkillReport, found: Finding): object {
  const { code, severity, message, fix, targets } = found
  const { file, line, column } = positionOf(report, found)
  return {
    ruleId: code,
    level: LEVELS[severity],
    message: { text: literal(`${message}. ${fix}.`) },
    locations: [{
      physicalLocation: {
        artifactLocation: toLocation(file),
        region: { startLine: line, ...column !== undefined && { startColumn: column } }
      }
    }],
    ...targets !== undefined && { properties: { targets } }
  }
}

/** A text that viewers show as it stands: braces mean arguments (§3.11.5), `[text](address)` a link. */
function literal (text: string): string {
  return text.replaceAll(/[{}]/g, '$&$&').replaceAll(LINK_TEXT_END, '$1\\](')
}

/** Relative to the root of the repository, where the tool is run. */
function toLocation (path: string): object {
  const uri = encodePath(path)
  return path.startsWith('/') ? { uri: `file://${uri}` } : { uri, uriBaseId: '%SRCROOT%' }
}
