import type { FastifyRequest } from 'fastify'
import { createMcpHandler, type McpRequestContext, ProtocolErrorCode, Server } from '@modelcontextprotocol/server'
import type { ChangeFeed } from '../core/events/change-feed.ts'
import { MAX_MCP_STREAMS } from './limits.ts'
import type { CoreLog } from '../core/ground/log.ts'
import type { SkillService } from '../core/skill-source.ts'
import { MAX_LOG_LINE_CHARACTERS } from '../tools/limits.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import type { Observer } from '../http/observer.ts'
import { own } from '../core/ground/json.ts'
import { notifyOfChanges } from './changes/list-changes.ts'
import { withFaults } from './faults.ts'
import { FollowedFiles } from './changes/followed-files.ts'
import { EXTENSION_PARAMS, refuseParams } from './params.ts'
import { getPrompt, listPrompts } from './methods/prompts.ts'
import { acceptSubscription, listResources, readDirectory, readResource, resourceTemplates } from './methods/resources.ts'
import { getSkillEntry, listSkillEntries } from './methods/skill-entries.ts'
import { callTool, listTools } from './methods/tools.ts'
import { observeOperation, type Operation } from './operation.ts'

export interface McpOptions {
  readonly skills: SkillService
  readonly feed: Pick<ChangeFeed, 'subscribe'>
  readonly registry: ToolRegistry
  readonly log: CoreLog
  /** Of the service. */
  readonly version: string
  readonly observer?: Observer | undefined
}

/** MCP on web standards, without an HTTP framework. */
export interface McpDoor {
  /** Answers one POST of any protocol revision; the request's signal aborts when the answer has ended. */
  fetch (request: Request, origin: FastifyRequest): Promise<Response>
  /** Ends the open streams. */
  close (): Promise<void>
}

/** The header that carries the id of the HTTP request to the handlers. */
const REQUEST_ID_HEADER = 'x-request-id'

/** The request whose answer is a stream of notifications. */
const LISTEN = 'subscriptions/listen'

const NOTIFIED = { listChanged: true }

const SKILLS_EXTENSION = 'io.modelcontextprotocol/skills'

const INSTRUCTIONS = 'Agent Skills: folders of instructions and files. list_skills names them, get_skill reads the SKILL.md of one, ' +
  'read_file_in_skill reads the files that it refers to; search_skills finds skills by words, list_skill_files names the files of one. The same files are resources: skill://<name>/<path>.'

/** Results are not kept: the next request sees every change, and callers behind one proxy may see different skills. */
const MODERN_CACHE = { ttlMs: 0, cacheScope: 'private' } as const

/** Makes the door. Answers are read from `skills` at the time of the request; only streams are kept between requests. */
export function createMcpDoor (options: McpOptions): McpDoor {
  const { skills, feed, registry, log, observer } = options
  const operations = new WeakMap<Request, Operation>()

  // The SDK needs a server for each request: a table of handlers that knows the protocol revision.
  function createServer ({ era, requestInfo }: McpRequestContext): Server {
    const isModern = era === 'modern'
    const server = new Server({ name: 'skillserve', version: options.version }, {
      capabilities: {
        // What the tools are does not change; what a modern client hears of their descriptions is `notifyOfChanges`'.
        tools: isModern ? NOTIFIED : {},
        prompts: NOTIFIED,
        resources: { ...NOTIFIED, subscribe: true },
        extensions: { [SKILLS_EXTENSION]: { directoryRead: true } }
      },
      instructions: INSTRUCTIONS
    })
    const fields = { reqId: requestInfo?.headers.get(REQUEST_ID_HEADER) ?? undefined }
    const cache = isModern ? MODERN_CACHE : {}
    const operation = requestInfo && operations.get(requestInfo)
    const guard = <Result>(run: () => Promise<Result>) => {
      const guarded = () => withFaults(run, (err) => {
        log.warn({ ...fields, err }, 'an MCP request met an error that its caller is not told')
      })
      return operation === undefined ? guarded() : operation.run(guarded)
    }

    server.setRequestHandler('tools/list', () => guard(async () => listTools(registry, skills)))
    server.setRequestHandler('tools/call', ({ params: { name, arguments: args } }) =>
      guard(() => callTool(name, args, { skills, registry, log, fields, observer, dialect: 'mcp', origin: operation?.origin })))

    server.setRequestHandler('prompts/list', ({ params }) => guard(async () => {
      const { items, ...next } = await listPrompts(skills, params?.cursor)
      return { prompts: items, ...next }
    }))
    server.setRequestHandler('prompts/get', ({ params: { name, arguments: args } }) => guard(() => getPrompt(skills, name, args?.['task'])))

    server.setRequestHandler('resources/list', ({ params }) => guard(async () => {
      const { items, ...next } = await listResources(skills, params?.cursor)
      return { resources: items, ...next }
    }))
    server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates }))
    server.setRequestHandler('resources/read', ({ params: { uri } }) => guard(() => readResource(skills, uri)))
    if (!isModern) {
      server.setRequestHandler('resources/subscribe', ({ params: { uri } }) => guard(async () => acceptSubscription(uri)))
      server.setRequestHandler('resources/unsubscribe', () => ({}))
    }

    server.setRequestHandler('skills/list', { params: EXTENSION_PARAMS.page }, ({ cursor }) => guard(async () => {
      const { items, ...next } = await listSkillEntries(skills, cursor)
      return { skills: items, ...next, ...cache }
    }))
    server.setRequestHandler('skills/get', { params: EXTENSION_PARAMS.skill }, ({ uri }) => guard(async () =>
      ({ skill: await getSkillEntry(skills, uri), ...cache })))
    server.setRequestHandler('resources/directory/read', { params: EXTENSION_PARAMS.folder }, ({ uri, cursor }) => guard(async () => {
      const { items, ...next } = await readDirectory(skills, uri, cursor)
      return { resources: items, ...next, ...cache }
    }))
    return server
  }

  const handler = createMcpHandler(createServer, {
    maxSubscriptions: MAX_MCP_STREAMS,
    // The SDK's messages quote the request.
    onerror: ({ message }) => { log.info({ reason: message.slice(0, MAX_LOG_LINE_CHARACTERS) }, 'an MCP request was refused') }
  })
  let streams = 0
  let stopNotifying = () => {}

  /** Follows the catalog while a stream is open: nobody else hears of changes. */
  function countStream (signal: AbortSignal): void {
    if (signal.aborted) return
    if (streams++ === 0) stopNotifying = notifyOfChanges(skills, registry, handler.notify)
    signal.addEventListener('abort', () => { if (--streams === 0) stopNotifying() }, { once: true })
  }

  const files = new FollowedFiles({
    skills,
    feed,
    onChange: (uri) => { handler.notify.resourceUpdated(uri) },
    onError: (err) => { log.warn({ err }, 'a change could not be told to MCP streams') }
  })

  return {
    async fetch (request, origin) {
      const { body } = origin
      const operation = observer && observeOperation(observer, body, origin)
      if (operation !== undefined) operations.set(request, operation)
      const refusal = refuseParams(body)
      if (refusal === undefined && own(body, 'method') === LISTEN) countStream(request.signal)
      if (refusal === undefined) await files.follow(subscribedUris(body), request.signal)
      const response = refusal ?? await handler.fetch(request, { parsedBody: body })
      operation?.answered(response, refusal === undefined ? undefined : String(ProtocolErrorCode.InvalidParams))
      return response
    },
    async close () {
      stopNotifying()
      files.close()
      await handler.close()
    }
  }
}

/** The URIs that a stream is to follow: the SDK does not report them. A message that does not fit is refused by the SDK afterwards. */
function subscribedUris (body: unknown): readonly string[] {
  if (own(body, 'method') !== LISTEN) return []
  const uris = own(own(own(body, 'params'), 'notifications'), 'resourceSubscriptions')
  return Array.isArray(uris) ? uris.filter((uri) => typeof uri === 'string') : []
}
