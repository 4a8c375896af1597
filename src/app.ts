import { isIPv4 } from 'node:net'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { fastify, type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { createChangeFeed } from './core/change-feed.ts'
import type { SkillManager } from './core/skill-manager.ts'
import { httpServerOptions, type HttpTimeouts } from './http-options.ts'
import { conditional } from './plugins/conditional.ts'
import { draining } from './plugins/draining.ts'
import { errors } from './plugins/errors.ts'
import { freshness } from './plugins/freshness.ts'
import { jsonBody } from './plugins/json-body.ts'
import { openapi } from './plugins/openapi.ts'
import { security } from './plugins/security.ts'
import { stalledResponses } from './plugins/stalled-responses.ts'
import { agentRoutes } from './routes/agent.ts'
import { eventRoutes } from './routes/events.ts'
import { healthRoutes } from './routes/health.ts'
import { skillRoutes } from './routes/skills.ts'
import { sharedSchemas } from './schemas/index.ts'
import type { ToolRegistry } from './tools/registry.ts'
import { createToolCallHandler } from './tools/tool-call.ts'
import type { Tool } from './tools/tool.ts'

export interface AppOptions {
  readonly skills: SkillManager
  readonly registry: ToolRegistry
  readonly logger: FastifyBaseLogger
  /** Shown in the OpenAPI document. */
  readonly version: string
  /** The address it will listen on, which decides on the Host check (K55). */
  readonly host: string
  readonly allowedHosts?: readonly string[]
  readonly timeouts?: Partial<HttpTimeouts>
  readonly isDraining?: () => boolean
}

/** The whole HTTP service, not yet listening. */
export async function buildApp (options: AppOptions): Promise<FastifyInstance> {
  const { skills, registry, logger, version, host, allowedHosts = [], timeouts, isDraining = () => false } = options
  const app = fastify(httpServerOptions({ logger, ...timeouts && { timeouts } })).withTypeProvider<TypeBoxTypeProvider>()

  // Answers are made once, from values of our own: the schemas describe them, and are held against them by the tests. A
  // serialiser for each of them would cost a third of the start, and drop in silence what a schema forgot.
  app.setSerializerCompiler(() => JSON.stringify)

  await app.register(security, { loopbackOnly: isLoopback(host), allowedHosts: allowedHosts.map(bracketed) })
  await app.register(freshness, { skills })
  await app.register(errors)
  await app.register(jsonBody)
  await app.register(conditional)
  await app.register(draining, { isDraining })
  await app.register(stalledResponses)
  await app.register(openapi, { version, schemas: sharedSchemas })

  const feed = createChangeFeed({ skills, log: logger })
  app.addHook('onClose', async () => { feed.close() })

  await app.register(healthRoutes, { skills, isDraining })
  await app.register(skillRoutes, { skills, tools: readerTools(registry) })
  await app.register(eventRoutes, { feed, isDraining })
  await app.register(agentRoutes, { registry, handleToolCall: createToolCallHandler({ registry, log: logger }) })
  return app
}

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
