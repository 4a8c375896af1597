import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

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

/** What a process is run by that finds a disk that hangs in one folder, and one that answers in another. No other process sees them. */
export function runWithMounts (hung: string, live: string): readonly string[] {
  return ['unshare', '--map-root-user', '--mount', 'bash', '-c', MOUNT, 'bash', hung, live]
}

function canMount (): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'hung-'))
  const [file = '', ...args] = [...runWithMounts(folder, folder), 'true']
  const { status } = spawnSync(file, args)
  rmdirSync(folder)
  return status === 0
}

export const noMounts = canMount() ? false : 'needs FUSE, and a user who may mount'
