import type { FastifyPluginAsync } from 'fastify'
import { metricsType } from './exposition.ts'
import type { Metrics } from './metrics.ts'

/** The scope that a token needs for the metrics. */
export const METRICS_SCOPE = 'metrics:read'

/** `GET /metrics` on the service's own port, for callers with the scope: they name roots, and may name skills. */
export const metricsRoute: FastifyPluginAsync<{ readonly metrics: Pick<Metrics, 'write'> }> = async function metricsRoute (app, { metrics }) {
  app.get('/metrics', { schema: { hide: true }, config: { reads: 'nothing', scope: METRICS_SCOPE, load: 'probe' } }, async ({ headers }, reply) => {
    const type = metricsType(headers.accept)
    reply.header('content-type', type).header('cache-control', 'no-store')
    return metrics.write(type)
  })
}
