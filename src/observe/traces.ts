import type * as OpenTelemetry from '@opentelemetry/api'
import type { Attributes, Context, Span, SpanOptions, Tracer } from '@opentelemetry/api'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { REVISION_HEADER } from '../http/headers.ts'
import type { ObservedOperation, Observer, OperationEnd, ResponseEnd } from '../http/observer.ts'
import type { ClientOf } from '../http/request/client-address.ts'
import type { CallResult, ObservedCall } from '../tools/calls/observer.ts'
import type { ToolOutcome } from '../tools/tool.ts'
import { sha256 } from '../core/shared/digest.ts'
import { own } from '../core/shared/json.ts'
import type { Signal } from '../core/shared/signal.ts'
import type { RootManifest, RootRefresh } from '../core/skill-manager.ts'
import type { SkillStatus } from '../core/service.ts'
import { maskSecrets } from '../core/shared/text.ts'
import { operationName } from './operations.ts'
import { type Read, readOfCall, readOfOperation, readOfRequest } from './reads.ts'

type Api = typeof OpenTelemetry

const MAX_TEXT = 256

/** Faster manifests, in milliseconds, explain no slow answer and have no span. */
const SLOW_MANIFEST_MS = 10

/** Members of `_meta` that carry a context: https://modelcontextprotocol.io/seps/414 */
const CARRIED = ['traceparent', 'tracestate', 'baggage'] as const

const HEADERS = {
  keys: (carrier: FastifyRequest['headers']) => Object.keys(carrier),
  get: (carrier: FastifyRequest['headers'], key: string) => carrier[key]
}

interface TracesOptions {
  /** Of the service. */
  readonly version: string
  readonly clientOf: ClientOf
  readonly skills: TracedSkills
}

/** What is traced of the skills, beside the questions of callers. */
export interface TracedSkills {
  readonly rootNames: readonly string[]
  readonly status: Pick<SkillStatus, 'roots'>
  readonly refreshed: Signal<RootRefresh>
  readonly manifestMade: Signal<RootManifest>
}

/**
 * Spans by the conventions of OpenTelemetry: one for each request, each MCP request and each tool call. Made here and not by
 * patching modules, since the command line is a bundle. Names of MCP and GenAI attributes may still change: all are in this file.
 */
export class Traces implements Observer {
  readonly #api: Api
  readonly #tracer: Tracer
  readonly #clientOf: ClientOf
  readonly #requests = new WeakMap<object, Span>()
  /** Spans of MCP operations, by the request that they came in. */
  readonly #operations = new WeakMap<object, Span>()

  /** @param api found by the caller, so that nothing is loaded without an SDK */
  constructor (api: Api, { version, clientOf, skills }: TracesOptions) {
    this.#api = api
    this.#tracer = api.trace.getTracer('skillserve', version)
    this.#clientOf = clientOf
    skills.refreshed.subscribe((refresh) => { this.#onRefresh(refresh, skills) })
    skills.manifestMade.subscribe(({ root, skill, files, milliseconds }) => {
      if (milliseconds < SLOW_MANIFEST_MS) return
      this.#record('manifest.build', milliseconds, { 'skillserve.root': skills.rootNames[root] ?? '', 'skillserve.skill': cut(skill), 'skillserve.files': files }).end()
    })
  }

  onRequest (request: FastifyRequest): void {
    const { method, routeOptions: { url: route, config }, raw, headers } = request
    // Spans of probes would be most of a trace, and say nothing.
    if (config.load === 'probe') return
    this.#requests.set(request, this.#begin(route === undefined ? method : `${method} ${route}`, {
      kind: this.#api.SpanKind.SERVER,
      attributes: {
        'http.request.method': method,
        ...route !== undefined && { 'http.route': route },
        // A pattern stands for the path where the path is a secret.
        'url.path': route?.includes(':secret') === true ? route : cut(request.url.split('?', 1)[0] ?? ''),
        'url.scheme': 'http',
        'server.address': cut((headers.host ?? '').replace(/:\d*$/, '')),
        'client.address': this.#clientOf(raw),
        'user_agent.original': cut(headers['user-agent'] ?? '')
      }
    }, this.#contextIn(headers), request))
  }

  /** Streams last for hours, and a span is exported at its end. */
  onStream (request: FastifyRequest): void {
    this.#end(request, 200)
  }

  onResponse (request: FastifyRequest, reply: FastifyReply, { status }: ResponseEnd): void {
    this.#end(request, status, reply)
  }

  onOperation (operation: ObservedOperation): (end: OperationEnd) => void {
    const { method, params, id, origin } = operation
    const carrier = carriedIn(own(params, '_meta'))
    const requestSpan = this.#requests.get(origin)
    const isOwnTrace = carrier['traceparent'] !== undefined
    const parent = isOwnTrace ? this.#contextIn(carrier) : this.#below(origin)
    const target = own(params, 'name')
    const tool = method === 'tools/call' && typeof target === 'string' ? cut(target) : undefined
    const uri = own(params, 'uri')
    const version = origin.headers['mcp-protocol-version']
    const span = this.#begin(operationName(method), {
      kind: this.#api.SpanKind.SERVER,
      attributes: {
        'mcp.method.name': cut(method),
        ...version !== undefined && { 'mcp.protocol.version': cut(String(version)) },
        ...tool !== undefined && { 'gen_ai.tool.name': tool, 'gen_ai.operation.name': 'execute_tool' },
        ...id !== undefined && { 'jsonrpc.request.id': cut(String(id)) },
        ...typeof uri === 'string' && { 'mcp.resource.uri': cut(uri) },
        ...ofSkill(readOfOperation(operation))
      },
      links: isOwnTrace && requestSpan !== undefined ? [{ context: requestSpan.spanContext() }] : []
    }, parent, origin)
    this.#operations.set(origin, span)
    return ({ error }) => {
      if (error !== undefined) span.setAttribute('error.type', error)
      if (error?.startsWith('-') === true) span.setAttribute('rpc.response.status_code', error)
      span.end()
    }
  }

  onCall (call: ObservedCall): (result: CallResult, outcome: ToolOutcome) => void {
    const { tool, dialect, id, origin } = call
    const name = tool?.name ?? 'unknown'
    const request = origin as FastifyRequest | undefined
    // The tool of an MCP request is known by now, and is no text of the caller.
    if (tool !== undefined && origin !== undefined) this.#operations.get(origin)?.updateName(`tools/call ${name}`)
    const span = this.#tracer.startSpan(`execute_tool ${name}`, {
      kind: this.#api.SpanKind.INTERNAL,
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': name,
        ...id !== undefined && { 'gen_ai.tool.call.id': cut(String(id)) },
        'skillserve.dialect': dialect
      }
    }, this.#below(origin))
    return (result, outcome) => {
      span.setAttributes({ 'skillserve.outcome': result, ...request !== undefined && ofSkill(readOfCall(call, request, outcome)) })
      if (result !== 'ok') span.setAttribute('error.type', 'tool_error')
      span.end()
    }
  }

  /** Lines of the log and of the audit log carry the ids of the span. */
  #begin (name: string, options: SpanOptions, parent: Context, request: FastifyRequest): Span {
    const span = this.#tracer.startSpan(name, options, parent)
    const spanContext = span.spanContext()
    const { traceId, spanId, traceFlags } = spanContext
    if (this.#api.isSpanContextValid(spanContext)) request.trace = { traceId, spanId, flags: traceFlags.toString(16).padStart(2, '0') }
    return span
  }

  #end (request: FastifyRequest, status: number, reply?: FastifyReply): void {
    const span = this.#requests.get(request)
    if (span === undefined) return
    this.#requests.delete(request)
    const revision = reply?.getHeader(REVISION_HEADER)
    span.setAttributes({ 'http.response.status_code': status, ...ofSkill(readOfRequest(request)), ...typeof revision === 'string' && { 'skillserve.revision': revision }, ...ofView(request) })
    if (status >= 500) span.setAttribute('error.type', String(status)).setStatus({ code: this.#api.SpanStatusCode.ERROR })
    span.end()
  }

  /** A span for each comparison that found something, or failed: the others say as little as probes do. */
  #onRefresh ({ root, milliseconds, isFailed, differences }: RootRefresh, { rootNames, status }: TracedSkills): void {
    if (differences === 0 && !isFailed) return
    const span = this.#record('catalog.refresh', milliseconds, {
      'skillserve.root': rootNames[root] ?? '', 'skillserve.skills': status.roots[root]?.skills ?? 0, 'skillserve.differences': differences
    })
    if (isFailed) span.setAttribute('error.type', 'refresh_failed').setStatus({ code: this.#api.SpanStatusCode.ERROR })
    span.end()
  }

  /** A span in a trace of its own for work that ends now: no caller waits for it alone. */
  #record (name: string, milliseconds: number, attributes: Attributes): Span {
    return this.#tracer.startSpan(name, { kind: this.#api.SpanKind.INTERNAL, root: true, startTime: Date.now() - milliseconds, attributes })
  }

  #contextIn (headers: FastifyRequest['headers']): Context {
    const { context, propagation } = this.#api
    return propagation.extract(context.active(), headers, HEADERS)
  }

  #below (origin: object | undefined): Context {
    const { context, trace } = this.#api
    const span = origin && (this.#operations.get(origin) ?? this.#requests.get(origin))
    return span === undefined ? context.active() : trace.setSpan(context.active(), span)
  }
}

function ofSkill (read: Read | undefined): { readonly 'skillserve.skill'?: string } {
  return read?.skill === undefined ? {} : { 'skillserve.skill': cut(read.skill) }
}

/** A number in place of the caller's groups, whose names may be personal. */
function ofView ({ principal }: FastifyRequest): { readonly 'skillserve.view'?: number } {
  return principal === undefined ? {} : { 'skillserve.view': Number.parseInt(sha256(principal.view).slice(7, 19), 16) }
}

function carriedIn (meta: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(CARRIED.flatMap((name) => {
    const text = own(meta, name)
    return typeof text === 'string' ? [[name, text]] : []
  }))
}

function cut (text: string): string {
  return maskSecrets(text).slice(0, MAX_TEXT)
}
