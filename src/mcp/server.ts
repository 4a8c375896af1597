import { fromJsonSchema, ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server'
import type { CoreLog } from '../core/shared/log.ts'
import type { View } from '../core/view.ts'
import type { Observer } from '../http/observer.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import { runTool } from '../tools/calls/run-tool.ts'
import { mcp } from '../tools/dialects/wire/mcp.ts'
import { defineTool } from '../tools/tool-definitions.ts'
import { getPrompt, listPrompts } from './methods/prompts.ts'
import {
  acceptSubscription, listResources, readDirectory, readResource, resourceTemplates
} from './methods/resources.ts'
import { getSkillEntry, listSkillEntries, type OriginOf } from './methods/skill-entries.ts'
import { checkOnlyPage } from './methods/paging.ts'
import { PAGE, URI } from './message.ts'
import { type Operation, runHandler } from './operation.ts'

export interface McpServerOptions {
  readonly skills: View
  readonly registry: ToolRegistry
  readonly log: CoreLog
  /** Version of the service. */
  readonly version: string
  readonly observer?: Observer | undefined
  /** Absent without a lock and a trust file. */
  readonly originOf?: OriginOf | undefined
}

interface McpContext {
  /** Whether the protocol revision is from 2026 or later. */
  readonly isModern: boolean
  /** Fields of log lines, such as the request id. */
  readonly fields: object
  readonly operation: Operation | undefined
}

/** The tools that any agent can use. */
const MCP_TOOLSET = 'explore'

const NOTIFIED = { listChanged: true }

const SKILLS_EXTENSION = 'io.modelcontextprotocol/skills'

/** Parameters of the methods of the Skills extension. */
const PageParams = fromJsonSchema<{ cursor?: string }>(PAGE)
const UriParams = fromJsonSchema<{ uri: string, cursor?: string }>(URI)

/** Results must not be cached: each request sees every change, and callers behind one proxy may see other skills. */
const MODERN_CACHE = { ttlMs: 0, cacheScope: 'private' } as const

/** Makes an MCP server with all methods, for one HTTP request or one client over stdio. */
export function createMcpServer (
  { skills, registry, log, version, observer, originOf }: McpServerOptions, { isModern, fields, operation }: McpContext
): Server {
  const server = new Server({ name: 'skillserve', version }, {
    capabilities: {
      // Modern clients subscribe to all lists together, although the list of tools never changes.
      tools: isModern ? NOTIFIED : {},
      prompts: NOTIFIED,
      resources: { ...NOTIFIED, subscribe: true },
      extensions: { [SKILLS_EXTENSION]: { directoryRead: true } }
    },
    instructions: instructionsFor(registry)
  })
  const cache = isModern ? MODERN_CACHE : {}
  const guard = <Result>(run: () => Promise<Result>) => runHandler(run, operation, (err) => {
    log.warn({ ...fields, err }, 'an MCP request failed with an error that its caller does not see')
  })

  server.setRequestHandler('tools/list', ({ params }) => guard(async () => {
    checkOnlyPage(params?.cursor)
    return { tools: mcp.writeDefinitions(registry.list(MCP_TOOLSET).map((tool) => defineTool(tool, skills))) }
  }))
  server.setRequestHandler('tools/call', ({ params: { name, arguments: args } }) => guard(async () => {
    const tool = registry.find(name, MCP_TOOLSET)
    if (tool === undefined) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, registry.unknownTool(name, MCP_TOOLSET))
    }
    const run = { skills, registry, log, fields, observer, dialect: 'mcp', origin: operation?.origin }
    const { text, isError } = await runTool(tool, args, run)
    // No `structuredContent`: most hosts would give the model that JSON instead of the text.
    return { content: [{ type: 'text' as const, text }], ...isError && { isError } }
  }))

  server.setRequestHandler('prompts/list', ({ params }) => guard(async () => {
    const { items: prompts, ...next } = await listPrompts(skills, params?.cursor)
    return { prompts, ...next }
  }))
  server.setRequestHandler('prompts/get', ({ params: { name, arguments: args } }) => guard(() =>
    getPrompt(skills, name, args?.['task'])))

  server.setRequestHandler('resources/list', ({ params }) => guard(async () => {
    const { items, ...next } = await listResources(skills, params?.cursor)
    return { resources: items, ...next }
  }))
  server.setRequestHandler('resources/templates/list', ({ params }) => guard(async () => {
    checkOnlyPage(params?.cursor)
    return { resourceTemplates }
  }))
  server.setRequestHandler('resources/read', ({ params: { uri } }) => guard(() => readResource(skills, uri, originOf)))
  if (!isModern) {
    server.setRequestHandler('resources/subscribe', ({ params: { uri } }) => guard(async () => acceptSubscription(uri)))
    server.setRequestHandler('resources/unsubscribe', () => ({}))
    // The SDK would answer status 200, which says nothing to an observer; a modern request gets 404.
    server.fallbackRequestHandler = () => guard(async () => {
      throw new ProtocolError(ProtocolErrorCode.MethodNotFound, 'Method not found')
    })
  }

  server.setRequestHandler('skills/list', { params: PageParams }, ({ cursor }) => guard(async () => {
    const { items, ...next } = await listSkillEntries(skills, cursor, originOf)
    return { skills: items, ...next, ...cache }
  }))
  server.setRequestHandler('skills/get', { params: UriParams }, ({ uri }) => guard(async () =>
    ({ skill: await getSkillEntry(skills, uri, originOf), ...cache })))
  server.setRequestHandler('resources/directory/read', { params: UriParams }, ({ uri, cursor }) =>
    guard(async () => {
      const { items, ...next } = await readDirectory(skills, uri, cursor)
      return { resources: items, ...next, ...cache }
    }))
  return server
}

/** Returns the instructions for models about the service as a whole. */
function instructionsFor (registry: ToolRegistry): string {
  const uses = registry.list(MCP_TOOLSET).flatMap(({ name, purpose }) =>
    purpose === undefined ? [] : `${name} ${purpose}`)
  return `Agent Skills: folders of instructions and files. ${uses.join(', ')}. ` +
    'The same files are resources: skill://<name>/<path>.'
}
