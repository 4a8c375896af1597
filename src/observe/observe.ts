import type { CoreLog } from '../core/ground/log.ts'
import type { Observer } from '../http/observer.ts'
import type { MeasuredSkills } from './metrics/metrics.ts'

export interface ObserveOptions {
  readonly skills: MeasuredSkills
  readonly version: string
  readonly log: CoreLog
  /** Where `/metrics` listens; absent: nowhere, and nothing is counted. */
  readonly metrics?: { readonly host: string, readonly port: number } | undefined
  /** Lines that the log has lost. */
  readonly logDropped: () => number
}

/** What watches the service. Each part is loaded only where it is wanted. */
export interface Observation {
  readonly observers: readonly Observer[]
  /** Opens the port of the metrics. */
  start (): Promise<void>
  close (): Promise<void>
}

export async function observe (options: ObserveOptions): Promise<Observation> {
  const parts = await Promise.all([options.metrics && observeMetrics(options, options.metrics)])
  const wanted = parts.filter((part) => part !== undefined)
  return {
    observers: wanted.flatMap(({ observers }) => observers),
    async start () { for (const part of wanted) await part.start() },
    async close () { for (const part of wanted) await part.close() }
  }
}

async function observeMetrics ({ skills, version, log, logDropped }: ObserveOptions, address: { readonly host: string, readonly port: number }): Promise<Observation> {
  const [{ createMetrics }, { listenForMetrics }] = await Promise.all([import('./metrics/metrics.ts'), import('./metrics/metrics-server.ts')])
  const metrics = createMetrics({ skills, version, readings: { logDropped } })
  let close = (): void => {}
  return {
    observers: [metrics.observer],
    async start () {
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
