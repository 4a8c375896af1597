import { FastifyOtelInstrumentation } from '@fastify/otel'
import { type Context, context, propagation, type Span, SpanKind, trace } from '@opentelemetry/api'
import type { FastifyPluginAsync, FastifyRequest, onErrorHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { own } from '../core/shared/json.ts'
import { maskSecrets } from '../secrets.ts'
import type { ObservedOperation, Observer, OperationEnd } from '../http/observer.ts'
import { statusOf } from '../http/problem.ts'
import { clientOf } from '../http/request/client-address.ts'
import type { CallResult, ObservedCall } from '../tools/calls/observer.ts'
import type { ToolOutcome } from '../tools/tool.ts'
import { methodName, operationName, type Read, readOfCall, readOfOperation, readOfRequest } from './reads.ts'

const MAX_TEXT = 256

/** Spans of probes would be most of a trace. */
const PROBES = /\/(?:livez|readyz|metrics)(?:\?|$)/

/**
 * Spans for an OpenTelemetry SDK that `--import` has loaded: requests by @fastify/otel, and one for each tool call and
 * MCP operation. The names of GenAI and MCP attributes may still change: all are in this file.
 */
export class Traces implements Observer {
  /** Registered before all others. */
  readonly plugin: FastifyPluginAsync
  readonly #tracer
  /** Where the operation of an MCP request is in its trace. */
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
      // Its hook makes each error that of the span: https://github.com/fastify/otel/issues/91
      app.addHook('onRoute', (route) => { route.onError = [route.onError ?? []].flat().map(unlessClientError) })
    }, { name: 'traces' })
  }

  onOperation (operation: ObservedOperation): (end: OperationEnd) => void {
    const { method, params, id, origin } = operation
    // Its texts may carry a context: https://modelcontextprotocol.io/seps/414
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
    // The tool of an MCP request is known by now, and is not a text of the caller.
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

/** Calls a hook for errors of the service only: the status of a server's span is unset for 4xx. */
function unlessClientError (hook: onErrorHookHandler): onErrorHookHandler {
  return function (request, reply, error, done) {
    if (statusOf(error) < 500) done()
    else hook.call(this, request, reply, error, done)
  }
}

/** Replaces what may be a secret in the attributes of @fastify/otel, and adds those of the conventions. */
function describeRequest (span: Span, request: FastifyRequest): void {
  const { url, headers, routeOptions: { url: route } } = request
  const method = methodName(request.method)
  span.updateName(route === undefined ? method : `${method} ${route}`)
  span.setAttributes({
    'http.request.method': method,
    // A pattern stands for the path where the path is a secret.
    'url.path': route?.includes(':secret') === true ? route : cut(url.split('?', 1)[0]),
    'url.scheme': request.protocol,
    'server.address': cut((headers.host ?? '').replace(/:\d*$/, '')),
    'client.address': clientOf(request),
    'user_agent.original': cut(headers['user-agent']),
    ...ofSkill(readOfRequest(request))
  })
  noteTrace(span, request)
}

/** The lines of the log and of the audit log carry the ids of the span. */
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

function cut (value: unknown): string | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  return maskSecrets(String(value)).slice(0, MAX_TEXT)
}
