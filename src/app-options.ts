import type { FastifyBaseLogger, FastifyPluginAsync, FastifyRequest } from 'fastify'
import type { Access } from './access/access.ts'
import type { Config } from './config/settings.ts'
import type { View } from './core/view.ts'
import type { Observer } from './http/observer.ts'
import type { AuditState } from './http/readiness.ts'
import type { Shutdown } from './http/shutdown.ts'
import type { OverloadOptions } from './plugins/overload.ts'
import type { Sources } from './sources/sources.ts'
import type { ToolRegistry } from './tools/registry.ts'
import type { Tool } from './tools/tool.ts'
import type { Trust } from './trust/trust.ts'

/** What the table of settings says of them, with its defaults. */
type AppSettings = 'allowedHosts' | 'allowedOrigins' | 'trustedProxies' | 'basePath' | 'publicUrl' | 'ui' |
  'cacheSeconds'

/** `host` decides on the check of the Host header. */
export interface AppOptions extends Pick<Config, 'host'>, Partial<Pick<Config, AppSettings>> {
  readonly skills: View
  /** The sources other than folders. */
  readonly sources?: Pick<Sources, 'status' | 'hooks'>
  readonly registry: ToolRegistry
  readonly logger: FastifyBaseLogger
  /** Named to MCP clients. */
  readonly version: string
  /** The git commit that the service was built from. */
  readonly commit?: string | undefined
  /** Whether open pages follow each change by themselves, with a stream each. Default false. */
  readonly isPreview?: boolean
  /** Who may see what. Absent: everybody sees all of `skills`. */
  readonly access?: Access | undefined
  /** The lock and the trust file. */
  readonly trust?: Pick<Trust, 'files' | 'quarantinedIn' | 'originOf' | 'problem'> | undefined
  /** The last reload of the configuration: why it failed. */
  readonly reload?: { readonly problem: string | undefined }
  /** Begun by what stops the process. */
  readonly shutdown?: Shutdown
  /** Makes spans of requests: registered before all others. */
  readonly tracing?: FastifyPluginAsync | undefined
  /** Registered before the routes: plugins of the caller, whose hooks run for every route and see each being added. */
  readonly plugins?: readonly FastifyPluginAsync[]
  /** Default: it works, or there is none. */
  readonly auditState?: (() => AuditState) | undefined
  /** Learn of every request: metrics, traces, the audit log. */
  readonly observers?: readonly Observer[]
  /** When requests are refused because the process has too much to do. Default: never. */
  readonly overload?: OverloadOptions
  /** Counts a tool call towards its caller's limit; the sentence that it is refused with, or undefined. */
  readonly admitCall?: ((request: FastifyRequest, tool: Tool | undefined) => Promise<string | undefined>) | undefined
}
