import { FastifyOtelInstrumentation } from '@fastify/otel'
import { type Context, context, propagation, type Span, SpanKind, trace } from '@opentelemetry/api'
import type { FastifyPluginAsync, FastifyRequest, onErrorHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { own } from '../core/shared/json.ts'
import type { ObservedOperation, Observer, OperationEnd } from '../http/observer.ts'
import { statusOf } from '../http/problem.ts'
import { clientOf } from '../http/request/client-address.ts'
import type { CallResult, ObservedCall } from '../tools/calls/observer.ts'
import type { ToolOutcome } from '../tools/tool.ts'
import { cut, methodName, operationName, type Read, readOfCall, readOfOperation, readOfRequest } from './reads.ts'

/** Requests without spans, which would outnumber all others. */
const PROBES = /\/(?:livez|readyz|metrics)(?:\?|$)/

/**
 * Makes spans for an OpenTelemetry SDK that `--import` has loaded: @fastify/otel makes those of requests, this class
 * those of tool calls and MCP operations. The names of GenAI and MCP attributes may still change: all are in this file.
 */
export class Traces implements Observer {
  /** Has to be registered before all other plugins. */
  readonly plugin: FastifyPluginAsync
  readonly #tracer
  /** The spans of MCP operations, by their request: tool calls become their children. */
  readonly #operations = new WeakMap<object, { readonly span: Span, readonly context: Context }>()

  constructor (version: string) {
    this.#tracer = trace.getTracer('skillserve', version)
    const instrumentation = new FastifyOtelInstrumentation({
      instrumentHooks: false,
      instrumentHandler: false,
      recordExceptions: false,
      ignorePaths: ({ url }) => PROBES.test(url),
      requestHook: describeRequest
    })
    this.plugin = fp(async (app) => {
      await app.register(instrumentation.plugin())
      // Its hook marks the span of every error as failed: https://github.com/fastify/otel/issues/91
      app.addHook('onRoute', (route) => { route.onError = [route.onError ?? []].flat().map(unlessClientError) })
    }, { name: 'traces' })
  }

  onOperation (operation: ObservedOperation): (end: OperationEnd) => void {
    const { method, params, id, origin } = operation
    // `_meta` may carry the trace context: https://modelcontextprotocol.io/seps/414
    const texts = Object.entries(own(params, '_meta') ?? {}).filter(([, value]) => typeof value === 'string')
    const carrier = Object.fromEntries(texts)
    const isOwnTrace = carrier['traceparent'] !== undefined
    const parent = isOwnTrace ? propagation.extract(context.active(), carrier) : contextOf(origin)
    const requestSpan = trace.getSpan(contextOf(origin))
    const [name, uri] = [own(params, 'name'), own(params, 'uri')]
    const span = this.#tracer.startSpan(operationName(method), {
      kind: SpanKind.SERVER,
      attributes: {
        'mcp.method.name': cut(method),
        'mcp.protocol.version': cut(origin.headers['mcp-protocol-version']),
        ...method === 'tools/call' && { 'gen_ai.tool.name': cut(name), 'gen_ai.operation.name': 'execute_tool' },
        'jsonrpc.request.id': cut(id),
        'mcp.resource.uri': cut(uri),
        ...ofSkill(readOfOperation(operation))
      },
      links: isOwnTrace && requestSpan !== undefined ? [{ context: requestSpan.spanContext() }] : []
    }, parent)
    this.#operations.set(origin, { span, context: trace.setSpan(parent, span) })
    noteTrace(span, origin)
    return ({ error }) => {
      if (error !== undefined) span.setAttribute('error.type', error)
      if (error?.startsWith('-') === true) span.setAttribute('rpc.response.status_code', error)
      span.end()
    }
  }

  onCall (call: ObservedCall, result: CallResult, outcome: ToolOutcome): void {
    const { tool, dialect, id, origin, start } = call
    const name = tool?.name ?? 'unknown'
    const request = origin as FastifyRequest | undefined
    const operation = request && this.#operations.get(request)
    // The name of a known tool is no text of the caller.
    if (tool !== undefined) operation?.span.updateName(`tools/call ${name}`)
    this.#tracer.startSpan(`execute_tool ${name}`, {
      startTime: start,
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': name,
        'gen_ai.tool.call.id': cut(id),
        'skillserve.dialect': dialect,
        'skillserve.outcome': result,
        ...ofSkill(readOfCall(call, outcome)),
        ...result !== 'ok' && { 'error.type': 'tool_error' }
      }
    }, operation?.context ?? (request === undefined ? context.active() : contextOf(request))).end()
  }
}

/** Makes a hook run for errors of the service only: the status of a server's span stays unset for 4xx. */
function unlessClientError (hook: onErrorHookHandler): onErrorHookHandler {
  return function (request, reply, error, done) {
    if (statusOf(error) < 500) done()
    else hook.call(this, request, reply, error, done)
  }
}

/** Replaces attributes of @fastify/otel that may contain a secret, and adds those of the conventions. */
function describeRequest (span: Span, request: FastifyRequest): void {
  const { url, headers, routeOptions: { url: route } } = request
  const method = methodName(request.method)
  span.updateName(route === undefined ? method : `${method} ${route}`)
  span.setAttributes({
    'http.request.method': method,
    // The pattern of the route, where the path has a secret.
    'url.path': route?.includes(':secret') === true ? route : cut(url.split('?', 1)[0]),
    'url.scheme': request.protocol,
    'server.address': cut((headers.host ?? '').replace(/:\d*$/, '')),
    'client.address': clientOf(request),
    'user_agent.original': cut(headers['user-agent']),
    ...ofSkill(readOfRequest(request))
  })
  noteTrace(span, request)
}

/** Notes the ids of the span for the lines of the log and of the audit log. */
function noteTrace (span: Span, request: FastifyRequest): void {
  const { traceId, spanId, traceFlags } = span.spanContext()
  request.trace = { traceId, spanId, flags: traceFlags.toString(16).padStart(2, '0') }
}

function contextOf (request: FastifyRequest): Context {
  return request.opentelemetry().context ?? context.active()
}

function ofSkill (read: Read | undefined): { readonly 'skillserve.skill'?: string | undefined } {
  return { 'skillserve.skill': cut(read?.skill) }
}
