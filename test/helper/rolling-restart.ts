/** Requests without a pause while replicas are replaced one after another. */

import { Agent, request as ask } from 'node:http'
import { pipeline } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { startServer } from './fault-server.ts'
import type { ProcessOwner } from './process.ts'
import { until } from './skills.ts'

const TARGETS = ['/skills', '/skills/calculator', '/catalog', '/skills/calculator/archive.zip',
  '/.well-known/agent-skills/index.json']
const CHECK_MS = 25

export interface Load {
  /** How many requests were answered, and what was wrong with some of them. */
  stop (): Promise<{ readonly answered: number, readonly failures: readonly string[] }>
}

/** Three clients: two keep their connections, and one makes a new one for each request. */
export function startLoad (url: string): Load {
  const stopped = new AbortController()
  const failures: string[] = []
  let answered = 0

  async function ask (headers: Readonly<Record<string, string>>): Promise<void> {
    for (let count = 0; !stopped.signal.aborted; count++) {
      const target = TARGETS[count % TARGETS.length] ?? '/'
      const outcome = await fetch(`${url}${target}`, { headers }).then(async (response) => {
        const body = Buffer.from(await response.arrayBuffer())
        return response.ok ? undefined : `${response.status} ${body.toString('utf8', 0, 1_000)}`
      }, (error: Error) => error.message)
      answered++
      if (outcome !== undefined) failures.push(`${target}: ${outcome}`)
    }
  }

  const clients = [ask({}), ask({}), ask({ connection: 'close' })]
  return {
    stop: async () => {
      stopped.abort()
      await Promise.all(clients)
      return { answered, failures }
    }
  }
}

/**
 * A balancer like the simplest ones: round robin over the backends whose GET /readyz was 200 at the last check, over
 * connections that it keeps. It never asks a second backend when one fails.
 */
export async function startBalancer (t: ProcessOwner, ports: readonly number[]) {
  const agent = new Agent({ keepAlive: true })
  const ready = new Set<number>()
  const closed = new AbortController()
  let next = 0

  async function check (port: number): Promise<void> {
    while (!closed.signal.aborted) {
      const headers = { connection: 'close' }
      const isReady = await fetch(`http://127.0.0.1:${port}/readyz`, { headers }).then(({ ok }) => ok, () => false)
      if (isReady) ready.add(port)
      else ready.delete(port)
      await pause(CHECK_MS)
    }
  }

  const { url } = await startServer(t, (incoming, outgoing) => {
    const port = [...ready][next++ % ready.size]
    const { method, url: path } = incoming
    const upstream = ask({ host: '127.0.0.1', port, agent, method, path }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502)
      pipeline(response, outgoing, () => {})
    })
    upstream.once('error', ({ message }) => {
      outgoing.writeHead(502).end(`backend ${port} of ${[...ready].join(' and ')}: ${message}`)
    })
    incoming.pipe(upstream)
  })
  t.teardown(() => {
    closed.abort()
    agent.destroy()
  })
  for (const port of ports) void check(port)
  await until(() => ready.size === ports.length)
  return { url, isReady: (port: number) => ready.has(port) }
}
