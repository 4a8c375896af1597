import { escapeText, type Metric } from './instruments.ts'

export const PROMETHEUS = 'text/plain; version=0.0.4; charset=utf-8'
export const OPENMETRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

export type MetricsType = typeof PROMETHEUS | typeof OPENMETRICS

/** What the scraper takes: OpenMetrics where it asks for that by name. */
export function metricsType (accept: string | undefined): MetricsType {
  return accept?.includes('application/openmetrics-text') === true ? OPENMETRICS : PROMETHEUS
}

/** All metrics as text, in the order of their table: https://prometheus.io/docs/instrumenting/exposition_formats/ */
export function writeMetrics (metrics: Readonly<Record<string, Metric>>, type: MetricsType): string {
  const lines: string[] = []
  for (const [name, metric] of Object.entries(metrics)) {
    // In OpenMetrics the name of a counter is that of its family, and `_total` belongs to the sample.
    const family = type === OPENMETRICS && metric.type === 'counter' ? name.replace(/_total$/, '') : name
    lines.push(`# HELP ${family} ${escapeText(metric.help)}`, `# TYPE ${family} ${metric.type}`)
    for (const { suffix, labels, value } of metric.samples()) lines.push(`${name}${suffix}${labels === '' ? '' : `{${labels}}`} ${writeNumber(value)}`)
  }
  if (type === OPENMETRICS) lines.push('# EOF')
  return `${lines.join('\n')}\n`
}

function writeNumber (value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  return String(value)
}
