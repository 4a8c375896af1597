import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { noMounts, runWithMounts } from '../helper/hung-mount.ts'
import { startProcess } from '../helper/process.ts'
import { skills, skillText } from '../helper/skills.ts'

t.test('K53 K54: a root on a disk that hangs fails its own requests, and delays none for a local root', { skip: noMounts }, async (t) => {
  const base = realpathSync(t.testdir({ dead: {}, live: skills('far'), local: skills('near') }))
  const service = await startProcess(t, { args: ['local', 'live', 'dead'], cwd: base, runBy: runWithMounts(join(base, 'dead'), join(base, 'live')) })
  const ask = async (path: string) => {
    const response = await fetch(`${service.url}${path}`, { signal: AbortSignal.timeout(60_000) })
    return { status: response.status, body: await response.json() as unknown }
  }
  for (let round = 0; round < 3; round++) t.match(await ask('/skills/near'), { status: 200, body: { documentation: skillText('near') } })
  t.equal((await ask('/livez')).status, 200)
  t.match(await ask('/skills/near/files'), { status: 200, body: { files: [{ path: 'SKILL.md' }] } })
})
