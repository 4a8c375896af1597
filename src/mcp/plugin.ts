import type { ReadableStream } from 'node:stream/web'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { overloadError } from '../core/shared/errors.ts'
import { own } from '../core/shared/json.ts'
import type { SkillsOf, OnAccessEnd } from '../http/callers.ts'
import { MAX_EVENT_STREAM_BYTES } from '../http/limits.ts'
import { LISTEN } from '../http/observer.ts'
import type { RouteReads, Weight } from '../http/route-config.ts'
import { HttpProblem } from '../http/problem.ts'
import { isLoopbackOrigin } from '../http/request/hosts.ts'
import { parseTraceparent } from '../http/request/traceparent.ts'
import { EVENT_STREAM_MEDIA_TYPE, createEventStreams } from '../http/send/event-streams.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import { MAX_LISTEN_CHARACTERS, MAX_MCP_STREAMS } from './limits.ts'
import { boundedStream, followChanges } from './listen.ts'
import type { McpServerOptions } from './server.ts'
import { mainFileUri } from './skill-uri.ts'

interface McpOptions extends Omit<McpServerOptions, 'skills' | 'log'> {
  readonly skillsOf: SkillsOf
  readonly onAccessEnd: OnAccessEnd
  /** Whether the service listens on a loopback address, so that web pages of this machine may use MCP. */
  readonly loopbackOnly: boolean
  /** In lower case, as browsers send them. */
  readonly allowedOrigins: readonly string[]
}

/** Comment that begins a stream, so that its head is sent immediately. */
const OPENING = Buffer.from(': notifications follow\n\n')

const LIST_CHANGES = Buffer.concat([frameOf('resources/list_changed'), frameOf('prompts/list_changed')])

/** First protocol revision without a handshake and without streams opened by GET. */
const FIRST_MODERN_REVISION = '2026'

/** Serves MCP over Streamable HTTP at `/mcp`, without sessions (docs/mcp.md). The first message loads the SDK. */
export const mcpRoutes: FastifyPluginAsyncTypebox<McpOptions> = async function mcpRoutes (app, options) {
  const { skillsOf, onAccessEnd, loopbackOnly, allowedOrigins, ...server } = options
  const { registry, observer } = server
  const openStream = createEventStreams(app, { maxStreams: MAX_MCP_STREAMS, onAccessEnd, observer })
  const inProgress = new Set<Promise<unknown>>()
  /** Functions that end the open streams of `subscriptions/listen`. */
  const listening = new Map<FastifyReply, () => Promise<void>>()
  let isClosing = false

  // Open streams would keep the server from closing. Answers in progress are finished first.
  app.addHook('preClose', async () => {
    isClosing = true
    await Promise.allSettled(inProgress)
    for (const [{ raw }, close] of listening) {
      if (raw.writableNeedDrain) raw.destroy()
      await close()
    }
  })

  /**
   * Refuses web pages (MCP, "Streamable HTTP", security warning): programs send no `Origin`, browsers always do. Unlike
   * the SDK's hook, it compares scheme and port too, and does not load the SDK when the service starts.
   */
  const onRequest: onRequestHookHandler = ({ headers: { origin } }, _reply, next) => {
    const isAllowed = origin === undefined || allowedOrigins.includes(origin.toLowerCase()) ||
      (loopbackOnly && isLoopbackOrigin(origin))
    next(isAllowed ? undefined : new HttpProblem('origin_not_allowed'))
  }

  app.get('/mcp', {
    config: {
      reads: (request) => request.method === 'GET' ? { event: 'events.open', api: eraOf(request) } : callsIn(request),
      weight: ({ headers }) => takesStream(headers) ? 'stream' : undefined
    },
    schema: { hide: true },
    onRequest
  }, async (request, reply) => {
    // A browser that opens this URL could not use an endless answer.
    if (!takesStream(request.headers) || isModern(request.headers)) {
      throw new HttpProblem('method_not_allowed',
        'Send POST; GET is for the notifications of the 2025 revisions, with Accept: text/event-stream', {
          allow: 'POST'
        })
    }
    return openStream(request, reply, (send) => {
      send(OPENING)
      // No subscription is kept: each client gets an update of the main file of every changed skill.
      return followChanges(skillsOf(request).feed, {
        onLists () { send(LIST_CHANGES) },
        onSkill (name) { send(frameOf('resources/updated', { uri: mainFileUri(name) })) }
      })
    })
  })

  app.post('/mcp', {
    config: { reads: callsIn, weight: (request) => weightOf(request, registry) },
    // Hidden from the OpenAPI document: it would only say "any JSON-RPC message", and MCP describes itself.
    schema: { hide: true, body: { type: 'object', description: 'One JSON-RPC message; batches are not supported' } },
    onRequest
  }, async (request, reply) => {
    const method = own(request.body, 'method')
    // Its entries contain revisions, for which every file of every skill may have to be read.
    if (app.isUnderPressure() && method === 'skills/list') throw overloadError.busy()
    request.trace = parseTraceparent(own(own(own(request.body, 'params'), '_meta'), 'traceparent')) ?? request.trace
    if (method === LISTEN) admitStream(request.body)
    const { answerMessage } = await import('./handler.ts')
    const skills = skillsOf(request)
    const disconnected = new AbortController()
    const { response, close } = answerMessage(request, disconnected.signal, { ...server, skills, log: app.log })
    let stopWatch = (): void => {}
    if (method === LISTEN) {
      listening.set(reply, close)
      stopWatch = onAccessEnd(request, () => { reply.raw.destroy() })
    }
    reply.raw.once('close', () => {
      listening.delete(reply)
      stopWatch()
      disconnected.abort()
    })
    inProgress.add(response)
    try {
      return await send(request, reply, await response)
    } finally {
      inProgress.delete(response)
    }
  })

  function admitStream (message: unknown): void {
    if (isClosing) throw new HttpProblem('not_ready', 'The service is stopping')
    if (JSON.stringify(message).length > MAX_LISTEN_CHARACTERS) {
      throw new HttpProblem('bad_request', `${LISTEN} has at most ${MAX_LISTEN_CHARACTERS} characters`)
    }
    if (listening.size >= MAX_MCP_STREAMS) throw new HttpProblem('too_many_streams')
  }

  /** Sends JSON as a whole, so that it is compressed like other answers, and streams as they are produced. */
  async function send (request: FastifyRequest, reply: FastifyReply, response: Response): Promise<FastifyReply> {
    // Headers are set here: Fastify would set those of a `Response` after the hooks that decide on caching.
    // `Connection` is left to Node, since the client may have asked to close.
    for (const [name, value] of response.headers) if (name !== 'connection') reply.header(name, value)
    reply.code(response.status)
    const type = response.headers.get('content-type') ?? ''
    if (type.startsWith('application/json')) return reply.send(Buffer.from(await response.arrayBuffer()))
    if (type !== EVENT_STREAM_MEDIA_TYPE) return reply.send(response.body ?? undefined)
    observer?.onStream?.(request)
    const { body } = response
    if (body === null || !listening.has(reply)) return reply.send(body ?? undefined)
    return reply.send(boundedStream(body as ReadableStream<Uint8Array>, MAX_EVENT_STREAM_BYTES, () => {
      app.log.info('slow MCP client disconnected')
    }))
  }
}

function frameOf (name: string, params?: object): Buffer {
  const message = { jsonrpc: '2.0', method: `notifications/${name}`, ...params && { params } }
  return Buffer.from(`data: ${JSON.stringify(message)}\n\n`)
}

function weightOf ({ body }: FastifyRequest, registry: ToolRegistry): Weight | undefined {
  const method = own(body, 'method')
  if (method === LISTEN) return 'stream'
  const tool = method === 'tools/call' ? own(own(body, 'params'), 'name') : undefined
  return typeof tool === 'string' && registry.find(tool)?.isCostly === true ? 'costly' : undefined
}

/** Whether `Accept` names event streams. A browser accepts any type, and could not use an endless answer. */
function takesStream ({ accept = '' }: FastifyRequest['headers']): boolean {
  return accept.toLowerCase().includes(EVENT_STREAM_MEDIA_TYPE)
}

function callsIn (request: FastifyRequest): RouteReads {
  return { api: eraOf(request) }
}

function eraOf ({ headers }: FastifyRequest): string {
  return isModern(headers) ? 'mcp/modern' : 'mcp/legacy'
}

function isModern (headers: FastifyRequest['headers']): boolean {
  return String(headers['mcp-protocol-version'] ?? '') >= FIRST_MODERN_REVISION
}
