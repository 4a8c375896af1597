import type { FastifyPluginAsync } from 'fastify'
import type { Config } from '../config/settings.ts'
import type { CoreLog } from '../core/shared/log.ts'
import type { SkillManager } from '../core/skill-manager.ts'
import type { Observer } from '../http/observer.ts'
import type { LineOutput } from '../log.ts'
import { Audit, type Watched } from './audit.ts'
import type { Readings } from './metrics.ts'
import { listenForMetrics, metricsRoute } from './metrics-server.ts'

interface ObserveOptions extends Watched {
  readonly config: Config
  readonly measured: SkillManager
  readonly readings: Readings
  readonly version: string
  readonly log: CoreLog
  /** Output of the log. */
  readonly stdout: LineOutput
}

export type Observation = Awaited<ReturnType<typeof observe>>

/**
 * Opens what observes the service: metrics, traces and the audit log, as far as they are configured.
 * @throws the system's error when the file of the audit log cannot be opened
 */
export async function observe (options: ObserveOptions) {
  const { config, measured: skills, version, log, stdout } = options
  const { metricsPort: port, metricsHost: host, auditLog: path } = config
  const audit = path === undefined
    ? undefined
    : await Audit.open({ ...config, path, stdout, version, log })
  // Callers whose token has the scope `metrics:read` read the metrics at the service's own port.
  const hasCallers = config.accessFile !== undefined
  const readings = { ...options.readings, auditDropped: () => audit?.log.dropped ?? 0 }
  const metrics = port !== undefined || hasCallers
    ? (await import('./metrics.ts')).createMetrics({ ...config, skills, version, readings })
    : undefined
  const traces = hasSdk() ? new (await import('./traces.ts')).Traces(version) : undefined
  if (traces !== undefined) log.info({}, 'an OpenTelemetry SDK is loaded: requests and tool calls are spans')
  const plugins: FastifyPluginAsync[] = []
  if (audit !== undefined) plugins.push(audit.plugin)
  if (metrics !== undefined && hasCallers) {
    const { registry } = metrics
    plugins.push(async (app) => { await app.register(metricsRoute, { registry, prefix: config.basePath }) })
  }
  let server: Awaited<ReturnType<typeof listenForMetrics>> | undefined
  return {
    observers: [metrics?.observer ?? [], audit ?? [], traces ?? []].flat() satisfies Observer[],
    plugins,
    /** The plugin that makes spans of requests. It has to be registered first. */
    tracing: traces?.plugin,
    auditState: audit && (() => audit.log.state),
    /** Opens the port of the metrics, and writes the first lines of the audit log. */
    async start (): Promise<void> {
      if (metrics !== undefined && port !== undefined) {
        server = await listenForMetrics(metrics.registry, { host, port })
        log.info({ url: server.url }, 'metrics for Prometheus')
      }
      audit?.start(options)
    },
    /** Opens the audit log again, after a rotation. @returns whether lines can be written */
    async reopen (): Promise<boolean> {
      await audit?.log.reopen()
      return audit === undefined || audit.log.state === 'working'
    },
    async close (): Promise<void> {
      await server?.close()
      await audit?.close()
    }
  }
}

/** Whether an OpenTelemetry SDK is loaded (`--import`). Version 1 of its API registers it under this symbol. */
function hasSdk (): boolean {
  const registered: unknown = Reflect.get(globalThis, Symbol.for('opentelemetry.js.api.1'))
  return typeof registered === 'object' && registered !== null && 'trace' in registered
}
