import { isIPv4 } from 'node:net'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { fastify, type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { pino } from 'pino'
import type { FindingSource } from './core/listing/entry.ts'
import { createChangeFeed } from './core/events/change-feed.ts'
import type { SkillManager } from './core/skill-manager.ts'
import { httpServerOptions, type HttpTimeouts } from './http/options.ts'
import { createOriginCheck } from './mcp/origin.ts'
import { mcpFindings } from './mcp/findings.ts'
import { mcpDoor } from './mcp/plugin.ts'
import { toolSchemas } from './openapi/tool-schemas.ts'
import { conditional } from './plugins/conditional.ts'
import { draining } from './http/connections/draining.ts'
import { errors } from './plugins/errors.ts'
import { freshness } from './plugins/poll-phase.ts'
import { jsonBody } from './plugins/json-body.ts'
import { lazyValidation } from './plugins/lazy-validation.ts'
import { security } from './plugins/security.ts'
import { stalledResponses } from './http/connections/stalled-responses.ts'
import { agentRoutes } from './routes/agent.ts'
import { archiveRoutes } from './routes/archive.ts'
import { catalogRoutes } from './routes/catalog.ts'
import { eventRoutes } from './routes/events.ts'
import { healthRoutes } from './routes/health.ts'
import { docsRoutes, openapiRoutes } from './routes/openapi.ts'
import { promptRoutes } from './routes/prompt.ts'
import { skillRoutes } from './routes/skills.ts'
import { sharedSchemas } from './schemas/index.ts'
import type { ToolRegistry } from './tools/registry.ts'
import { createToolCallHandler } from './tools/tool-call.ts'
import type { Tool } from './tools/tool.ts'
import { wellKnownFindings } from './core/clients/discovery.ts'
import { wellKnown } from './well-known/well-known.ts'

export interface AppOptions {
  readonly skills: SkillManager
  readonly registry: ToolRegistry
  readonly logger: FastifyBaseLogger
  /** Shown in the OpenAPI document. */
  readonly version: string
  /** The address it will listen on, which decides on the Host check. */
  readonly host: string
  readonly allowedHosts?: readonly string[]
  /** Web pages that may use `/mcp`, besides loopback ones on a loopback address. */
  readonly allowedOrigins?: readonly string[]
  readonly timeouts?: Partial<HttpTimeouts>
  readonly isDraining?: () => boolean
}

const SILENT = pino({ level: 'silent' })

/** The whole HTTP service, not yet listening. */
export async function buildApp (options: AppOptions): Promise<FastifyInstance> {
  let description: Promise<FastifyInstance> | undefined
  const describe = (): Promise<FastifyInstance> => {
    description ??= describeApp(options)
    return description
  }

  const app = await assemble(options, async (app) => {
    await app.register(openapiRoutes, { describe })
    await app.register(docsRoutes, { describe })
  })
  app.addHook('onClose', async () => { await (await description)?.close() })
  return app
}

/** The same service for the sake of its description: its routes are read, only its own pages are ever asked for. */
async function describeApp ({ version, ...options }: AppOptions): Promise<FastifyInstance> {
  const { description } = await import('./openapi/description.ts')
  const app = await assemble({ ...options, version, logger: SILENT }, async (app) => {
    await app.register(description, { version })
    await app.register(openapiRoutes, { describe: async () => app })
  })
  await app.ready()
  return app
}

async function assemble (options: AppOptions, registerDescription: (app: FastifyInstance) => Promise<void>): Promise<FastifyInstance> {
  const { skills, registry, logger, version, host, allowedHosts = [], allowedOrigins = [], timeouts, isDraining = () => false } = options
  const app = fastify(httpServerOptions({ logger, ...timeouts && { timeouts } })).withTypeProvider<TypeBoxTypeProvider>()

  // Answers are made once, from values of our own: the schemas describe them, and are held against them by the tests. A
  // serialiser for each of them would cost a third of the start, and drop in silence what a schema forgot.
  app.setSerializerCompiler(() => JSON.stringify)
  for (const schema of [...sharedSchemas, ...toolSchemas]) app.addSchema(schema)

  await app.register(security, { loopbackOnly: isLoopback(host), allowedHosts: allowedHosts.map(bracketed) })
  await app.register(freshness, { skills })
  await app.register(lazyValidation)
  await app.register(errors)
  await app.register(jsonBody)
  await app.register(conditional)
  await app.register(draining, { isDraining })
  await app.register(stalledResponses)

  const feed = createChangeFeed({ skills, log: logger })
  app.addHook('onClose', async () => { feed.close() })

  await registerDescription(app)
  await app.register(healthRoutes, { skills, isDraining })
  await app.register(skillRoutes, { skills, tools: readerTools(registry) })
  await app.register(archiveRoutes, { skills })
  await app.register(catalogRoutes, { skills, moreFindings: [mcpFindings, ofDiscovery] })
  await app.register(eventRoutes, { feed, isDraining })
  await app.register(agentRoutes, { registry, skills, handleToolCall: createToolCallHandler({ registry, log: logger }) })
  await app.register(promptRoutes, { skills })
  await app.register(mcpDoor, { skills, feed, registry, version, checkOrigin: createOriginCheck({ loopbackOnly: isLoopback(host), allowedOrigins }) })
  await app.register(wellKnown, { skills, isPublic: !isLoopback(host) && (allowedHosts.length === 0 || !allowedHosts.every(isLoopback)) })
  return app
}

/** Why a skill is not offered through a door that has rules of its own: told in the catalog. */
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

/** IPv6 addresses stand in brackets in a Host header. */
function bracketed (host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

function isLoopback (host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}
