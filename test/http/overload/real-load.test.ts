import t from 'tap'
import { startProcess } from '../../helper/process.ts'
import { freePort } from '../../helper/proxies.ts'
import { jsonRequest, openRaw, rawRequest, request } from '../../helper/raw-http.ts'
import { skills, until } from '../../helper/skills.ts'

const BODY = { x: Array(300_000).fill({}) }

/** The server reads all clients in one iteration of the event loop. They send so much that it takes this long to parse. */
const LOAD_MS = 800

function countClients (): number {
  const text = JSON.stringify(BODY)
  const times = Array.from({ length: 3 }, () => {
    const start = performance.now()
    JSON.parse(text)
    return performance.now() - start
  })
  return Math.ceil(LOAD_MS / Math.min(...times))
}

t.test('K68: under real load what costs most is 503 with Retry-After, probes are answered, and afterwards everything is', async (t) => {
  const metricsPort = String(await freePort())
  const service = await startProcess(t, { args: [t.testdir(skills('one'))], env: { METRICS_PORT: metricsPort } })
  // Under load the first index takes its time, and /readyz says so.
  await until(async () => (await rawRequest(service.url, request('GET', '/readyz'))).status === 200)
  const body = jsonRequest('POST', '/agent/tools/list_skills', BODY)
  const over = new AbortController()
  const loading = Promise.all(Array.from({ length: countClients() }, async () => {
    let connection = await openRaw(service.url)
    while (!over.signal.aborted) {
      if (connection.ended) connection = await openRaw(service.url)
      await connection.send(body).response({ timeoutMs: 60_000 }).catch(() => {})
    }
    connection.destroy()
  }))
  await service.printed('the service is overloaded')
  let refused = await rawRequest(service.url, request('GET', '/catalog'), { timeoutMs: 60_000 })
  await until(async () => {
    if (refused.status !== 503) refused = await rawRequest(service.url, request('GET', '/catalog'), { timeoutMs: 60_000 })
    return refused.status === 503
  })
  t.match(refused, { headers: { 'retry-after': /^[1-9]\d*$/, 'content-type': 'application/problem+json' } })
  t.match(refused.json(), { code: 'overloaded' })
  await until(async () => /^skillserve_overload_level [12]$/m.test((await rawRequest(`http://127.0.0.1:${metricsPort}`, request('GET', '/metrics'), { timeoutMs: 60_000 })).text))
  for (const probe of ['/livez', '/readyz']) t.equal((await rawRequest(service.url, request('GET', probe), { timeoutMs: 60_000 })).status, 200, probe)
  over.abort()
  await loading
  await service.printed('the service is no longer overloaded')
  // A level that ended and began again under the load ends a little later.
  await until(async () => (await rawRequest(service.url, request('GET', '/catalog'))).status === 200)
  t.match(await service.stop(), { code: 0, stderr: '' })
})
