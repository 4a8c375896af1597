import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { openEvents } from '../helper/event-stream.ts'
import { startBalancer, startLoad } from '../helper/rolling-restart.ts'
import { type ServiceProcess, startProcess } from '../helper/process.ts'
import { openRaw, rawRequest, request } from '../helper/raw-http.ts'
import { until } from '../helper/skills.ts'

const EXAMPLES = fileURLToPath(new URL('../../skills/', import.meta.url))
const DELAY_SECONDS = 2

function exampleSkills (t: Test): string {
  const root = join(t.testdir(), 'skills')
  cpSync(EXAMPLES, root, { recursive: true })
  return root
}

async function startReplica (t: Test, root: string, port = 0): Promise<ServiceProcess> {
  return await startProcess(t, { args: [root], env: { PORT: String(port), SHUTDOWN_DELAY: String(DELAY_SECONDS) } })
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
