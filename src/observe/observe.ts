import type { FastifyPluginAsync } from 'fastify'
import type { FollowedPolicy } from '../config/files/followed-file.ts'
import type { GateChange } from '../core/content/trust/trust-policy.ts'
import type { CoreLog } from '../core/shared/log.ts'
import type { Signal } from '../core/shared/signal.ts'
import type { SkillService } from '../core/service.ts'
import type { Observer } from '../http/observer.ts'
import type { AuditState } from '../http/readiness.ts'
import { type ClientOf, peerOf } from '../http/request/client-address.ts'
import { LogOutput } from '../log-output.ts'
import type { Readings } from './metrics/metrics.ts'
import type { MeasuredSkills } from './metrics/skill-metrics.ts'
import type { TracedSkills } from './traces.ts'

interface ObserveOptions {
  readonly skills: MeasuredSkills & TracedSkills & { namesNow (): readonly string[] }
  readonly version: string
  readonly log: CoreLog
  readonly metrics: WantedMetrics
  /** An absolute path, or `stdout`, which is the output that the log has too. */
  readonly audit?: WantedAudit | undefined
  /** Behind trusted proxies. */
  readonly clientOf: ClientOf | undefined
  readonly readings: Readings
}

interface WantedAudit {
  readonly path: string
  readonly isRequired: boolean
  readonly stdout: LogOutput
  /** See `AuditOptions`. */
  readonly salt: string | undefined
  /** All skills: their changes are in it. */
  readonly skills: Pick<SkillService, 'available' | 'subscribe'>
  readonly policies: readonly FollowedPolicy[]
  /** What a trust policy takes away and gives back. */
  readonly judged: Signal<GateChange> | undefined
}

/** Where the metrics can be read. Nowhere: nothing is counted. */
interface WantedMetrics {
  /** A port of their own. */
  readonly address: { readonly host: string, readonly port: number } | undefined
  /** Whether callers are told apart: then those with the scope read them at the service's own port, below `basePath`. */
  readonly hasCallers: boolean
  readonly basePath: string
  /** Whether reads are counted by skill. */
  readonly countsReads: boolean
}

/** What watches the service. Each part is loaded only where it is wanted. */
export interface Observation {
  readonly observers: readonly Observer[]
  readonly plugins: readonly FastifyPluginAsync[]
  auditState: () => AuditState
  /** Opens the port of the metrics, and begins the audit log. */
  start (): Promise<void>
  close (): Promise<void>
}

/** Stands for a part that is not wanted. */
const NOTHING: Observation = { observers: [], plugins: [], auditState: () => 'working', async start () {}, async close () {} }

export async function observe (options: ObserveOptions): Promise<Observation> {
  const audit = await openAudit(options)
  const metrics = await observeMetrics({ ...options, readings: { ...options.readings, auditDropped: audit.dropped } })
  const parts = [metrics, audit, await observeSpans(options)]
  return {
    observers: parts.flatMap(({ observers }) => observers),
    plugins: parts.flatMap(({ plugins }) => plugins),
    auditState: () => audit.auditState(),
    async start () { for (const part of parts) await part.start() },
    async close () { for (const part of parts) await part.close() }
  }
}

/** Where every version 1 of OpenTelemetry's API finds the SDK that `--import` has loaded. */
const OPENTELEMETRY = Symbol.for('opentelemetry.js.api.1')

async function observeSpans ({ skills, version, log, clientOf = peerOf }: ObserveOptions): Promise<Observation> {
  const registered: unknown = Reflect.get(globalThis, OPENTELEMETRY)
  if (typeof registered !== 'object' || registered === null || !('trace' in registered)) return NOTHING
  const [api, { Traces }] = await Promise.all([import('@opentelemetry/api'), import('./traces.ts')])
  log.info({}, 'an OpenTelemetry SDK is loaded: requests, tool calls and MCP requests are spans')
  return { ...NOTHING, observers: [new Traces(api, { version, clientOf, skills })] }
}

async function observeMetrics ({ skills, version, log, readings, metrics: { address, hasCallers, basePath, countsReads } }: ObserveOptions): Promise<Observation> {
  if (address === undefined && !hasCallers) return NOTHING
  const [{ createMetrics }, { listenForMetrics }, { metricsRoute }, { observeReads, SkillReads }] = await Promise.all([
    import('./metrics/metrics.ts'), import('./metrics/metrics-server.ts'), import('./metrics/metrics-route.ts'), import('./metrics/skill-reads.ts')
  ])
  const reads = countsReads ? new SkillReads({ namesNow: () => skills.namesNow() }) : undefined
  const metrics = createMetrics({ skills, version, readings: { ...readings, ...reads && { reads: () => reads.rows() } } })
  let close = (): void => {}
  return {
    ...NOTHING,
    observers: [metrics.observer, ...reads ? [observeReads(reads)] : []],
    plugins: hasCallers ? [async (app) => { await app.register(metricsRoute, { metrics, prefix: basePath }) }] : [],
    async start () {
      if (address === undefined) return
      const server = await listenForMetrics(metrics, address)
      close = () => { server.close() }
      log.info({ url: server.url }, 'metrics for Prometheus')
    },
    async close () {
      close()
      metrics.close()
    }
  }
}

async function openAudit ({ audit: wanted, version, log, clientOf = peerOf }: ObserveOptions): Promise<Observation & { dropped (): number }> {
  if (wanted === undefined) return { ...NOTHING, dropped: () => 0 }
  const { path, isRequired, stdout, salt, skills, policies, judged } = wanted
  const [{ Audit }, { AuditFile }] = await Promise.all([import('./audit/audit.ts'), import('./audit/audit-file.ts')])
  const file = path === 'stdout' ? undefined : new AuditFile(path)
  const output = file === undefined ? stdout : new LogOutput(file)
  let lost = 0
  let reported = 0
  // Standard output has lines of the log too.
  const write = (line: string): void => {
    const before = output.lost
    output.write(line)
    lost += output.lost - before
  }
  const audit = new Audit({ output: { write }, last: file?.last, clientOf, isRequired, isWorking: () => output.keepsUp && (file?.isWorking ?? true), version, salt })
  output.dropped.subscribe(() => {
    const lines = lost - reported
    if (lines === 0) return
    reported = lost
    audit.lost(lines)
    log.warn({ lines, path }, 'lines of the audit log were dropped: its disk or reader did not take them')
  })
  file?.failed.subscribe((error) => {
    if (error === undefined) log.info({ path }, 'the audit log is written again')
    else log.warn({ path, code: error.code }, `the audit log cannot be written; ${isRequired ? 'nothing is read until it can' : 'its lines wait'}`)
  })
  // A second signal lets nothing be waited for.
  process.once('exit', () => {
    audit.closeNow()
    output.flushSync()
  })
  judged?.subscribe((change) => { audit.judged(change) })
  return {
    observers: [audit.observer],
    plugins: [audit.plugin],
    auditState: () => audit.state,
    dropped: () => audit.dropped + lost,
    async start () {
      audit.started()
      for (const policy of policies) audit.follow(policy)
      // The first index is no change.
      Promise.resolve(skills.available()).then(() => skills.subscribe((change) => { audit.catalogChanged(change) }), () => {})
      log.info({ path }, 'writing the audit log')
    },
    close: () => audit.close()
  }
}
