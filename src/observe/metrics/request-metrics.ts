import type { FastifyReply, FastifyRequest } from 'fastify'
import { LISTEN, type ObservedOperation, type Observer, type OperationEnd, type ResponseEnd } from '../../http/observer.ts'
import { problemCodeOf } from '../../http/problem.ts'
import { operationName, OTHER } from '../operations.ts'
import { Counter, type CounterSeries, Histogram, type HistogramSeries, type Metric, Reading } from './instruments.ts'

const METHODS = ['GET', 'HEAD', 'POST', 'OPTIONS', 'PUT', 'DELETE', 'PATCH', 'CONNECT', 'TRACE', 'QUERY'] as const

/** Label of requests that no route took. */
const UNMATCHED = 'unmatched'

/** The series of a route: by method and status, and the bytes of bodies. */
interface RouteSeries {
  readonly durations: Map<number, HistogramSeries>
  readonly bytes: CounterSeries
}

/** Metrics of requests, tool calls and MCP operations. Labels are never a caller's text: random URLs add no series. */
export class RequestMetrics implements Observer {
  readonly useRevision: NonNullable<Observer['useRevision']>
  readonly #durations = new Histogram({ help: 'Duration of HTTP requests.', labels: ['http_request_method', 'http_route', 'http_response_status_code'] })
  readonly #bodyBytes = new Counter({ help: 'Bytes of response bodies, by Content-Length.', labels: ['http_route'] })
  readonly #toolCalls = new Counter({ help: 'Calls of tools. A call that fails is an HTTP 200: outcome is ok, error or refused.', labels: ['tool', 'dialect', 'outcome'] })
  readonly #operations = new Histogram({ help: 'Duration of MCP requests.', labels: ['mcp_method_name', 'error_type'] })
  readonly #shed = new Counter({ help: 'Requests that were answered with 503 overloaded.' })
  readonly #active = new Map<string, number>(METHODS.map((method) => [method, 0]))
  readonly #openStreams = { events: 0, mcp: 0 }
  readonly #subscriptions = new WeakSet<FastifyRequest>()
  #openSubscriptions = 0
  /** Undefined for a route that is not counted: a scrape is no use of the service. */
  readonly #byRoute = new Map<string | undefined, RouteSeries | undefined>()

  readonly table: Readonly<Record<string, Metric>> = {
    http_server_request_duration_seconds: this.#durations,
    http_server_active_requests: new Reading('gauge', { help: 'Requests that are being answered.', labels: ['http_request_method'] }, () => this.#activeByMethod()),
    http_server_response_body_size_bytes_total: this.#bodyBytes,
    skillserve_tool_calls_total: this.#toolCalls,
    mcp_server_operation_duration_seconds: this.#operations,
    skillserve_event_streams: new Reading('gauge', { help: 'Open streams of GET /events.' }, () => this.#openStreams.events),
    skillserve_mcp_streams: new Reading('gauge', { help: 'Open streams of MCP.' }, () => this.#openStreams.mcp + this.#openSubscriptions),
    skillserve_overload_refusals_total: this.#shed
  }

  /** @param useRevision what is done with the revision of the whole catalog, which observers get */
  constructor (useRevision: RequestMetrics['useRevision']) {
    this.useRevision = useRevision
  }

  onRequest ({ method, routeOptions: { url: route, config: { streams } } }: FastifyRequest): void {
    if (this.#seriesOf(route) === undefined) return
    this.#active.set(method, (this.#active.get(method) ?? 0) + 1)
    if (streams !== undefined && method === 'GET') this.#openStreams[streams]++
  }

  onResponse (request: FastifyRequest, _reply: FastifyReply, { milliseconds, status, bytes }: ResponseEnd): void {
    const { method, routeOptions: { url: route, config: { streams } } } = request
    const series = this.#seriesOf(route)
    if (series === undefined) return
    this.#active.set(method, (this.#active.get(method) ?? 1) - 1)
    if (streams !== undefined && method === 'GET') this.#openStreams[streams]--
    else if (this.#openSubscriptions > 0 && this.#subscriptions.delete(request)) this.#openSubscriptions--
    this.#durationsOf(method, route, series, status).observe(milliseconds / 1000)
    if (bytes !== undefined) series.bytes.value += bytes
    if (status === 503 && problemCodeOf(request) === 'overloaded') this.#shed.of().value++
  }

  onCall ({ tool, dialect }: Parameters<Observer['onCall']>[0]): ReturnType<Observer['onCall']> {
    return (result) => { this.#toolCalls.of(tool?.name ?? '_unknown', dialect, result).value++ }
  }

  onOperation ({ method, origin }: ObservedOperation): (end: OperationEnd) => void {
    const start = performance.now()
    if (method === LISTEN) {
      this.#subscriptions.add(origin)
      this.#openSubscriptions++
    }
    return ({ error = '' }) => { this.#operations.of(operationName(method), error).observe((performance.now() - start) / 1000) }
  }

  #seriesOf (route: string | undefined): RouteSeries | undefined {
    const known = this.#byRoute.get(route)
    if (known !== undefined || this.#byRoute.has(route)) return known
    const series = route?.endsWith('/metrics') === true
      ? undefined
      : { durations: new Map<number, HistogramSeries>(), bytes: this.#bodyBytes.of(route ?? UNMATCHED) }
    this.#byRoute.set(route, series)
    return series
  }

  #durationsOf (method: string, route: string | undefined, { durations: known }: RouteSeries, status: number): HistogramSeries {
    const methodIndex = METHODS.indexOf(method as (typeof METHODS)[number])
    const key = methodIndex * 1000 + status
    let series = known.get(key)
    if (series === undefined) known.set(key, series = this.#durations.of(METHODS[methodIndex] ?? OTHER, route ?? UNMATCHED, String(status)))
    return series
  }

  #activeByMethod (): Array<readonly [string, number]> {
    const known = METHODS.map((method) => [method, this.#active.get(method) ?? 0] as const)
    const all = [...this.#active.values()].reduce((sum, count) => sum + count, 0)
    const others = all - known.reduce((sum, [, count]) => sum + count, 0)
    return [...known, [OTHER, others] as const].filter(([method, count]) => count > 0 || method === 'GET')
  }
}
