import type { FastifyPluginAsync, FastifyPluginCallback } from 'fastify'
import type { TrustChange } from '../core/shared/origin.ts'
import type { CoreLog } from '../core/shared/log.ts'
import type { SkillService } from '../core/service.ts'
import type { Observer } from '../http/observer.ts'
import type { AuditState } from '../http/readiness.ts'
import type { FollowedPolicy } from '../config/files/followed-file.ts'
import { Audit, type AuditOptions } from './audit.ts'
import { type MeasuredSkills, Metrics, type Readings } from './metrics.ts'
import { listenForMetrics, metricsRoute } from './metrics-server.ts'

interface ObserveOptions {
  readonly skills: MeasuredSkills
  readonly version: string
  readonly log: CoreLog
  readonly metrics: WantedMetrics
  readonly audit?: WantedAudit | undefined
  readonly readings: Readings
}

interface WantedAudit extends Pick<AuditOptions, 'path' | 'isRequired' | 'stdout' | 'salt'> {
  /** All skills: their changes are in the audit log. */
  readonly skills: Pick<SkillService, 'available' | 'subscribe'>
  readonly policies: readonly FollowedPolicy[]
  /** The lock and the trust file: they take skills away and give them back. */
  readonly trust: { on (event: 'verdict', listener: (change: TrustChange) => void): void } | undefined
}

/** Where the metrics can be read. Nowhere: nothing is counted. */
interface WantedMetrics {
  /** A port of their own. */
  readonly address: { readonly host: string, readonly port: number } | undefined
  /** Whether there are callers: those with the scope read them at the service's own port, below `basePath`. */
  readonly hasCallers: boolean
  readonly basePath: string
  /** Whether reads are counted by skill. */
  readonly countsReads: boolean
}

/** What observes the service. */
export interface Observation {
  readonly observers: readonly Observer[]
  readonly plugins: readonly FastifyPluginAsync[]
  /** Makes spans of requests; registered before all other plugins. */
  readonly tracing: FastifyPluginCallback | undefined
  auditState (): AuditState
  /** Opens the port of the metrics, and begins the audit log. */
  start (): Promise<void>
  /** Opens the audit log again, after a rotation. */
  reopen (): void
  close (): Promise<void>
}

export async function observe (options: ObserveOptions): Promise<Observation> {
  const { skills, version, log, metrics: { address, hasCallers, basePath, countsReads }, audit: wantedAudit } = options
  const audit = wantedAudit && new Audit({ ...wantedAudit, version, log })
  const auditDropped = (): number => audit?.dropped ?? 0
  const metrics = address !== undefined || hasCallers
    ? new Metrics({ skills, version, countsReads, readings: { ...options.readings, auditDropped } })
    : undefined
  const traces = hasSdk() ? new (await import('./traces.ts')).Traces(version) : undefined
  if (traces !== undefined) log.info({}, 'an OpenTelemetry SDK is loaded: requests and tool calls are spans')
  const plugins: FastifyPluginAsync[] = audit === undefined ? [] : [audit.plugin]
  if (metrics !== undefined && hasCallers) {
    plugins.push(async (app) => { await app.register(metricsRoute, { metrics, prefix: basePath }) })
  }
  let closeServer = (): void => {}
  return {
    observers: [metrics ?? [], audit ?? [], traces ?? []].flat(),
    plugins,
    tracing: traces?.plugin,
    auditState: () => audit?.state ?? 'working',
    async start () {
      if (metrics !== undefined && address !== undefined) {
        const server = await listenForMetrics(metrics, address)
        closeServer = server.close
        log.info({ url: server.url }, 'metrics for Prometheus')
      }
      if (audit === undefined || wantedAudit === undefined) return
      audit.started()
      const { path, policies, skills, trust } = wantedAudit
      for (const policy of policies) audit.follow(policy)
      trust?.on('verdict', (change) => { audit.judged(change) })
      // The first index is not a change.
      skills.available().then(() => skills.subscribe((names) => { audit.catalogChanged(names) }), () => {})
      log.info({ path }, 'writing the audit log')
    },
    reopen () { audit?.reopen() },
    async close () {
      closeServer()
      await audit?.close()
    }
  }
}

/** Whether `--import` has loaded an OpenTelemetry SDK: every version 1 of its API registers it here. */
function hasSdk (): boolean {
  const registered: unknown = Reflect.get(globalThis, Symbol.for('opentelemetry.js.api.1'))
  return typeof registered === 'object' && registered !== null && 'trace' in registered
}
