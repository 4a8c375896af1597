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
  readonly readings?: Readonly<Partial<Record<'auditDropped' | 'logDropped' | 'limitsStoreFailures' | 'overloadLevel', () => number>>>
}

/** What is measured of the skills. */
export interface MeasuredSkills {
  readonly status: SkillStatus
  readonly contents: { readonly usage: CacheUsage }
  readonly refreshed: Signal<Refresh>
  availableNow (): readonly unknown[]
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
  const refreshes = new Histogram({ help: 'Duration of comparisons of the index with the disk.' })
  const failedRefreshes = new Counter({ help: 'Comparisons that failed; what was there before is served.' })
  const authFailures = new Counter({ help: 'Requests without a principal that the route wants.', labels: ['reason'] })
  const limited = new Counter({ help: 'Requests that were answered with 429, by the kind of limit.', labels: ['rule'] })
  const shed = new Counter({ help: 'Requests that were answered with 503 overloaded.' })
  const { metrics: ofProcess, close } = processMetrics()
  let refreshedAt = Date.now()

  skills.refreshed.subscribe(({ milliseconds, isFailed }) => {
    refreshes.of().observe(milliseconds / 1000)
    if (isFailed) failedRefreshes.of().value++
    else refreshedAt = Date.now()
  })

  const byRoute = new Map<string | undefined, RouteSeries>()
  const active = new Map<string, number>(METHODS.map((method) => [method, 0]))
  const streams = new Map<string, number>()
  const subscriptions = new WeakSet<FastifyRequest>()
  let openSubscriptions = 0

  function seriesOf (route: string | undefined): RouteSeries {
    let series = byRoute.get(route)
    if (series === undefined) byRoute.set(route, series = { durations: new Map(), bytes: bodyBytes.of(route ?? UNMATCHED) })
    return series
  }

  function durationsOf ({ method, routeOptions: { url: route } }: FastifyRequest, { durations: known }: RouteSeries, status: number): HistogramSeries {
    const methodIndex = METHODS.indexOf(method as (typeof METHODS)[number])
    const key = methodIndex * 1000 + status
    let series = known.get(key)
    if (series === undefined) known.set(key, series = durations.of(METHODS[methodIndex] ?? OTHER_METHOD, route ?? UNMATCHED, String(status)))
    return series
  }

  const observer: Observer = {
    onRequest ({ method, routeOptions: { url: route } }) {
      active.set(method, (active.get(method) ?? 0) + 1)
      if (method === 'GET' && route !== undefined && isStream(route)) streams.set(route, (streams.get(route) ?? 0) + 1)
    },
    onResponse (request, reply, { milliseconds, bytes }) {
      const { method, routeOptions: { url: route } } = request
      const status = reply.raw.statusCode
      active.set(method, (active.get(method) ?? 1) - 1)
      if (method === 'GET' && route !== undefined && isStream(route)) streams.set(route, (streams.get(route) ?? 1) - 1)
      else if (subscriptions.delete(request)) openSubscriptions--
      const series = seriesOf(route)
      durationsOf(request, series, status).observe(milliseconds / 1000)
      if (bytes !== undefined) series.bytes.value += bytes
      if (status >= 400) countRefusal(request, status)
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

  function countRefusal (request: FastifyRequest, status: number): void {
    const code = problemCodeOf(request)
    if (status === 401) authFailures.of(code ?? 'unauthorized').value++
    else if (status === 429) limited.of(code ?? 'rate_limited').value++
    else if (code === 'overloaded') shed.of().value++
  }

  const openStreams = (suffix: string) => [...streams].reduce((sum, [route, count]) => route.endsWith(suffix) ? sum + count : sum, 0)
  const table: Record<string, Metric> = {
    http_server_request_duration_seconds: durations,
    http_server_active_requests: new Reading('gauge', { help: 'Requests that are being answered.', labels: ['http_request_method'] }, () =>
      METHODS.map((method) => [method, active.get(method) ?? 0] as const).filter(([method, count]) => count > 0 || method === 'GET')),
    http_server_response_body_size_bytes_total: bodyBytes,
    skillserve_tool_calls_total: toolCalls,
    mcp_server_operation_duration_seconds: operations,
    skillserve_skills: new Reading('gauge', { help: 'Skills in a root.', labels: ['root'] }, () => skills.status.roots.map(({ name, skills: count }) => [name, count] as const)),
    skillserve_skills_invalid: new Reading('gauge', { help: 'Skills with an error, of all roots.' }, () => Math.max(0, skills.status.skills - skills.availableNow().length)),
    skillserve_root_available: new Reading('gauge', { help: '1 for a root that is there and can be read.', labels: ['root'] }, () =>
      skills.status.roots.map(({ name, state }) => [name, state === 'ok' ? 1 : 0] as const)),
    skillserve_catalog_generation: new Reading('gauge', { help: 'Goes up with each change of the catalog.' }, () => skills.status.generation),
    skillserve_refresh_duration_seconds: refreshes,
    skillserve_refresh_failures_total: failedRefreshes,
    skillserve_last_refresh_timestamp_seconds: new Reading('gauge', { help: 'End of the last comparison with the disk that succeeded.' }, () => refreshedAt / 1000),
    skillserve_watcher_healthy: new Reading('gauge', { help: '1 while changes cause events, or the folders are polled.' }, () => skills.status.watcher.status === 'watching' ? 1 : 0),
    skillserve_event_streams: new Reading('gauge', { help: 'Open streams of GET /events.' }, () => openStreams('/events')),
    skillserve_mcp_streams: new Reading('gauge', { help: 'Open streams of MCP.' }, () => openStreams('/mcp') + openSubscriptions),
    skillserve_cache_bytes: new Reading('gauge', { help: 'Memory for contents of files, by weight.', labels: ['cache'] }, () => [['contents', skills.contents.usage.bytes]]),
    skillserve_cache_hits_total: new Reading('counter', { help: 'Files that were found in memory.', labels: ['cache'] }, () => [['contents', skills.contents.usage.hits]]),
    skillserve_cache_misses_total: new Reading('counter', { help: 'Files that were read.', labels: ['cache'] }, () => [['contents', skills.contents.usage.misses]]),
    skillserve_auth_failures_total: authFailures,
    skillserve_rate_limited_total: limited,
    skillserve_limits_store_failures_total: new Reading('counter', { help: 'Exchanges with the shared store of limits that failed.' }, readings.limitsStoreFailures ?? (() => 0)),
    skillserve_overload_refusals_total: shed,
    skillserve_overload_level: new Reading('gauge', { help: '1 while costly requests are refused, 2 while all but probes are.' }, readings.overloadLevel ?? (() => 0)),
    skillserve_audit_dropped_total: new Reading('counter', { help: 'Lines of the audit log that were lost: must stay 0.' }, readings.auditDropped ?? (() => 0)),
    skillserve_log_dropped_total: new Reading('counter', { help: 'Lines of the log that standard output did not take.' }, readings.logDropped ?? (() => 0)),
    ...ofProcess,
    skillserve_build_info: new Reading('gauge', { help: 'Always 1.', labels: ['version', 'node'] }, () => [[version, process.version, 1]])
  }

  return { observer, table, close, write: (type) => writeMetrics(table, type) }
}

/** Routes whose answers are streams of notifications, with any path prefix. */
function isStream (route: string): boolean {
  return route.endsWith('/events') || route.endsWith('/mcp')
}
