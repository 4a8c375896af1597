import type { FastifyRequest } from 'fastify'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Config } from '../config/settings.ts'
import type { Root } from '../core/roots/root.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import { distinctNames } from '../core/shared/text.ts'
import type { Observer } from '../http/observer.ts'
import type { SourceStatus } from '../schemas/health.ts'
import { apiOf, methodName, operationName, type Read, readOfCall, readOfOperation, readOfRequest } from './reads.ts'

interface MetricsOptions extends Partial<Pick<Config, 'metricsReads'>> {
  readonly skills: SkillManager
  readonly version: string
  readonly readings?: Readings
}

/** Functions that read values of other parts of the service at each scrape. */
export interface Readings {
  readonly auditDropped?: () => number
  readonly logDropped?: () => number
  readonly limitsStoreFailures?: () => number
  readonly unreachableIssuers?: () => number
  readonly limited?: () => Iterable<readonly [rule: string, count: number]>
  readonly authFailures?: () => Iterable<readonly [reason: string, count: number]>
  readonly sources?: () => readonly SourceStatus[]
}

/** The values of the labels, then the value of the series. */
type Row = ReadonlyArray<string | number>

/** Bounds of the histograms in seconds. Many answers take less than a millisecond. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/** Most skills with a series of their own; all others share one. */
const MAX_SKILLS = 1_000
const OTHER_SKILLS = '_other'

/** Number of hexadecimal digits of a revision that fit exactly into a double. */
const REVISION_DIGITS = 12

/** Creates all metrics. Labels are routes, methods, statuses, tools and names of roots, never a caller's text. */
export function createMetrics ({ skills, version, metricsReads = false, readings = {} }: MetricsOptions) {
  const { catalog, refresher } = skills.parts
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  // promtool refuses gauges whose names end in `_total`.
  for (const kind of ['handles', 'requests', 'resources']) registry.removeSingleMetric(`nodejs_active_${kind}_total`)

  const gauge = (name: string, labelNames: string[], help: string): Gauge =>
    new Gauge({ name, help, labelNames, registers: [registry] })
  const counter = (name: string, labelNames: string[], help: string): Counter =>
    new Counter({ name, help, labelNames, registers: [registry] })
  const histogram = (name: string, labelNames: string[], help: string): Histogram =>
    new Histogram({ name, help, labelNames, registers: [registry], buckets: BUCKETS })

  /** Adds a metric that `read` fills at each scrape. Without labels it is 0 by default; undefined removes it. */
  function rows (
    type: 'counter' | 'gauge', name: string, labelNames: string[], help: string,
    read: () => number | Iterable<Row> | undefined = () => []
  ): void {
    const metric = new (type === 'gauge' ? Gauge : Counter)({
      name,
      help,
      labelNames,
      registers: [registry],
      collect: () => {
        metric.reset()
        const values = read()
        if (values === undefined) metric.remove()
        else if (typeof values === 'number') metric.inc(values)
        else for (const row of values) metric.labels(...row.slice(0, -1).map(String)).inc(Number(row.at(-1)))
      }
    })
  }

  const durations = histogram('http_server_request_duration_seconds',
    ['http_request_method', 'http_route', 'http_response_status_code'], 'Duration of HTTP requests')
  const active = gauge('http_server_active_requests', ['http_request_method'], 'Requests under way')
  const bodyBytes = counter('http_server_response_body_size_bytes_total', ['http_route'],
    'Bytes of response bodies, by Content-Length')
  const toolCalls = counter('skillserve_tool_calls_total', ['tool', 'dialect', 'outcome'],
    'Calls of tools. A call that fails is an HTTP 200: outcome is ok, error or refused')
  const operations = histogram('mcp_server_operation_duration_seconds', ['mcp_method_name', 'error_type'],
    'Duration of MCP requests')
  const eventStreams = gauge('skillserve_event_streams', [], 'Open streams of GET /events')
  const mcpStreams = gauge('skillserve_mcp_streams', [], 'Open streams of MCP')
  const shed = counter('skillserve_overload_refusals_total', [], 'Requests answered with 503 overloaded')
  const reads = counter('skillserve_reads_total', ['skill', 'door'], 'Reads of main files with METRICS_READS=true, ' +
    'of 1,000 skills, and of the rest together; a 304 and an archive are reads too, a HEAD is not')

  /** The gauge of each request whose answer is a stream. */
  const streams = new WeakMap<FastifyRequest, Gauge>()
  const readSkills = new Set<string>()

  function countRead ({ event, skill, api = '' }: Partial<Read> = {}): void {
    const isMain = event === 'skill.read' || event === 'skill.archive'
    if (!metricsReads || !isMain || skill === undefined) return
    // Only names from the catalog become labels, never a caller's text.
    if (!readSkills.has(skill) && !skills.indexedNames().includes(skill)) return
    if (readSkills.size < MAX_SKILLS) readSkills.add(skill)
    reads.inc({ skill: readSkills.has(skill) ? skill : OTHER_SKILLS, door: api })
  }

  const refreshes = histogram('skillserve_refresh_duration_seconds', ['root'], 'Duration of comparisons with the disk')
  const failures = counter('skillserve_refresh_failures_total', ['root'],
    'Comparisons that failed; the last good state is served')
  // Two roots may have folders of the same name.
  const names = () => distinctNames(catalog.roots.map(({ name }) => name))
  const startedAt = Date.now()
  const refreshedAt = new WeakMap<Root, number>()
  catalog.on('refreshed', ({ root, milliseconds, isFailed }) => {
    const name = names()[catalog.roots.indexOf(root)]
    // A root that is being added is not in the catalog yet.
    if (name === undefined) return
    refreshes.observe({ root: name }, milliseconds / 1_000)
    if (isFailed) failures.inc({ root: name })
    else refreshedAt.set(root, Date.now())
  })
  const ofRoots = (name: string, help: string, value: (root: Root) => number): void => {
    const values = () => {
      const labels = names()
      return catalog.roots.map((root, index) => [labels[index] ?? '', value(root)] as const)
    }
    rows('gauge', `skillserve_${name}`, ['root'], help, values)
  }
  ofRoots('skills', 'Skills in a root', ({ folders }) => folders.size)
  ofRoots('skills_invalid', 'Skills in a root that have an error',
    (root) => [...catalog.skillsIn(root).values()].filter(({ valid }) => !valid).length)
  ofRoots('root_available', '1 for a root that is there and can be read',
    ({ failure }) => Number(failure === undefined))
  ofRoots('last_refresh_timestamp_seconds', 'End of the last comparison with the disk that succeeded',
    (root) => (refreshedAt.get(root) ?? startedAt) / 1_000)
  ofRoots('watcher_healthy', '1 while changes cause events, or the root is polled',
    (root) => Number(refresher.isWatching(root)))
  rows('gauge', 'skillserve_catalog_generation', [], 'Goes up with each change of the catalog',
    () => skills.generation)
  let revisionNow: () => string | undefined = () => undefined
  rows('gauge', 'skillserve_catalog_revision', [], 'The first 12 hexadecimal digits of the revision of the catalog, ' +
    'as a number: equal at replicas of equal content. None while it is not known', () => {
    const revision = revisionNow()?.slice(0, REVISION_DIGITS)
    return revision === undefined ? undefined : Number.parseInt(revision, 16)
  })
  const ofCache = (type: 'counter' | 'gauge', name: string, help: string, key: 'bytes' | 'hits' | 'misses'): void => {
    rows(type, `skillserve_cache_${name}`, ['cache'], help, () => [['contents', catalog.files.usage[key]]])
  }
  ofCache('gauge', 'bytes', 'Memory for contents of files', 'bytes')
  ofCache('counter', 'hits_total', 'Files that were found in memory', 'hits')
  ofCache('counter', 'misses_total', 'Files that were read', 'misses')

  const ofSources = (name: string, labels: string[], help: string, read: (source: SourceStatus) => Row): void => {
    const known = () => (readings.sources?.() ?? []).map(read).filter((row) => !Number.isNaN(row.at(-1)))
    rows('gauge', `skillserve_source_${name}_timestamp_seconds`, labels, help, known)
  }
  ofSources('checked', ['source'], 'Last check of a source that succeeded',
    ({ name, checked_at: at }) => [name, seconds(at)])
  ofSources('changed', ['source'], 'Since when the revision of a source is served',
    ({ name, changed_at: at }) => [name, seconds(at)])
  ofSources('failing_since', ['source', 'code'], 'Since when a source fails, and with which error; no series while ' +
    'it does not', ({ name, error, failing_since: at }) => [name, error?.code ?? '', seconds(at)])
  rows('counter', 'skillserve_auth_failures_total', ['reason'], 'Refused callers: missing, invalid, expired, ' +
    'audience, scope, or issuer for keys that cannot be read', readings.authFailures)
  rows('counter', 'skillserve_rate_limited_total', ['rule'], 'Refusals of callers past a limit: units or streams. ' +
    'Calls in a batch count one by one', readings.limited)
  rows('gauge', 'skillserve_unreachable_issuers', [], 'Issuers of tokens whose keys could not be read at the last ' +
    'attempt', readings.unreachableIssuers)
  rows('counter', 'skillserve_limits_store_failures_total', [], 'How often the shared rate-limit store could ' +
    'not be reached, or answered with an error', readings.limitsStoreFailures)
  rows('counter', 'skillserve_audit_dropped_total', [], 'Lines of the audit log that were lost: must stay 0',
    readings.auditDropped)
  rows('counter', 'skillserve_log_dropped_total', [], 'Log lines that standard output was too slow for',
    readings.logDropped)
  rows('gauge', 'skillserve_build_info', ['version', 'node'], 'Always 1', () => [[version, process.version, 1]])

  const observer: Observer = {
    init (_skillsOf, revision) { revisionNow = revision },

    onRequest ({ method }) {
      active.inc({ http_request_method: methodName(method) })
    },

    onStream (request) {
      const open = apiOf(request) === 'rest' ? eventStreams : mcpStreams
      streams.set(request, open)
      open.inc()
    },

    onResponse (request, _reply, { milliseconds, status, bytes = 0 }) {
      const { method, routeOptions: { url: route = 'unmatched' } } = request
      const labels = { http_request_method: methodName(method) }
      active.dec(labels)
      streams.get(request)?.dec()
      durations.observe({ ...labels, http_route: route, http_response_status_code: status }, milliseconds / 1_000)
      if (bytes > 0) bodyBytes.inc({ http_route: route }, bytes)
      if (status === 503 && request.problemCode === 'overloaded') shed.inc()
      // A HEAD is no read: nobody gets the bytes. A 304 is one: the client has them.
      if (method !== 'HEAD' && (status < 300 || status === 304)) countRead(readOfRequest(request))
    },

    onCall (call, result, outcome) {
      toolCalls.inc({ tool: call.tool?.name ?? '_unknown', dialect: call.dialect, outcome: result })
      if (result === 'ok') countRead(readOfCall(call, outcome))
    },

    onOperation (operation) {
      const start = performance.now()
      return ({ error = '' }) => {
        const labels = { mcp_method_name: operationName(operation.method), error_type: error }
        operations.observe(labels, (performance.now() - start) / 1_000)
        if (error === '') countRead(readOfOperation(operation))
      }
    }
  }
  return { registry, observer }
}

/** Seconds since 1970; NaN for undefined. */
function seconds (time: string | undefined): number {
  return Date.parse(time ?? '') / 1_000
}
