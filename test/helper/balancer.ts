/**
 * A balancer like the simplest ones: round robin over the backends whose GET /readyz was 200 the last time, over connections
 * that it keeps. It never asks a second backend when one fails.
 */

import { EventEmitter, once } from 'node:events'
import { Agent, createServer, request as ask } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

export interface Balancer {
  readonly url: string
  /** Resolves when the balancer has found out whether a backend is ready. */
  noticed (port: number, isReady: boolean): Promise<void>
  close (): void
}

const CHECK_MS = 25

/** Resolves when every backend is ready: one that has just begun to listen may not have its first index. */
export async function createBalancer (ports: readonly number[]): Promise<Balancer> {
  const agent = new Agent({ keepAlive: true })
  const changes = new EventEmitter()
  const ready = new Set<number>()
  /** What the last check of a backend said that was not ready, for the message of a failure. */
  const refusals = new Map<number, string>()
  const closed = new AbortController()
  let next = 0

  async function check (port: number): Promise<void> {
    while (!closed.signal.aborted) {
      const refusal = await fetch(`http://127.0.0.1:${port}/readyz`, { headers: { connection: 'close' } }).then(async (response) => {
        const text = await response.text()
        return response.ok ? undefined : text
      }, ({ message, cause }: Error) => `${message} ${String(cause)}`)
      if (refusal === undefined) ready.add(port)
      else {
        ready.delete(port)
        refusals.set(port, `${new Date().toISOString()} ${refusal}`)
      }
      changes.emit('checked')
      await pause(CHECK_MS)
    }
  }

  const server = createServer((incoming, outgoing) => {
    const backends = [...ready]
    const port = backends[next++ % backends.length]
    const upstream = ask({ host: '127.0.0.1', port, agent, method: incoming.method, path: incoming.url }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502)
      response.pipe(outgoing)
      response.once('error', (error) => { outgoing.destroy(error) })
    })
    upstream.once('error', ({ message }) => {
      outgoing.writeHead(502).end(`${new Date().toISOString()} backend ${port} of ${backends.join(' and ')}: ${message}; last refusals: ${JSON.stringify(Object.fromEntries(refusals))}`)
    })
    incoming.pipe(upstream)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const noticed = async (port: number, isReady: boolean): Promise<void> => {
    while (ready.has(port) !== isReady) await once(changes, 'checked')
  }
  for (const port of ports) {
    void check(port)
    await noticed(port, true)
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    noticed,
    close: () => {
      closed.abort()
      agent.destroy()
      server.closeAllConnections()
      server.close()
    }
  }
}
