import { spawnSync } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startProcess } from '../helper/process.ts'
import { skills, skillText } from '../helper/skills.ts'

/** A service that waits for the disk is known by the request that it does not answer. */
const DEADLINE_MS = 60_000

/**
 * Whoever opened /dev/fuse has to answer, and does not: each call to the disk hangs. Its process takes the mount with it when it
 * ends. The table of mounts says that the second folder is a network disk too; that one answers.
 */
const HANG = 'exec 9<>/dev/fuse && mount -i -t fuse hung "$hung" -o fd=9,rootmode=40000,user_id=0,group_id=0 || exit 1'

const MOUNT = `
  hung=$1 live=$2; shift 2
  ${HANG}
  table=$(printf '990 1 0:99 / %s rw - nfs4 server:/share rw\n' "$live"; cat /proc/$$/mountinfo)
  mount -t tmpfs tmpfs /mnt && printf '%s\n' "$table" > /mnt/table && mount --bind /mnt/table /proc/$$/mountinfo || exit 1
  exec "$@"`

/** Runs a command that finds a disk that hangs in one folder, and one that answers in another. No other process sees them. */
function withMounts (hung: string, live: string): readonly string[] {
  return ['unshare', '--map-root-user', '--mount', 'bash', '-c', MOUNT, 'bash', hung, live]
}

const folder = realpathSync(t.testdir({ dead: {}, live: skills('far'), local: skills('near') }))
const runBy = withMounts(join(folder, 'dead'), join(folder, 'live'))
const [command = '', ...args] = [...runBy, 'true']
const skip = spawnSync(command, args).status !== 0 && 'needs FUSE, and a user who may mount'

t.test('K53 K54: a root on a network disk that hangs fails its own requests, never those for local roots', { skip }, async (t) => {
  const service = await startProcess(t, { args: ['local', 'live', 'dead'], cwd: folder, runBy })
  const ask = async (path: string) => {
    const response = await fetch(`${service.url}${path}`, { signal: AbortSignal.timeout(DEADLINE_MS) })
    return { status: response.status, body: await response.json() as unknown }
  }
  const document = { status: 200, body: { documentation: skillText('near') } }
  const [near, other, readyz] = await Promise.all(['/skills/near', '/skills/other', '/readyz'].map(ask))
  t.match(near, document)
  t.match(other, { status: 503 })
  t.match(readyz, { body: { roots: [{ state: 'ok' }, {}, {}] } })
  for (let round = 0; round < 3; round++) t.match(await ask('/skills/near'), document)
  t.match(await ask('/livez'), { status: 200 })
  t.match(await ask('/skills/near/files'), { status: 200, body: { files: [{ path: 'SKILL.md' }] } })
})
