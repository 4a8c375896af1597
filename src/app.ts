import cors from '@fastify/cors'
import {
  fastify, type FastifyBaseLogger, type FastifyInstance, type FastifyPluginAsync, type FastifyRequest
} from 'fastify'
import type { Access } from './access/access.ts'
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

/** Settings that the app takes as the table of settings has them, with its defaults. */
type AppSettings = 'allowedHosts' | 'allowedOrigins' | 'trustedProxies' | 'basePath' | 'publicUrl' | 'ui' |
  'cacheSeconds'

/** A loopback `host` restricts the Host header of requests to loopback names. */
export interface AppOptions extends Pick<Config, 'host'>, Partial<Pick<Config, AppSettings>> {
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
  const { skills, sources, registry, logger, version, host, basePath = '', access, trust } = options
  const { allowedHosts = [], allowedOrigins = [] } = options
  const { shutdown = new Shutdown(), auditState = () => 'working' as const, isPreview = false, admitCall } = options
  const observer = combineObservers(options.observers ?? [])
  const loopbackOnly = isLoopback(host)
  const { skillsOf, onAccessEnd } = access ?? { skillsOf: () => skills, onAccessEnd: () => () => {} }
  observer.init(skillsOf, () => (access?.everything ?? skills).feed.revision)
  // Lists and probes name a revision, and must not start to read for it.
  skills.parts.ledger.start()
  const originOf = trust && ((state: SkillState) => trust.trustReportOf(state))
  const validate = createValidator(originOf)
  const translate = access?.translate ?? ((error: unknown) => error)
  const reloaded = [access?.file ?? [], trust?.files ?? [], trust ?? [], options.reload ?? []].flat()
  const configProblems = () => reloaded.flatMap(({ problem }) => problem ?? [])
  const readiness = {
    configProblems,
    auditState,
    shutdown,
    quarantinedIn: trust && ((roots: readonly string[]) => trust.quarantinedIn(roots)),
    sources: () => sources?.status ?? []
  }
  const isPublic = !loopbackOnly && !(allowedHosts.length > 0 && allowedHosts.every(isLocalName))
  const pages = options.ui === false
    ? undefined
    : (await import('./ui/plugin.ts')).catalogPages({
        ...options, skillsOf, validate, prefix: basePath, isPreview, readiness, translate
      })

  const { rewriteUrl } = access ?? {}
  const app: FastifyInstance = fastify(httpServerOptions({ ...options, observer, rewriteUrl }))
  for (const property of ['principal', 'trace', 'pinnedView', 'problemCode', 'found']) {
    app.decorateRequest(property, undefined)
  }
  if (options.tracing !== undefined) await app.register(options.tracing)
  await app.register(connections, { shutdown })
  await app.register(security, { loopbackOnly, allowedHosts })
  await app.register(errors, { basePath, translate, skillsOf })
  // After `errors`, whose handler its `OPTIONS` route gets then.
  if (allowedOrigins.length > 0) await app.register(cors, corsOptions(allowedOrigins))
  if (access !== undefined) await app.register(access.plugin)
  await app.register(validation, { shared: [...sharedSchemas, ...toolSchemas] })
  await app.register(jsonBody)
  await app.register(conditional, { cacheSeconds: options.cacheSeconds ?? 0, shutdown })
  await app.register(overload, { overload: options.overload })
  for (const plugin of options.plugins ?? []) await app.register(plugin)
  await app.register(openapi, { version, basePath, hasAccess: access !== undefined })

  await app.register(async (routes) => {
    await routes.register(endpointRoutes, { version, forBrowsers: pages?.forBrowsers })
    await routes.register(healthRoutes, { skillsOf, access, readiness, version, commit: options.commit })
    await routes.register(gitHook, { hooks: () => sources?.hooks ?? [] })
    await routes.register(skillRoutes, { skillsOf })
    await routes.register(catalogRoutes, { skillsOf, validate })
    await routes.register(validateRoute)
    await routes.register(eventRoutes, { feedOf: (request) => skillsOf(request).feed, onAccessEnd, observer })
    await routes.register(agentRoutes, { registry, skillsOf, observer, admitCall, log: logger })
    await routes.register(promptRoutes, { skillsOf, publicUrl: options.publicUrl })
    await routes.register(mcpRoutes, {
      skillsOf, onAccessEnd, registry, version, observer, originOf, loopbackOnly, allowedOrigins
    })
    await routes.register(wellKnown, { skillsOf, isPublic })
    if (pages !== undefined) await routes.register(pages.routes)
  }, { prefix: basePath })
  return app
}
