import type { Observer } from '../../http/observer.ts'
import { type MetricsType, writeMetrics } from './exposition.ts'
import { type Metric, Reading } from './instruments.ts'
import { processMetrics } from './process-metrics.ts'
import { RequestMetrics } from './request-metrics.ts'
import { type MeasuredSkills, skillMetrics } from './skill-metrics.ts'

interface MetricsOptions {
  readonly skills: MeasuredSkills
  readonly version: string
  /** Values that other parts of the service count: read at each scrape. */
  readonly readings?: Readings
}

export interface Readings {
  readonly auditDropped?: () => number
  readonly logDropped?: () => number
  readonly limitsStoreFailures?: () => number
  readonly overloadLevel?: () => number
  /** Refusals by the kind of limit. */
  readonly limited?: () => Iterable<readonly [rule: string, count: number]>
  /** Refusals of callers by reason. */
  readonly authFailures?: () => Iterable<readonly [reason: string, count: number]>
  /** Issuers of tokens whose keys could not be read at the last attempt. */
  readonly issuersAway?: () => number
  readonly sources?: () => readonly MeasuredSource[]
  readonly reads?: () => Iterable<readonly [skill: string, door: string, count: number]>
}

/** What is measured of a source, as /readyz has it. Times are ISO 8601. */
interface MeasuredSource {
  readonly name: string
  readonly changed_at?: string
  readonly checked_at?: string
  readonly failing_since?: string
  readonly error?: { readonly code: string }
}

export interface Metrics {
  readonly observer: Observer
  /** All metrics by name. */
  readonly table: Readonly<Record<string, Metric>>
  write (type: MetricsType): string
  close (): void
}

const none = (): [] => []
const zero = (): number => 0

/** What operators measure. Labels are routes, methods, statuses, tools and names of roots. */
export function createMetrics ({ skills, version, readings = {} }: MetricsOptions): Metrics {
  let revisionNow: () => string | undefined = () => undefined
  const requests = new RequestMetrics((given) => { revisionNow = given })
  const { metrics: ofProcess, close } = processMetrics()
  const table: Record<string, Metric> = {
    ...requests.table,
    ...skillMetrics(skills, () => revisionNow()),
    ...sourceMetrics(readings.sources ?? none),
    ...readingMetrics(readings),
    ...ofProcess,
    skillserve_build_info: new Reading('gauge', { help: 'Always 1.', labels: ['version', 'node'] }, () => [[version, process.version, 1]])
  }
  return { observer: requests, table, close, write: (type) => writeMetrics(table, type) }
}

function readingMetrics (readings: Readings): Record<string, Reading> {
  return {
    skillserve_auth_failures_total: new Reading('counter', { help: 'Refused callers, by what was wrong: missing, invalid, expired, audience, scope, or issuer for keys that cannot be had.', labels: ['reason'] }, readings.authFailures ?? none),
    skillserve_issuers_away: new Reading('gauge', { help: 'Issuers of tokens whose keys could not be read at the last attempt; keys that were read before serve.' }, readings.issuersAway ?? zero),
    skillserve_rate_limited_total: new Reading('counter', { help: 'Refusals of callers past a limit: units, streams or failures. Calls in a batch count one by one.', labels: ['rule'] }, readings.limited ?? none),
    skillserve_limits_store_failures_total: new Reading('counter', { help: 'Exchanges with the shared store of limits that failed.' }, readings.limitsStoreFailures ?? zero),
    skillserve_overload_level: new Reading('gauge', { help: '1 while costly requests are refused, 2 while all but probes are.' }, readings.overloadLevel ?? zero),
    skillserve_audit_dropped_total: new Reading('counter', { help: 'Lines of the audit log that were lost: must stay 0.' }, readings.auditDropped ?? zero),
    skillserve_log_dropped_total: new Reading('counter', { help: 'Lines of the log that standard output did not take.' }, readings.logDropped ?? zero),
    skillserve_reads_total: new Reading('counter', { help: 'Reads of main files with METRICS_READS=true, at most 1,000 skills; a 304 and an archive are reads too, a HEAD is none.', labels: ['skill', 'door'] }, readings.reads ?? none)
  }
}

function sourceMetrics (sources: () => readonly MeasuredSource[]): Record<string, Reading> {
  const times = (timeOf: (source: MeasuredSource) => string | undefined) => () => sources().flatMap((source) => {
    const time = timeOf(source)
    return time === undefined ? [] : [[source.name, Date.parse(time) / 1000] as const]
  })
  return {
    skillserve_source_checked_timestamp_seconds: new Reading('gauge', { help: 'Last check of a source that succeeded.', labels: ['source'] }, times(({ checked_at: at }) => at)),
    skillserve_source_changed_timestamp_seconds: new Reading('gauge', { help: 'Since when the revision of a source is served.', labels: ['source'] }, times(({ changed_at: at }) => at)),
    skillserve_source_failing_since_timestamp_seconds: new Reading('gauge', { help: 'Since when a source fails, and with which error; no series while it does not.', labels: ['source', 'code'] }, () =>
      sources().flatMap(({ name, error, failing_since: since }) => error === undefined || since === undefined ? [] : [[name, error.code, Date.parse(since) / 1000] as const]))
  }
}
