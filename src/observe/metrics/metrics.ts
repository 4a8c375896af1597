import type { FastifyRequest } from 'fastify'
import type { CacheUsage } from '../../core/files/file-store.ts'
import type { Refresh } from '../../core/refresher.ts'
import type { SkillStatus } from '../../core/skill-source.ts'
import type { Signal } from '../../core/ground/signal.ts'
import type { Observer } from '../../http/observer.ts'
import { problemCodeOf } from '../../http/problem.ts'
import { Counter, type CounterSeries, Histogram, type HistogramSeries, type Metric, Reading } from './instruments.ts'
import { type MetricsType, writeMetrics } from './exposition.ts'
import { processMetrics } from './process-metrics.ts'

export interface MetricsOptions {
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
export interface MeasuredSource {
  readonly name: string
  readonly changed_at?: string
  readonly checked_at?: string
  readonly failing_since?: string
  readonly error?: { readonly code: string }
}

/** What is measured of the skills. */
export interface MeasuredSkills {
  readonly status: SkillStatus
  readonly contents: { readonly usage: CacheUsage }
  readonly refreshed: Signal<Refresh>
  /** Whether changes in the root at this position cause events, or it is polled. */
  isWatching (root: number): boolean
  /** Skills with an error, by the name of their root. */
  invalidNow (): ReadonlyMap<string, number>
}

export interface Metrics {
  readonly observer: Observer
  /** All metrics by name. */
  readonly table: Readonly<Record<string, Metric>>
  write (type: MetricsType): string
  close (): void
}

const METHODS = ['GET', 'HEAD', 'POST', 'OPTIONS', 'PUT', 'DELETE', 'PATCH', 'CONNECT', 'TRACE', 'QUERY'] as const
const OTHER_METHOD = '_OTHER'

/** Of requests that no route took. */
const UNMATCHED = 'unmatched'

/** Hexadecimal digits of a revision that a double holds exactly. */
const REVISION_DIGITS = 12

const none = (): [] => []

/** The methods of MCP; others are the caller's text. */
const OPERATIONS: ReadonlySet<string> = new Set([
  'initialize', 'ping', 'server/discover', 'tools/list', 'tools/call', 'prompts/list', 'prompts/get', 'resources/list', 'resources/templates/list', 'resources/read',
  'resources/subscribe', 'resources/unsubscribe', 'resources/directory/read', 'skills/list', 'skills/get', 'subscriptions/listen', 'completion/complete', 'logging/setLevel'
])

/** Of a route: series by method and status, and the bytes of bodies. */
interface RouteSeries {
  readonly durations: Map<number, HistogramSeries>
  readonly bytes: CounterSeries
}

/**
 * What operators measure. Labels are routes, methods, statuses, tools and names of roots, never a caller's text: random URLs
 * add no series.
 */
export function createMetrics ({ skills, version, readings = {} }: MetricsOptions): Metrics {
  const durations = new Histogram({ help: 'Duration of HTTP requests.', labels: ['http_request_method', 'http_route', 'http_response_status_code'] })
  const bodyBytes = new Counter({ help: 'Bytes of response bodies, by Content-Length.', labels: ['http_route'] })
  const toolCalls = new Counter({ help: 'Calls of tools. A call that fails is an HTTP 200: outcome is ok, error or refused.', labels: ['tool', 'dialect', 'outcome'] })
  const operations = new Histogram({ help: 'Duration of MCP requests.', labels: ['mcp_method_name', 'error_type'] })
  const refreshes = new Histogram({ help: 'Duration of comparisons of the index with the disk.', labels: ['root'] })
  const failedRefreshes = new Counter({ help: 'Comparisons that failed; what was there before is served.', labels: ['root'] })
  const shed = new Counter({ help: 'Requests that were answered with 503 overloaded.' })
  const { metrics: ofProcess, close } = processMetrics()
  const startedAt = Date.now()
  const refreshedAt: number[] = []
  let revisionNow: () => string | undefined = () => undefined

  skills.refreshed.subscribe(({ milliseconds, isFailed, roots }) => {
    const all = skills.status.roots
    for (const root of roots) {
      const { name = '' } = all[root] ?? {}
      refreshes.of(name).observe(milliseconds / 1000)
      if (isFailed) failedRefreshes.of(name).value++
      else refreshedAt[root] = Date.now()
    }
  })

  /** Undefined for a route that is not counted: a scrape is no use of the service. */
  const byRoute = new Map<string | undefined, RouteSeries | undefined>()
  const active = new Map<string, number>(METHODS.map((method) => [method, 0]))
  const openStreams = { events: 0, mcp: 0 }
  const subscriptions = new WeakSet<FastifyRequest>()
  let openSubscriptions = 0

  function seriesOf (route: string | undefined): RouteSeries | undefined {
    const known = byRoute.get(route)
    if (known !== undefined || byRoute.has(route)) return known
    const series = route?.endsWith('/metrics') === true
      ? undefined
      : { durations: new Map<number, HistogramSeries>(), bytes: bodyBytes.of(route ?? UNMATCHED) }
    byRoute.set(route, series)
    return series
  }

  function durationsOf ({ method, routeOptions: { url: route } }: FastifyRequest, { durations: known }: RouteSeries, status: number): HistogramSeries {
    const methodIndex = METHODS.indexOf(method as (typeof METHODS)[number])
    const key = methodIndex * 1000 + status
    let series = known.get(key)
    if (series === undefined) known.set(key, series = durations.of(METHODS[methodIndex] ?? OTHER_METHOD, route ?? UNMATCHED, String(status)))
    return series
  }

  /** A number, since a label would add a series with each change: the first digits, which two catalogs hardly share. */
  function revisionNumber (): Array<readonly [number]> {
    const revision = revisionNow()
    return revision === undefined ? [] : [[Number.parseInt(revision.slice(0, REVISION_DIGITS), 16)]]
  }

  const observer: Observer = {
    useRevision (given) { revisionNow = given },
    onRequest ({ method, routeOptions: { url: route, config: { streams } } }) {
      const series = seriesOf(route)
      if (series === undefined) return
      active.set(method, (active.get(method) ?? 0) + 1)
      if (streams !== undefined && method === 'GET') openStreams[streams]++
    },
    onResponse (request, reply, { milliseconds, bytes }) {
      const { method, routeOptions: { url: route, config: { streams } } } = request
      const series = seriesOf(route)
      if (series === undefined) return
      const status = reply.raw.statusCode
      active.set(method, (active.get(method) ?? 1) - 1)
      if (streams !== undefined && method === 'GET') openStreams[streams]--
      else if (openSubscriptions > 0 && subscriptions.delete(request)) openSubscriptions--
      durationsOf(request, series, status).observe(milliseconds / 1000)
      if (bytes !== undefined) series.bytes.value += bytes
      if (status === 503 && problemCodeOf(request) === 'overloaded') shed.of().value++
    },
    onCall: ({ tool, dialect }) => (result) => { toolCalls.of(tool?.name ?? '_unknown', dialect, result).value++ },
    onOperation ({ method, origin }) {
      const start = performance.now()
      const name = OPERATIONS.has(method) ? method : '_OTHER'
      if (name === 'subscriptions/listen') {
        subscriptions.add(origin)
        openSubscriptions++
      }
      return ({ error = '' }) => { operations.of(name, error).observe((performance.now() - start) / 1000) }
    }
  }

  function activeByMethod (): Array<readonly [string, number]> {
    const known = METHODS.map((method) => [method, active.get(method) ?? 0] as const)
    const all = [...active.values()].reduce((sum, count) => sum + count, 0)
    const others = all - known.reduce((sum, [, count]) => sum + count, 0)
    return [...known, [OTHER_METHOD, others] as const].filter(([method, count]) => count > 0 || method === 'GET')
  }
  const table: Record<string, Metric> = {
    http_server_request_duration_seconds: durations,
    http_server_active_requests: new Reading('gauge', { help: 'Requests that are being answered.', labels: ['http_request_method'] }, activeByMethod),
    http_server_response_body_size_bytes_total: bodyBytes,
    skillserve_tool_calls_total: toolCalls,
    mcp_server_operation_duration_seconds: operations,
    skillserve_skills: new Reading('gauge', { help: 'Skills in a root.', labels: ['root'] }, () => skills.status.roots.map(({ name, skills: count }) => [name, count] as const)),
    skillserve_skills_invalid: new Reading('gauge', { help: 'Skills in a root that have an error.', labels: ['root'] }, () => {
      const invalid = skills.invalidNow()
      return skills.status.roots.map(({ name }) => [name, invalid.get(name) ?? 0] as const)
    }),
    skillserve_root_available: new Reading('gauge', { help: '1 for a root that is there and can be read.', labels: ['root'] }, () =>
      skills.status.roots.map(({ name, state }) => [name, state === 'ok' ? 1 : 0] as const)),
    ...sourceMetrics(readings.sources ?? none),
    skillserve_catalog_generation: new Reading('gauge', { help: 'Goes up with each change of the catalog.' }, () => skills.status.generation),
    skillserve_catalog_revision: new Reading('gauge', { help: 'The first 12 hexadecimal digits of the revision of the catalog, as a number: equal at replicas of equal content. None while it is not known.' }, revisionNumber),
    skillserve_refresh_duration_seconds: refreshes,
    skillserve_refresh_failures_total: failedRefreshes,
    skillserve_last_refresh_timestamp_seconds: new Reading('gauge', { help: 'End of the last comparison with the disk that succeeded.', labels: ['root'] }, () =>
      skills.status.roots.map(({ name }, root) => [name, (refreshedAt[root] ?? startedAt) / 1000] as const)),
    skillserve_watcher_healthy: new Reading('gauge', { help: '1 while changes cause events, or the root is polled.', labels: ['root'] }, () =>
      skills.status.roots.map(({ name }, root) => [name, skills.isWatching(root) ? 1 : 0] as const)),
    skillserve_event_streams: new Reading('gauge', { help: 'Open streams of GET /events.' }, () => openStreams.events),
    skillserve_mcp_streams: new Reading('gauge', { help: 'Open streams of MCP.' }, () => openStreams.mcp + openSubscriptions),
    skillserve_cache_bytes: new Reading('gauge', { help: 'Memory for contents of files, by weight.', labels: ['cache'] }, () => [['contents', skills.contents.usage.bytes]]),
    skillserve_cache_hits_total: new Reading('counter', { help: 'Files that were found in memory.', labels: ['cache'] }, () => [['contents', skills.contents.usage.hits]]),
    skillserve_cache_misses_total: new Reading('counter', { help: 'Files that were read.', labels: ['cache'] }, () => [['contents', skills.contents.usage.misses]]),
    skillserve_auth_failures_total: new Reading('counter', { help: 'Refused callers, by what was wrong: missing, invalid, expired, audience, scope, or issuer for keys that cannot be had.', labels: ['reason'] }, readings.authFailures ?? none),
    skillserve_issuers_away: new Reading('gauge', { help: 'Issuers of tokens whose keys could not be read at the last attempt; keys that were read before serve.' }, readings.issuersAway ?? (() => 0)),
    skillserve_rate_limited_total: new Reading('counter', { help: 'Refusals of callers past a limit: units, streams or failures. Calls in a batch count one by one.', labels: ['rule'] }, readings.limited ?? none),
    skillserve_limits_store_failures_total: new Reading('counter', { help: 'Exchanges with the shared store of limits that failed.' }, readings.limitsStoreFailures ?? (() => 0)),
    skillserve_overload_refusals_total: shed,
    skillserve_overload_level: new Reading('gauge', { help: '1 while costly requests are refused, 2 while all but probes are.' }, readings.overloadLevel ?? (() => 0)),
    skillserve_audit_dropped_total: new Reading('counter', { help: 'Lines of the audit log that were lost: must stay 0.' }, readings.auditDropped ?? (() => 0)),
    skillserve_log_dropped_total: new Reading('counter', { help: 'Lines of the log that standard output did not take.' }, readings.logDropped ?? (() => 0)),
    skillserve_reads_total: new Reading('counter', { help: 'Reads of main files with METRICS_READS=true, at most 1,000 skills; a 304 and an archive are reads too.', labels: ['skill', 'door'] }, readings.reads ?? none),
    ...ofProcess,
    skillserve_build_info: new Reading('gauge', { help: 'Always 1.', labels: ['version', 'node'] }, () => [[version, process.version, 1]])
  }

  return { observer, table, close, write: (type) => writeMetrics(table, type) }
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
