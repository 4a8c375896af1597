import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { noMounts, runWithMounts } from '../helper/hung-mount.ts'
import { type ServiceProcess, startProcess } from '../helper/process.ts'
import { skills } from '../helper/skills.ts'

/** A service that waits for the disk is known by the request that it does not answer. */
const DEADLINE_MS = 30_000

async function ask ({ url }: ServiceProcess, path: string): Promise<{ status: number, body: unknown }> {
  const response = await fetch(`${url}${path}`, { signal: AbortSignal.timeout(DEADLINE_MS) }).catch((cause: unknown) => { throw new Error(`no answer for ${path}`, { cause }) })
  return { status: response.status, body: await response.json() }
}

t.test('K54: a root on a network disk that hangs fails its own requests, never those for local roots', { skip: noMounts }, async (t) => {
  const base = realpathSync(t.testdir({ dead: {}, live: {}, local: skills('one') }))
  const service = await startProcess(t, { args: ['local', 'dead'], cwd: base, runBy: runWithMounts(join(base, 'dead'), join(base, 'live')) })
  const [one, other, readyz] = await Promise.all(['/skills/one', '/skills/other', '/readyz'].map((path) => ask(service, path)))
  t.match(one, { status: 200, body: { skill_name: 'one' } })
  t.equal(other?.status, 503, JSON.stringify(other))
  t.match(readyz, { body: { roots: [{ state: 'ok' }, {}] } })
  t.match(await ask(service, '/skills/one/files'), { status: 200 })
})
