import { githubReporter } from './github.ts'
import { jsonReporter } from './json.ts'
import type { Reporter, ReporterFactory, ReporterOptions } from './reporter.ts'
import { sarifReporter } from './sarif.ts'
import { textReporter } from './text.ts'

type ReportFormat = 'text' | 'json' | 'sarif' | 'github'

const REPORTERS: Readonly<Record<ReportFormat, ReporterFactory>> = {
  text: textReporter, json: jsonReporter, sarif: sarifReporter, github: githubReporter
}

export function createReporter (format: ReportFormat, options: ReporterOptions): Reporter {
  return REPORTERS[format](options)
}

/** Collects codes by skill, for a baseline. */
export function collecting (found: Map<string, Set<string>>): Reporter {
  return {
    skill ({ path, findings }) {
      if (findings.length > 0) found.set(path, new Set(findings.map(({ code }) => code)))
    },
    end () {}
  }
}
