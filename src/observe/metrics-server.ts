import { type FastifyPluginAsync, fastify } from 'fastify'
import type { Registry } from 'prom-client'
import { hostOf, isLoopback } from '../http/request/hosts.ts'

const TIMEOUT_MS = 5_000

type Exposed = Pick<Registry, 'metrics' | 'contentType'>

/** `GET /metrics` on the service's own port. It needs a scope, since metrics contain names of roots and skills. */
export const metricsRoute: FastifyPluginAsync<{ readonly registry: Exposed }> = async (app, { registry }) => {
  const config = { reads: 'nothing', scope: 'metrics:read', load: 'probe' } as const
  app.get('/metrics', { schema: { hide: true }, config }, async (_request, reply) => {
    reply.header('content-type', registry.contentType).header('cache-control', 'no-store')
    return await registry.metrics()
  })
}

/**
 * Listens on a port for the metrics alone, without log lines or limits. On a loopback address it only accepts loopback
 * host names: a web page can make its own host name resolve to that address.
 */
export async function listenForMetrics (
  registry: Exposed, { host, port }: { readonly host: string, readonly port: number }
): Promise<{ readonly url: string, close (): Promise<void> }> {
  const app = fastify({ forceCloseConnections: true, requestTimeout: TIMEOUT_MS })
  app.addHook('onRequest', async (request, reply) => {
    if (!isLoopback(host) || isLoopback(hostOf(request.headers.host ?? '') ?? '')) return
    await reply.code(403).send('Ask for localhost or 127.0.0.1, or choose another address with METRICS_HOST\n')
  })
  await app.register(metricsRoute, { registry })
  const url = `${await app.listen({ host, port })}/metrics`
  return { url, close: async () => { await app.close() } }
}
