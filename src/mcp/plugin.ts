import type { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { lazyCode } from '../core/files/load-code.ts'
import { Lazy } from '../core/shared/async.ts'
import { PerSkills, type SkillsOf, type WhileAllowed } from '../http/callers.ts'
import type { ChangeFeed } from '../core/events/change-feed.ts'
import type { SkillService } from '../core/skill-source.ts'
import { LISTEN, type Observer, type RouteReads } from '../http/observer.ts'
import { overloadError } from '../core/shared/errors.ts'
import { HttpProblem } from '../http/problem.ts'
import { names } from '../http/request/accept.ts'
import { parseTraceparent } from '../http/request/traceparent.ts'
import type { Weight } from '../http/request/weight.ts'
import type { Shutdown } from '../http/connections/shutdown.ts'
import type { Load } from '../http/overload/load.ts'
import { createEventStreams, EVENT_STREAM_MEDIA_TYPE } from '../http/send/event-streams.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import { own } from '../core/shared/json.ts'
import type { createMcpDoor, McpDoor } from './handler.ts'
import { loadSchemas } from './sdk/load-schemas.ts'
import { MAX_MCP_STREAMS } from './limits.ts'
import { ListenStreams } from './changes/listen-streams.ts'
import { LIST_CHANGES, Notifications } from './changes/notifications.ts'
import type { OriginCheck } from './origin.ts'

interface McpDoorOptions {
  readonly skillsOf: SkillsOf
  readonly followedOf: SkillsOf
  readonly feeds: { of (skills: SkillService): Pick<ChangeFeed, 'subscribe'> }
  readonly whileAllowed: WhileAllowed
  readonly registry: ToolRegistry
  readonly version: string
  readonly observer?: Observer | undefined
  readonly checkOrigin: OriginCheck
  /** Whether the process has received a signal to stop. */
  readonly shutdown: Shutdown
  readonly load: Pick<Load, 'level'>
}

/** The headers that the SDK reads. It receives no others. */
const HEADERS = ['content-type', 'accept', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'mcp-session-id', 'last-event-id'] as const

/** The head of an answer goes out with its first bytes. */
const OPENING = Buffer.from(': notifications follow\n\n')

/** The first revision without a handshake, and without a stream that a GET opens. */
const FIRST_MODERN_REVISION = '2026'

/** The revisions before it, as the SDK knows them. A client that names none speaks one of them. */
const LEGACY_REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07']

/** The SDK needs a URL and reads no part of it. */
const URL_OF_DOOR = 'http://localhost/mcp'

const loadHandler = lazyCode(() => import('./handler.ts'))

/**
 * Loads the SDK, and Node's `fetch`, of which it takes `Request`. Whoever uses MCP pays for it: a quarter of the time of a start, and 16 MB.
 * Each part has a turn of the event loop, so that other requests wait 50 ms at most.
 */
async function loadMcp (): Promise<typeof createMcpDoor> {
  await loadSchemas()
  const { createMcpDoor: create, preloadSchemas } = await loadHandler()
  await nextTurn()
  preloadSchemas()
  await nextTurn()
  void globalThis.Request
  await nextTurn()
  return create
}

/** MCP over Streamable HTTP at `/mcp`, without sessions (docs/mcp.md). */
export const mcpDoor: FastifyPluginAsyncTypebox<McpDoorOptions> = async function mcpDoor (app, { checkOrigin, shutdown, load, skillsOf, followedOf, feeds, whileAllowed, registry, version, observer }) {
  const streams = createEventStreams(app, { maxStreams: MAX_MCP_STREAMS, shutdown, whileAllowed, observer })
  const notifications = new PerSkills((skills) => new Notifications(skills, feeds.of(skills)))
  const doors = new Lazy<PerSkills<McpDoor>>(async () => {
    const create = await loadMcp()
    return new PerSkills((skills) => create({ skills, feed: feeds.of(skills), registry, version, observer, log: app.log }))
  })
  const inProgress = new Set<Promise<Response>>()
  const listening = new ListenStreams({ onDrop: (bytes) => { app.log.info({ bytes }, 'a client that does not read its notifications was dropped') } })

  const stopLeaving = shutdown.endWhileLeaving(() => listening.ends, (end) => { end() })

  // An open stream would keep the server from closing. Answers in progress are sent first.
  app.addHook('preClose', async () => {
    stopLeaving()
    listening.refuse()
    await Promise.allSettled(inProgress)
    await Promise.all((await doors.peek())?.values().map((door) => door.close()) ?? [])
    await listening.cut()
  })

  function weightOfMessage ({ body }: FastifyRequest): Weight | undefined {
    const method = own(body, 'method')
    if (method === LISTEN) return 'stream'
    const tool = method === 'tools/call' ? own(own(body, 'params'), 'name') : undefined
    return typeof tool === 'string' && registry.find(tool)?.isCostly === true ? 'costly' : undefined
  }

  const checkRequestOrigin: onRequestHookHandler = (request, _reply, next) => { next(checkOrigin(request.headers.origin)) }

  app.get('/mcp', {
    config: {
      reads: (request) => request.method === 'GET' ? { event: 'events.open', door: eraOf(request) } : callsOf(request),
      streams: 'mcp',
      weight: ({ headers }) => takesStream(headers) ? 'stream' : undefined
    },
    schema: { hide: true },
    onRequest: checkRequestOrigin
  }, async (request, reply) => {
    if (!opensStream(request)) throw new HttpProblem('method_not_allowed', 'MCP takes POST; the stream of notifications of the 2025 revisions has Accept: text/event-stream', { allow: 'POST' })
    const revision = request.headers['mcp-protocol-version']
    if (typeof revision === 'string' && !LEGACY_REVISIONS.includes(revision)) throw new HttpProblem('bad_request', `MCP-Protocol-Version is one of ${LEGACY_REVISIONS.join(', ')}`)
    return streams.open(request, reply, (send, isMoved) => {
      send(isMoved ? LIST_CHANGES : OPENING)
      return notifications.of(followedOf(request)).subscribe(send)
    })
  })

  app.post('/mcp', {
    config: { reads: callsOf, bodyWeight: weightOfMessage },
    // Not in the OpenAPI document: the one operation would be "any JSON-RPC message", and MCP describes itself.
    schema: { hide: true, body: { type: 'object', description: 'One JSON-RPC message; batches are not taken' } },
    onRequest: checkRequestOrigin
  }, async (request, reply) => {
    // Entries have revisions, for which every file of a skill may have to be read.
    if (load.level > 0 && own(request.body, 'method') === 'skills/list') throw overloadError.busy()
    request.trace = parseTraceparent(own(own(own(request.body, 'params'), '_meta'), 'traceparent')) ?? request.trace
    const isListening = own(request.body, 'method') === LISTEN
    const leave = isListening ? listening.admit(reply.raw, JSON.stringify(request.body).length) : () => {}
    const disconnected = new AbortController()
    // An answer that has begun is finished under the policy before.
    const stopWatch = isListening ? whileAllowed(request, () => { reply.raw.destroy() }) : () => {}
    // One listener for all: of more than ten, Node warns that they may be a leak.
    reply.raw.once('close', () => {
      leave()
      stopWatch()
      disconnected.abort()
    })
    const [skills, followed] = [skillsOf(request), followedOf(request)]
    const answer = doors.get().then((perSkills) => perSkills.of(followed).fetch(toWebRequest(request, disconnected.signal), request, skills))
    inProgress.add(answer)
    try {
      const response = await answer
      const isStream = response.headers.get('content-type') === EVENT_STREAM_MEDIA_TYPE
      if (isStream) observer?.onStream?.(request)
      return await send(reply, response, isStream && isListening ? (body) => listening.bound(body, own(request.body, 'id')) : undefined)
    } finally {
      inProgress.delete(answer)
    }
  })
}

/** JSON goes out whole, and so is compressed like every other answer; a stream goes out as it comes. */
async function send (reply: FastifyReply, response: Response, bound: ((body: ReadableStream<Uint8Array>) => Readable) | undefined): Promise<FastifyReply> {
  // Set here, since Fastify would set them after the hooks that decide on caching.
  // Node decides whether the connection stays open: the client may have asked to close it.
  for (const [name, value] of response.headers) if (name !== 'connection') reply.header(name, value)
  reply.code(response.status)
  if (bound !== undefined && response.body !== null) return reply.send(bound(response.body as ReadableStream<Uint8Array>))
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  return reply.send(isJson ? Buffer.from(await response.arrayBuffer()) : response.body ?? undefined)
}

/** A browser that opens the address has no use for an endless answer, and the newer revision has no such stream. */
function opensStream ({ headers }: FastifyRequest): boolean {
  return takesStream(headers) && !isModern(headers)
}

function takesStream ({ accept }: FastifyRequest['headers']): boolean {
  return names(accept, EVENT_STREAM_MEDIA_TYPE)
}

function callsOf (request: FastifyRequest): RouteReads {
  return { callsOf: 'mcp', door: eraOf(request) }
}

function eraOf ({ headers }: FastifyRequest): string {
  return isModern(headers) ? 'mcp/modern' : 'mcp/legacy'
}

function isModern (headers: FastifyRequest['headers']): boolean {
  return String(headers['mcp-protocol-version'] ?? '') >= FIRST_MODERN_REVISION
}

function toWebRequest (request: FastifyRequest, signal: AbortSignal): Request {
  const headers = new Headers({ 'x-request-id': request.id })
  for (const name of HEADERS) {
    const value = request.headers[name]
    if (typeof value === 'string') headers.set(name, value)
  }
  return new Request(URL_OF_DOOR, { method: 'POST', headers, signal })
}
