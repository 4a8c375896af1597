import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostOf, isLoopback } from '../../http/request/hosts.ts'
import type { Metrics } from './metrics.ts'
import { metricsType } from './exposition.ts'

const TIMEOUT_MS = 5_000
const MAX_CONNECTIONS = 32

interface MetricsServer {
  /** Of the address that it listens at. */
  readonly url: string
  close (): void
}

/**
 * `GET /metrics` on a port of its own. A listener of a few lines: no hook, log line or limit of the service applies to it. On a
 * loopback address it answers to loopback names alone, as the service does: a web page can give its own name that address.
 */
export async function listenForMetrics (metrics: Pick<Metrics, 'write'>, { host, port }: { readonly host: string, readonly port: number }): Promise<MetricsServer> {
  const server = createServer({ requestTimeout: TIMEOUT_MS, headersTimeout: TIMEOUT_MS }, ({ method, url, headers }, response) => {
    if (isLoopback(host) && !isLoopback(hostOf(headers.host ?? '') ?? '')) response.writeHead(403).end('Ask for localhost or 127.0.0.1: METRICS_HOST chooses another address\n')
    else if (url?.split('?', 1)[0] !== '/metrics') response.writeHead(404).end('The metrics are at /metrics\n')
    else if (method !== 'GET' && method !== 'HEAD') response.writeHead(405, { allow: 'GET, HEAD' }).end()
    else {
      const type = metricsType(headers.accept)
      response.writeHead(200, { 'content-type': type, 'cache-control': 'no-store' }).end(method === 'HEAD' ? undefined : metrics.write(type))
    }
  })
  server.maxConnections = MAX_CONNECTIONS
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, resolve)
  })
  return {
    url: urlOf(server),
    close: () => {
      server.close()
      server.closeAllConnections()
    }
  }
}

function urlOf (server: Server): string {
  const { address, port, family } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}/metrics`
}
