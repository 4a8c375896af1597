import { githubReporter } from './github.ts'
import { jsonReporter } from './json.ts'
import type { ReporterFactory, ReportFormat } from './reporter.ts'
import { sarifReporter } from './sarif.ts'
import { textReporter } from './text.ts'

export const REPORTERS = {
  text: textReporter, json: jsonReporter, sarif: sarifReporter, github: githubReporter
} as const satisfies Readonly<Record<ReportFormat, ReporterFactory>>
