import type { FindingSeverity } from '../../core/shared/skill.ts'
import { printable } from '../../core/shared/text.ts'
import { positionOf, type ReporterFactory } from './reporter.ts'

const LEVELS: Readonly<Record<FindingSeverity, string>> = { error: 'error', warning: 'warning', info: 'notice' }

/** Annotations of GitHub Actions: workflow commands, one in each line. */
export const githubReporter: ReporterFactory = ({ print }) => ({
  skill (report) {
    for (const found of report.findings) {
      const { severity, code, message, fix } = found
      const { file, line, column } = positionOf(report, found)
      const position = [['file', file], ['line', line], ['col', column], ['title', code]] as const
      const properties = position.filter(([, value]) => value !== undefined)
        .map(([name, value]) => `${name}=${escapeProperty(String(value))}`)
      print(`::${LEVELS[severity]} ${properties.join(',')}::${escapeData(`${message}. ${fix}`)}\n`)
    }
  }
})

function escapeData (text: string): string {
  return printable(text).replaceAll('%', '%25')
}

function escapeProperty (text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
}
