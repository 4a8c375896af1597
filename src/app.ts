import type { IncomingMessage } from 'node:http'
import { fastify, type FastifyBaseLogger, type FastifyInstance, type FastifyPluginAsync, type FastifyRequest } from 'fastify'
import { type AccessDoors, alwaysAllowed, PerSkills } from './http/callers.ts'
import { createChangeFeed } from './core/events/change-feed.ts'
import type { SkillService } from './core/service.ts'
import { Connections } from './http/connections/connections.ts'
import { draining } from './http/connections/draining.ts'
import { Shutdown } from './http/connections/shutdown.ts'
import { stalledResponses } from './http/connections/stalled-responses.ts'
import { overload } from './http/overload/overload.ts'
import type { AuditState } from './http/readiness.ts'
import type { AnswerMemory } from './http/overload/answer-memory.ts'
import type { Load } from './http/overload/load.ts'
import { isLocalName, isLoopback } from './http/request/hosts.ts'
import { combineObservers, type Observer } from './http/observer.ts'
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
import { doorsRoute } from './routes/doors.ts'
import { eventRoutes } from './routes/events.ts'
import { gitHook } from './routes/git-hook.ts'
import { healthRoutes } from './routes/health.ts'
import { llmsTxtRoute } from './routes/llms-txt.ts'
import { openapiRoutes } from './routes/openapi.ts'
import { promptRoutes } from './routes/prompt.ts'
import { skillRoutes, type SkillRoutesOptions } from './routes/skills.ts'
import { validateRoute } from './routes/validate.ts'
import { sharedSchemas } from './schemas/index.ts'
import type { Sources } from './sources/sources.ts'
import type { ToolRegistry } from './tools/registry.ts'
import { createToolCallHandler } from './tools/calls/tool-call.ts'
import type { Tool } from './tools/tool.ts'
import { catalogPages } from './ui/plugin.ts'
import { createJudge } from './verdicts/entry.ts'
import { wellKnown } from './well-known/well-known.ts'

export interface AppOptions {
  readonly skills: SkillService
  /** The sources that are no folders. */
  readonly sources?: Pick<Sources, 'status' | 'hooks' | 'githubOf'>
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
  /** Address of the service as its users type it, without a slash at the end, for pages. Default: that of each request. */
  readonly publicUrl?: string | undefined
  /** Whether people get pages at `/` and `/ui/`. Default true. */
  readonly ui?: boolean
  /** Whether open pages follow each change by themselves, with a stream each. Default false. */
  readonly isPreview?: boolean
  readonly timeouts?: Partial<HttpTimeouts>
  /** Who may see what. Absent: everybody sees all of `skills`. */
  readonly access?: AccessDoors | undefined
  /** Which skills are served, and what is wrong with the files that say so. */
  readonly policy?: { remark (): string | undefined } | undefined
  /** Begun by whoever stops the process. */
  readonly shutdown?: Shutdown
  /** How long shared caches may keep what anybody may read, in seconds: see `conditional`. Default 0, not at all. */
  readonly cacheSeconds?: number
  /** Registered before the routes: plugins of the caller, whose hooks run for every route and see each being added. */
  readonly plugins?: readonly FastifyPluginAsync[]
  /** Default: it works, or there is none. */
  readonly auditState?: () => AuditState
  /** Learn of every request: metrics, traces, the audit log. */
  readonly observers?: readonly Observer[]
  /** The address of a client behind trusted proxies. Default: that of the peer. */
  readonly clientOf?: ((request: IncomingMessage) => string) | undefined
  /** How busy the process is. Default: never too busy. */
  readonly load?: Pick<Load, 'level'>
  /** What bodies and answers hold together. Default: the service's own. */
  readonly memory?: AnswerMemory
  /** Counts a tool call towards its caller's limit; the sentence that it is refused with, or undefined. */
  readonly admitCall?: ((request: FastifyRequest, tool: Tool | undefined) => string | undefined) | undefined
}

/** The whole HTTP service, not yet listening. */
export async function buildApp (options: AppOptions): Promise<FastifyInstance> {
  const { skills, sources, registry, logger, version, host, allowedHosts = [], allowedOrigins = [], basePath = '', ui = true, isPreview = false, publicUrl, timeouts = {}, shutdown = new Shutdown(), cacheSeconds = 0, access, policy, plugins = [], auditState = () => 'working', clientOf, admitCall, load = { level: 0 }, memory } = options
  const observer = combineObservers(options.observers ?? [])
  const loopbackOnly = isLoopback(host)
  const connections = new Connections()
  const feeds = new PerSkills((skills) => createChangeFeed({ skills, log: logger }))
  const { skillsOf, followedOf, whileAllowed } = access ?? { skillsOf: () => skills, followedOf: () => skills, whileAllowed: alwaysAllowed }
  observer?.useSkills?.(skillsOf)
  observer?.useRevision?.(() => feeds.of(access?.everything ?? skills).revision)
  const revisionsOf = (request: FastifyRequest) => feeds.of(followedOf(request))
  const judge = createJudge([mcpFindings])
  const translate = (error: unknown, request: FastifyRequest): unknown => access === undefined ? error : access.translate(error, request)
  const readiness = { remarks: () => [access?.remark() ?? [], policy?.remark() ?? []].flat(), auditState, shutdown, sources: sources && (() => sources.status) }
  const pages = ui ? catalogPages({ load, skillsOf, judge, version, prefix: basePath, log: logger, isPreview, publicUrl, sources, readiness, translate }) : undefined
  const app: FastifyInstance = fastify(httpServerOptions({ connections, logger, timeouts, allowedOrigins, observer, clientOf, rewriteUrl: access && ((request) => access.rewriteUrl(request)), answerBadUrl: pages?.answerBadUrl }))
  app.addHook('onClose', async () => { for (const feed of feeds.values()) feed.close() })
  app.decorateRequest('principal', undefined)
  app.decorateRequest('trace', undefined)

  await app.register(security, { loopbackOnly, allowedHosts })
  await app.register(errors, { basePath, translate })
  await app.register(cors, { allowedOrigins })
  if (access !== undefined) await app.register(access.plugin)
  await app.register(pollPhase, { skills, connections })
  await app.register(schemas, { shared: [...sharedSchemas, ...toolSchemas] })
  await app.register(jsonBody)
  await app.register(conditional, { cacheSeconds })
  await app.register(stalledResponses, { connections })
  await app.register(overload, { load, memory })
  // After what counts the memory of an answer: the answers of a turn wait for each other.
  await app.register(draining, { connections, shutdown })
  for (const plugin of plugins) await app.register(plugin)

  await app.register(async (routes) => {
    await routes.register(doorsRoute, { version, forBrowsers: pages?.forBrowsers })
    await routes.register(openapiRoutes)
    await routes.register(healthRoutes, { skillsOf, access, revisionsOf, readiness })
    await routes.register(gitHook, { hooks: sources?.hooks ?? [] })
    await routes.register(skillRoutes, { skillsOf, revisionsOf, tools: readerTools(registry) })
    await routes.register(archiveRoutes, { skillsOf })
    await routes.register(catalogRoutes, { skillsOf, revisionsOf, judge })
    await routes.register(validateRoute, { sources: [mcpFindings] })
    await routes.register(eventRoutes, { followedOf, feeds, whileAllowed, shutdown, observer })
    await routes.register(agentRoutes, { registry, skillsOf, observer, admitCall, handleToolCall: createToolCallHandler({ registry, log: logger, observer }) })
    await routes.register(promptRoutes, { skillsOf, publicUrl })
    await routes.register(llmsTxtRoute, { skillsOf, publicUrl })
    await routes.register(mcpDoor, { skillsOf, followedOf, feeds, whileAllowed, registry, version, observer, checkOrigin: createOriginCheck({ loopbackOnly, allowedOrigins }), shutdown, load })
    await routes.register(wellKnown, { skillsOf, revisionsOf, isPublic: !loopbackOnly && (allowedHosts.length === 0 || !allowedHosts.every(isLocalName)) })
    if (pages !== undefined) await routes.register(pages.routes)
  }, { prefix: basePath })
  return app
}

/** The tools behind the REST routes. */
function readerTools (registry: ToolRegistry): SkillRoutesOptions['tools'] {
  return { listSkills: toolNamed('list_skills'), getSkill: toolNamed('get_skill'), readFileInSkill: toolNamed('read_file_in_skill') }

  function toolNamed (name: string): Tool {
    const tool = registry.find(name)
    if (tool === undefined) throw new Error(`there is no tool ${name}`)
    return tool
  }
}
