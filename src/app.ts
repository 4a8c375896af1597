import cors from '@fastify/cors'
import {
  fastify, type FastifyBaseLogger, type FastifyInstance, type FastifyPluginAsync, type FastifyRequest
} from 'fastify'
import type { Access } from './access/access.ts'
import { loadConfig } from './config/load.ts'
import type { Config } from './config/settings.ts'
import type { SkillState } from './core/revisions/state.ts'
import type { View } from './core/view.ts'
import { connections } from './http/connections.ts'
import { combineObservers, type Observer } from './http/observer.ts'
import { corsOptions } from './http/headers.ts'
import { httpServerOptions } from './http/options.ts'
import type { AuditState } from './http/readiness.ts'
import { isLocalName, isLoopback } from './http/request/hosts.ts'
import { Shutdown } from './http/shutdown.ts'
import { mcpRoutes } from './mcp/plugin.ts'
import { openapi } from './openapi/plugin.ts'
import { toolSchemas } from './openapi/tool-schemas.ts'
import { conditional } from './plugins/conditional.ts'
import { errors } from './plugins/errors.ts'
import { jsonBody } from './plugins/json-body.ts'
import { overload, type OverloadOptions } from './plugins/overload.ts'
import { security } from './plugins/security.ts'
import { validation } from './plugins/validation.ts'
import { agentRoutes } from './routes/agent.ts'
import { catalogRoutes } from './routes/catalog.ts'
import { endpointRoutes } from './routes/endpoints.ts'
import { eventRoutes } from './routes/events.ts'
import { gitHook } from './routes/git-hook.ts'
import { healthRoutes } from './routes/health.ts'
import { promptRoutes } from './routes/prompt.ts'
import { skillRoutes } from './routes/skills.ts'
import { validateRoute } from './routes/validate.ts'
import { sharedSchemas } from './schemas/index.ts'
import type { Sources } from './sources/sources.ts'
import type { ToolRegistry } from './tools/registry.ts'
import type { Tool } from './tools/tool.ts'
import type { Trust } from './trust/trust.ts'
import { createValidator } from './verdicts/entry.ts'
import { wellKnown } from './well-known/well-known.ts'

/**
 * Settings by their names in the table of settings, with its defaults, and the parts of the service. Settings of the
 * process, such as the port, have no effect. A loopback `host` restricts the Host header of requests to loopback names.
 */
export interface AppOptions extends Pick<Config, 'host'>, Partial<Omit<Config, 'host'>> {
  readonly skills: View
  /** The sources that are not plain folders. */
  readonly sources?: Pick<Sources, 'status' | 'hooks'>
  readonly registry: ToolRegistry
  readonly logger: FastifyBaseLogger
  /** MCP clients, `GET /` and pages show it. */
  readonly version: string
  /** The git commit that the service was built from. */
  readonly commit?: string | undefined
  /** Whether an open page reloads itself after each change, by a stream of its own. Default false. */
  readonly isPreview?: boolean
  /** Authentication and authorization. Without it, every caller sees all of `skills`. */
  readonly access?: Access | undefined
  /** The lock and the trust file. */
  readonly trust?: Pick<Trust, 'files' | 'quarantinedIn' | 'trustReportOf' | 'problem'> | undefined
  /** Says why the last reload of the configuration failed. */
  readonly reload?: { readonly problem: string | undefined }
  /** Says whether the process stops. */
  readonly shutdown?: Shutdown
  /** Plugin that creates the spans of requests; registered before all others. */
  readonly tracing?: FastifyPluginAsync | undefined
  /** Plugins of a library user, registered before the routes, so that their hooks see every route and every request. */
  readonly plugins?: readonly FastifyPluginAsync[]
  /** Returns the state of the audit log. Default: it works. */
  readonly auditState?: (() => AuditState) | undefined
  /** Receive every request: metrics, traces, the audit log. */
  readonly observers?: readonly Observer[]
  /** Load above which requests are refused. Default: none are. */
  readonly overload?: OverloadOptions
  /** Counts a tool call towards its caller's limit. Resolves with the sentence of a refusal, or undefined. */
  readonly admitCall?: ((request: FastifyRequest, tool: Tool | undefined) => Promise<string | undefined>) | undefined
}

/** Builds the HTTP service with all plugins and routes. It does not listen yet. */
export async function buildApp (options: AppOptions): Promise<FastifyInstance> {
  // Fastify would read `logLevel` as an option of each plugin.
  const { logLevel, ...given } = { ...loadConfig({ env: {}, cwd: '' }), ...options }
  const { skills, sources, logger, host, basePath, allowedHosts, allowedOrigins, ui, access, trust } = given
  const { shutdown = new Shutdown(), auditState = () => 'working' as const, isPreview = false } = given
  const observer = combineObservers(given.observers ?? [])
  const loopbackOnly = isLoopback(host)
  const { skillsOf, onAccessEnd } = access ?? { skillsOf: () => skills, onAccessEnd: () => () => {} }
  observer.init(skillsOf, () => (access?.everything ?? skills).feed.revision)
  // Lists and probes name a revision, and must not start to read for it.
  skills.parts.ledger.start()
  const originOf = trust && ((state: SkillState) => trust.trustReportOf(state))
  const reloaded = [access?.file ?? [], trust?.files ?? [], trust ?? [], given.reload ?? []].flat()
  // All plugins get these options, and each names those that it takes.
  const service = {
    ...given,
    log: logger,
    shutdown,
    observer,
    loopbackOnly,
    isPublic: !loopbackOnly && !(allowedHosts.length > 0 && allowedHosts.every(isLocalName)),
    hasAccess: access !== undefined,
    skillsOf,
    onAccessEnd,
    originOf,
    validate: createValidator(originOf),
    translate: access?.translate ?? ((error: unknown) => error),
    hooks: () => sources?.hooks ?? [],
    readiness: {
      configProblems: () => reloaded.flatMap(({ problem }) => problem ?? []),
      auditState,
      shutdown,
      quarantinedIn: trust && ((roots: readonly string[]) => trust.quarantinedIn(roots)),
      sources: () => sources?.status ?? []
    }
  }
  const pages = ui
    ? (await import('./ui/plugin.ts')).catalogPages({ ...service, prefix: basePath, isPreview })
    : undefined

  const app: FastifyInstance = fastify(httpServerOptions({ ...service, rewriteUrl: access?.rewriteUrl }))
  for (const property of ['principal', 'trace', 'pinnedView', 'problemCode', 'found']) {
    app.decorateRequest(property, undefined)
  }
  if (given.tracing !== undefined) await app.register(given.tracing)
  await app.register(connections, service)
  await app.register(security, service)
  await app.register(errors, service)
  // After `errors`, whose handler its `OPTIONS` route gets then.
  if (allowedOrigins.length > 0) await app.register(cors, corsOptions(allowedOrigins))
  if (access !== undefined) await app.register(access.plugin)
  await app.register(validation, { shared: [...sharedSchemas, ...toolSchemas] })
  await app.register(jsonBody)
  await app.register(conditional, service)
  await app.register(overload, service)
  for (const plugin of given.plugins ?? []) await app.register(plugin)
  await app.register(openapi, service)

  await app.register(async (routes) => {
    await routes.register(endpointRoutes, { ...service, forBrowsers: pages?.forBrowsers })
    await routes.register(healthRoutes, service)
    await routes.register(gitHook, service)
    await routes.register(skillRoutes, service)
    await routes.register(catalogRoutes, service)
    await routes.register(validateRoute)
    await routes.register(eventRoutes, { ...service, feedOf: (request) => skillsOf(request).feed })
    await routes.register(agentRoutes, service)
    await routes.register(promptRoutes, service)
    await routes.register(mcpRoutes, service)
    await routes.register(wellKnown, service)
    if (pages !== undefined) await routes.register(pages.routes)
  }, { prefix: basePath })
  return app
}
