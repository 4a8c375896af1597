import { githubReporter } from './github.ts'
import { jsonReporter } from './json.ts'
import type { ReporterFactory } from './reporter.ts'
import { sarifReporter } from './sarif.ts'
import { textReporter } from './text.ts'

export const REPORTERS = {
  text: textReporter, json: jsonReporter, sarif: sarifReporter, github: githubReporter
} as const satisfies Readonly<Record<string, ReporterFactory>>

export type ReportFormat = keyof typeof REPORTERS
