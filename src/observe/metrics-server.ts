import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyPluginAsync } from 'fastify'
import { authorityOf, hostOf, isLoopback } from '../http/request/hosts.ts'
import type { Metrics } from './metrics.ts'

/** The scope that a token needs for the metrics. */
export const METRICS_SCOPE = 'metrics:read'

const TIMEOUT_MS = 5_000
const MAX_CONNECTIONS = 32

interface MetricsServer {
  readonly url: string
  close (): void
}

interface ListenAddress {
  readonly host: string
  readonly port: number
}

type MetricsText = Pick<Metrics, 'text' | 'contentType'>

/** `GET /metrics` on the service's own port, for callers with the scope: they name roots, and may name skills. */
export const metricsRoute: FastifyPluginAsync<{ readonly metrics: MetricsText }> = async (app, { metrics }) => {
  const config = { reads: 'nothing', scope: METRICS_SCOPE, load: 'probe' } as const
  app.get('/metrics', { schema: { hide: true }, config }, async (_request, reply) => {
    reply.header('content-type', metrics.contentType).header('cache-control', 'no-store')
    return await metrics.text()
  })
}

/**
 * `GET /metrics` on a port of its own, without hooks, log lines or limits of the service. On a loopback address it
 * answers only to loopback names, as the service does: a web page can give its own name that address.
 */
export async function listenForMetrics (metrics: MetricsText, { host, port }: ListenAddress): Promise<MetricsServer> {
  const server = createServer({ requestTimeout: TIMEOUT_MS, headersTimeout: TIMEOUT_MS }, (request, response) => {
    const { method, url, headers } = request
    if (isLoopback(host) && !isLoopback(hostOf(headers.host ?? '') ?? '')) {
      response.writeHead(403).end('Ask for localhost or 127.0.0.1: METRICS_HOST chooses another address\n')
    } else if (url?.split('?', 1)[0] !== '/metrics') {
      response.writeHead(404).end('The metrics are at /metrics\n')
    } else if (method !== 'GET' && method !== 'HEAD') {
      response.writeHead(405, { allow: 'GET, HEAD' }).end()
    } else {
      metrics.text().then((text) => {
        response.writeHead(200, { 'content-type': metrics.contentType, 'cache-control': 'no-store' })
        response.end(method === 'HEAD' ? undefined : text)
      }, (error: Error) => { response.destroy(error) })
    }
  })
  server.maxConnections = MAX_CONNECTIONS
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, resolve)
  })
  const { address, port: bound } = server.address() as AddressInfo
  return {
    url: `http://${authorityOf(address)}:${bound}/metrics`,
    close: () => {
      server.close()
      server.closeAllConnections()
    }
  }
}
