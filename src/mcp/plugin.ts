import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import type { ChangeFeed } from '../core/events/change-feed.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import type { McpDoor } from './handler.ts'
import type { OriginCheck } from './origin.ts'

export interface McpDoorOptions {
  readonly skills: SkillManager
  readonly feed: Pick<ChangeFeed, 'subscribe'>
  readonly registry: ToolRegistry
  readonly version: string
  readonly checkOrigin: OriginCheck
}

/** All that the SDK looks at. Nothing else of a request goes further. */
const HEADERS = ['content-type', 'accept', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'mcp-session-id', 'last-event-id'] as const

/** The SDK wants a URL and looks at none of it. */
const URL_OF_DOOR = 'http://localhost/mcp'

/**
 * MCP over Streamable HTTP at `POST /mcp`, without sessions (docs/mcp.md). The SDK is loaded at the first request: it
 * would double the start of a service that may never need it.
 */
export const mcpDoor: FastifyPluginAsyncTypebox<McpDoorOptions> = async function mcpDoor (app, { checkOrigin, ...options }) {
  let loading: Promise<McpDoor> | undefined
  const underway = new Set<Promise<Response>>()

  async function load (): Promise<McpDoor> {
    try {
      const { createMcpDoor } = await import('./handler.ts')
      return createMcpDoor({ ...options, log: app.log })
    } catch (error) {
      // Whatever kept it from loading may pass, such as too many open files.
      loading = undefined
      throw error
    }
  }

  // Before the server closes: an open stream would hold it for ever. Answers that are owed are given first.
  app.addHook('preClose', async () => {
    await Promise.allSettled(underway)
    await (await loading)?.close()
  })

  app.post('/mcp', {
    // Not in the OpenAPI document: the one operation would be "any JSON-RPC message", and MCP describes itself.
    schema: { hide: true, body: { type: 'object', description: 'One JSON-RPC message; batches are not taken' } },
    onRequest: (request, _reply, next) => { next(checkOrigin(request.headers.origin)) }
  }, async (request, reply) => {
    const gone = new AbortController()
    reply.raw.once('close', () => { gone.abort() })
    const door = await (loading ??= load())
    const answer = door.fetch(toWebRequest(request, gone.signal), request.body)
    underway.add(answer)
    try {
      return reply.send(await answer)
    } finally {
      underway.delete(answer)
    }
  })
}

function toWebRequest (request: FastifyRequest, signal: AbortSignal): Request {
  const headers = new Headers({ 'x-request-id': request.id })
  for (const name of HEADERS) {
    const value = request.headers[name]
    if (typeof value === 'string') headers.set(name, value)
  }
  return new Request(URL_OF_DOOR, { method: 'POST', headers, signal })
}
