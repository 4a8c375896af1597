import { fastify, type FastifyBaseLogger, type FastifyInstance, type FastifyPluginAsync } from 'fastify'
import { alwaysAllowed, PerSkills } from './access/principal.ts'
import { wellKnownFindings } from './core/clients/discovery.ts'
import { createChangeFeed } from './core/events/change-feed.ts'
import type { FindingSource } from './core/listing/entry.ts'
import type { SkillService } from './core/skill-source.ts'
import { Connections } from './http/connections/connections.ts'
import { draining } from './http/connections/draining.ts'
import { stalledResponses } from './http/connections/stalled-responses.ts'
import { unsentAnswers } from './http/connections/unsent-answers.ts'
import { isLocalName, isLoopback } from './http/request/hosts.ts'
import { httpServerOptions, type HttpTimeouts } from './http/options.ts'
import { createOriginCheck } from './mcp/origin.ts'
import { mcpFindings } from './mcp/findings.ts'
import { mcpDoor } from './mcp/plugin.ts'
import { toolSchemas } from './openapi/tool-schemas.ts'
import { conditional } from './plugins/conditional.ts'
import { cors } from './plugins/cors.ts'
import { errors } from './plugins/errors.ts'
import { jsonBody } from './plugins/json-body.ts'
import { pollPhase } from './plugins/poll-phase.ts'
import { schemas } from './plugins/schemas.ts'
import { security } from './plugins/security.ts'
import { agentRoutes } from './routes/agent.ts'
import { archiveRoutes } from './routes/archive.ts'
import { catalogRoutes } from './routes/catalog.ts'
import { docsRoutes } from './routes/docs.ts'
import { doorsRoute } from './routes/doors.ts'
import { eventRoutes } from './routes/events.ts'
import { healthRoutes } from './routes/health.ts'
import { llmsTxtRoute } from './routes/llms-txt.ts'
import { openapiRoutes } from './routes/openapi.ts'
import { promptRoutes } from './routes/prompt.ts'
import { skillRoutes } from './routes/skills.ts'
import { sharedSchemas } from './schemas/index.ts'
import type { ToolRegistry } from './tools/registry.ts'
import { createToolCallHandler } from './tools/tool-call.ts'
import type { Tool } from './tools/tool.ts'
import { catalogPages } from './ui/plugin.ts'
import { wellKnown } from './well-known/well-known.ts'

export interface AppOptions {
  readonly skills: SkillService
  readonly registry: ToolRegistry
  readonly logger: FastifyBaseLogger
  /** Named to MCP clients. */
  readonly version: string
  /** The address that the service will listen on, without brackets. It decides on the check of the Host header. */
  readonly host: string
  /** Host names to answer to: see `security`. */
  readonly allowedHosts?: readonly string[]
  /** Origins of web pages that may use every route. `/mcp` takes loopback ones too on a loopback address. */
  readonly allowedOrigins?: readonly string[]
  /** Path prefix of every route: `/skillserve`. Default none. */
  readonly basePath?: string
  /** Whether people get pages at `/` and `/ui/`. Default true. */
  readonly ui?: boolean
  readonly timeouts?: Partial<HttpTimeouts>
  readonly isDraining?: () => boolean
  /** Registered before the routes: plugins of the caller, whose hooks run for every route and see each being added. */
  readonly plugins?: readonly FastifyPluginAsync[]
}

/** The whole HTTP service, not yet listening. */
export async function buildApp (options: AppOptions): Promise<FastifyInstance> {
  const { skills, registry, logger, version, host, allowedHosts = [], allowedOrigins = [], basePath = '', ui = true, timeouts = {}, isDraining = () => false, plugins = [] } = options
  const loopbackOnly = isLoopback(host)
  const connections = new Connections()
  const app: FastifyInstance = fastify(httpServerOptions({ connections, logger, timeouts }))
  const feeds = new PerSkills((skills) => createChangeFeed({ skills, log: logger }))
  app.addHook('onClose', async () => { for (const feed of feeds.values()) feed.close() })
  app.decorateRequest('principal', undefined)
  const skillsOf = () => skills
  const whileAllowed = alwaysAllowed
  const moreFindings = [mcpFindings, ofDiscovery]
  const pages = ui ? catalogPages({ skillsOf, moreFindings, version, prefix: basePath, log: logger }) : undefined

  await app.register(security, { loopbackOnly, allowedHosts })
  await app.register(errors, { basePath })
  await app.register(cors, { allowedOrigins })
  await app.register(pollPhase, { skills, connections })
  await app.register(schemas, { shared: [...sharedSchemas, ...toolSchemas] })
  await app.register(jsonBody)
  await app.register(conditional)
  await app.register(draining, { connections, isDraining })
  await app.register(stalledResponses, { connections })
  await app.register(unsentAnswers)
  for (const plugin of plugins) await app.register(plugin)

  await app.register(async (routes) => {
    await routes.register(doorsRoute, { version, forBrowsers: pages?.list })
    await routes.register(openapiRoutes)
    await routes.register(docsRoutes)
    await routes.register(healthRoutes, { skillsOf, isDraining })
    await routes.register(skillRoutes, { skillsOf, tools: readerTools(registry) })
    await routes.register(archiveRoutes, { skillsOf })
    await routes.register(catalogRoutes, { skillsOf, moreFindings })
    await routes.register(eventRoutes, { skillsOf, feeds, whileAllowed, isDraining })
    await routes.register(agentRoutes, { registry, skillsOf, handleToolCall: createToolCallHandler({ registry, log: logger }) })
    await routes.register(promptRoutes, { skillsOf })
    await routes.register(llmsTxtRoute, { skillsOf })
    await routes.register(mcpDoor, { skillsOf, feeds, whileAllowed, registry, version, checkOrigin: createOriginCheck({ loopbackOnly, allowedOrigins }), isDraining })
    await routes.register(wellKnown, { skillsOf, isPublic: !loopbackOnly && (allowedHosts.length === 0 || !allowedHosts.every(isLocalName)) })
    if (pages !== undefined) await routes.register(pages.routes)
  }, { prefix: basePath })
  return app
}

/** Why clients of discovery do not take a skill, for its catalog entry. */
const ofDiscovery: FindingSource = (skill, manifest, document) => wellKnownFindings(skill, manifest, document?.utf8)

/** The tools behind the REST routes. */
function readerTools (registry: ToolRegistry): { listSkills: Tool, getSkill: Tool, readFileInSkill: Tool } {
  return { listSkills: toolNamed('list_skills'), getSkill: toolNamed('get_skill'), readFileInSkill: toolNamed('read_file_in_skill') }

  function toolNamed (name: string): Tool {
    const tool = registry.find(name)
    if (tool === undefined) throw new Error(`there is no tool ${name}`)
    return tool
  }
}
