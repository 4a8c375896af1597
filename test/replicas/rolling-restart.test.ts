import { cpSync } from 'node:fs'
import { Agent, request as ask } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { openEvents } from '../helper/event-stream.ts'
import { startServer } from '../helper/fault-server.ts'
import { startLoad } from '../helper/rolling-restart.ts'
import { type ServiceProcess, startProcess } from '../helper/process.ts'
import { openRaw, rawRequest, request } from '../helper/raw-http.ts'
import { until } from '../helper/skills.ts'

const EXAMPLES = fileURLToPath(new URL('../../skills/', import.meta.url))
const DELAY_SECONDS = 2
/** Time between two checks of a backend. */
const CHECK_MS = 25

function exampleSkills (t: Test): string {
  const root = join(t.testdir(), 'skills')
  cpSync(EXAMPLES, root, { recursive: true })
  return root
}

async function startReplica (t: Test, root: string, port = 0): Promise<ServiceProcess> {
  return await startProcess(t, { args: [root], env: { PORT: String(port), SHUTDOWN_DELAY: String(DELAY_SECONDS) } })
}

/**
 * A balancer like the simplest ones: round robin over the backends whose GET /readyz was 200 at the last check, over
 * connections that it keeps. It never asks a second backend when one fails.
 */
async function startBalancer (t: Test, ports: readonly number[]) {
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

t.test('K91: a process that is to stop is not ready, serves on, ends its streams one after ' +
  'another, and stops', async (t) => {
  const service = await startReplica(t, exampleSkills(t))
  const kept = await openRaw(service.url)
  t.equal((await kept.send(request('GET', '/skills')).response()).headers.connection, 'keep-alive')
  const streams = await Promise.all([openEvents(service.url), openEvents(service.url)])
  service.signal('SIGTERM')
  await service.printed('"stopping"')
  const [ready, list, late] = await Promise.all([
    rawRequest(service.url, request('GET', '/readyz')),
    rawRequest(service.url, request('GET', '/skills')),
    openEvents(service.url)
  ])
  t.match(ready, { status: 503, text: /stopping/ })
  t.match(list, { status: 200, headers: { connection: 'close' } })
  t.match(late.head, /^HTTP\/1.1 200/, 'a stream that comes meanwhile is not refused')
  t.match(await kept.send(request('GET', '/skills')).response(), { status: 200, headers: { connection: 'close' } })
  for (const stream of streams) {
    await stream.until('its end', () => stream.complete)
    t.notOk(service.log().some(({ msg }) => msg === 'stopped'), 'before the process ends')
  }
  t.match(await service.ended, { code: 0, stderr: '' })
})

t.test('K91: a rolling restart under load fails no request', async (t) => {
  const root = exampleSkills(t)
  const replicas = await Promise.all([startReplica(t, root), startReplica(t, root)])
  const balancer = await startBalancer(t, replicas.map(({ port }) => port))
  const load = startLoad(balancer.url)
  let isSlow = false
  for (const { port, signal, ended } of replicas) {
    const start = performance.now()
    signal('SIGTERM')
    await until(() => !balancer.isReady(port))
    isSlow ||= performance.now() - start > DELAY_SECONDS * 1_000
    t.match(await ended, { code: 0, stderr: '' })
    await startReplica(t, root, port)
    await until(() => balancer.isReady(port))
  }
  const { answered, failures } = await load.stop()
  t.comment(`${answered} answers`)
  if (isSlow) t.comment('skipped: this machine took longer to notice than the delay lasts')
  else t.strictSame(failures, [])
})
