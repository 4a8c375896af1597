import type { FastifyRequest } from 'fastify'
import { createMcpHandler, isJSONRPCRequest, ProtocolErrorCode } from '@modelcontextprotocol/server'
import type { ChangeFeed } from '../core/events/change-feed.ts'
import type { SkillService } from '../core/skill-source.ts'
import { MAX_MCP_STREAMS } from './limits.ts'
import { MAX_LOG_LINE_CHARACTERS } from '../tools/limits.ts'
import { own } from '../core/shared/json.ts'
import { LISTEN } from '../http/observer.ts'
import { onListChanges } from './changes/list-changes.ts'
import { FollowedFiles } from './changes/followed-files.ts'
import { refuseParams, refuseSubscriptions } from './params.ts'
import { observeOperation, type Operation } from './operation.ts'
import { createMcpServer, type McpServerOptions } from './server.ts'

/** Makes the schemas of all revisions, which the SDK would make within the turn of the first message. */
export { preloadSchemas } from '@modelcontextprotocol/server'

interface McpOptions extends McpServerOptions {
  readonly feed: Pick<ChangeFeed, 'subscribe'>
}

/** MCP on web standards, without an HTTP framework. */
export interface McpDoor {
  /**
   * Answers one POST of any protocol revision; the request's signal aborts when the answer has ended.
   * @param skills what the caller of this request sees
   */
  fetch (request: Request, origin: FastifyRequest, skills: SkillService): Promise<Response>
  /** Ends the open streams. */
  close (): Promise<void>
}

/** The header that carries the id of the HTTP request to the handlers. */
const REQUEST_ID_HEADER = 'x-request-id'

/** Makes the door. Only streams, which follow `skills`, are kept between requests. */
export function createMcpDoor (options: McpOptions): McpDoor {
  const { skills, feed, log, observer } = options
  const asked = new WeakMap<Request, { readonly skills: SkillService, readonly operation: Operation | undefined }>()

  const handler = createMcpHandler(({ era, requestInfo }) => {
    const question = requestInfo && asked.get(requestInfo)
    return createMcpServer({ ...options, skills: question?.skills ?? skills }, {
      isModern: era === 'modern',
      reqId: requestInfo?.headers.get(REQUEST_ID_HEADER) ?? undefined,
      operation: question?.operation
    })
  }, {
    maxSubscriptions: MAX_MCP_STREAMS,
    // The SDK's messages quote the request.
    onerror: ({ message }) => { log.info({ reason: message.slice(0, MAX_LOG_LINE_CHARACTERS) }, 'an MCP request was refused') }
  })
  let streams = 0
  let stopNotifying = () => {}

  function notifyStreams (): void {
    handler.notify.resourcesChanged()
    handler.notify.promptsChanged()
  }

  /** Follows the catalog while a stream is open: nobody else hears of changes. */
  function countStream (signal: AbortSignal): void {
    if (signal.aborted) return
    if (streams++ === 0) stopNotifying = onListChanges(skills, notifyStreams)
    signal.addEventListener('abort', () => { if (--streams === 0) stopNotifying() }, { once: true })
  }

  const files = new FollowedFiles({
    skills,
    feed,
    onChange: (uri) => { handler.notify.resourceUpdated(uri) },
    onError: (err) => { log.warn({ err }, 'a change could not be told to MCP streams') }
  })

  return {
    async fetch (request, origin, visible) {
      const { body } = origin
      const operation = observer && observeOperation(observer, body, origin)
      asked.set(request, { skills: visible, operation })
      const uris = subscribedUris(body)
      const refusal = refuseParams(body) ?? refuseSubscriptions(body, uris)
      if (refusal === undefined && own(body, 'method') === LISTEN) countStream(request.signal)
      if (refusal === undefined) await files.follow(uris, request.signal)
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
  if (own(body, 'method') !== LISTEN || !isJSONRPCRequest(body)) return []
  const uris = own(own(own(body, 'params'), 'notifications'), 'resourceSubscriptions')
  return Array.isArray(uris) ? uris.filter((uri) => typeof uri === 'string') : []
}
