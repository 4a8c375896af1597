import type { FastifyRequest } from 'fastify'
import { createMcpHandler, type McpHttpHandler, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { toWellFormed } from '../core/shared/json.ts'
import { MAX_LOG_LINE_CHARACTERS } from '../tools/limits.ts'
import { busFor } from './listen.ts'
import { checkMessage } from './message.ts'
import { observeOperation } from './operation.ts'
import { createMcpServer, type McpServerOptions } from './server.ts'

/** The headers that the SDK reads; no others are passed to it. */
const HEADERS = [
  'content-type', 'accept', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'mcp-session-id', 'last-event-id'
] as const

/** The SDK needs a URL and reads no part of it. */
const ENDPOINT = 'http://localhost/mcp'

/**
 * Answers one POST of any protocol revision. The service is stateless, so each request gets its own handler.
 * @param signal aborts when the client has disconnected
 */
export function answerMessage (request: FastifyRequest, signal: AbortSignal, options: McpServerOptions) {
  const { log, observer } = options
  const operation = observer && observeOperation(observer, request.body, request)
  // The SDK answers malformed messages, with the status that the protocol revision prescribes.
  const checked = checkMessage(request.body)
  const body = 'message' in checked ? checked.message : toWellFormed(request.body)
  const handler: McpHttpHandler = createMcpHandler(
    ({ era }) => createMcpServer(options, { isModern: era === 'modern', fields: { reqId: request.id }, operation }),
    {
      bus: busFor(body, options.skills.feed),
      // The messages of the SDK quote the request.
      onerror: ({ message }) => {
        log.info({ reason: message.slice(0, MAX_LOG_LINE_CHARACTERS) }, 'an MCP request was refused')
      }
    }
  )
  async function answer (): Promise<Response> {
    if ('error' in checked && checked.error.code === ProtocolErrorCode.InvalidParams) {
      operation?.answered(checked.error.code)
      return Response.json(checked)
    }
    const response = await handler.fetch(toWebRequest(request, signal), { parsedBody: body })
    operation?.answered(response.ok ? undefined : response.status)
    return response
  }
  return {
    /** Resolves when the response begins. */
    response: answer(),
    /** Ends a stream of `subscriptions/listen` with its result. */
    close: () => handler.close()
  }
}

function toWebRequest (request: FastifyRequest, signal: AbortSignal): Request {
  const headers = new Headers()
  for (const name of HEADERS) {
    const value = request.headers[name]
    if (typeof value === 'string') headers.set(name, value)
  }
  return new Request(ENDPOINT, { method: 'POST', headers, signal })
}
