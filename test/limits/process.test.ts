import t from 'tap'
import { startProcess } from '../helper/process.ts'
import { openRaw, request } from '../helper/raw-http.ts'
import { skills } from '../helper/skills.ts'

/** A search is three units: more than the 1,001 that a caller may have at once of one skill, whatever the setting says. */
const SEARCH = request('GET', '/catalog?q=demo')
const REQUESTS = 350

t.test('K67: on a loopback address without callers nothing is limited, unless the setting says so', async (t) => {
  const root = t.testdir(skills('demo'))
  for (const [limits, statuses] of [['auto', [200]], ['off', [200]], ['on', [200, 429]]] as const) {
    const { url, stop } = await startProcess(t, { args: [root], env: { LIMITS: limits, LIMIT_RATE: '1', LIMIT_BURST: '1' } })
    const last = request('GET', '/catalog?q=demo', { headers: ['Connection: close'] })
    const connection = (await openRaw(url)).send(Buffer.concat([...Array(REQUESTS - 1).fill(SEARCH), last]))
    await connection.closed()
    const answers = Array.from(connection.received.toString('latin1').matchAll(/HTTP\/1\.1 (\d+)/g), ([, status]) => Number(status))
    t.equal(answers.length, REQUESTS)
    t.strictSame([...new Set(answers)].sort(), statuses, limits)
    await stop()
  }
})
