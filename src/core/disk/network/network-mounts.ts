import { readFileSync } from 'node:fs'
import { pathFrom } from '../paths.ts'
import { tracePath } from './trace-path.ts'

/** File systems that ask another machine, or a process, and may never get an answer; by the names that the kernel has for them. */
const NETWORK_FILE_SYSTEM = /^(?:nfs4?|cifs|smb\w*|9p|fuse(?:\..*|blk)?|virtiofs|ceph|afs|vboxsf|lustre|glusterfs|beegfs)$/

interface Mount {
  readonly point: string
  readonly isNetwork: boolean
}

/** Which paths lie on network disks, found out without touching any of these disks. Paths are absolute. */
export interface NetworkMounts {
  /** The path itself lies on a network disk. It is as real as it can be. */
  has (path: string): boolean
  /** The path, or a mount below it, lies on a network disk, or links on its way lead to one. */
  touches (path: string): boolean
}

/** @param text of `/proc/self/mountinfo`; without that file everything counts as local */
export function readNetworkMounts (text: string = readMountInfo()): NetworkMounts {
  const mounts = text.split('\n').map(parseMount).filter((mount) => mount !== undefined)
  const points = mounts.filter(({ isNetwork }) => isNetwork).map(({ point }) => point)
  // The deepest mount counts, and of several on one folder the last.
  const has = (path: string): boolean => points.length > 0 && mounts.reduce<Mount | undefined>((deepest, mount) =>
    pathFrom(mount.point, path) !== undefined && mount.point.length >= (deepest?.point.length ?? 0) ? mount : deepest, undefined)?.isNetwork === true
  const touchesAsWritten = (path: string): boolean => has(path) || points.some((point) => pathFrom(path, point) !== undefined)
  return {
    has,
    // Of the trace, what is no part of the path as it is written: links have led there.
    touches: (path) => points.length > 0 && (touchesAsWritten(path) || [...tracePath(path, has)].some((entry) => pathFrom(entry, path) === undefined && touchesAsWritten(entry)))
  }
}

/** proc_pid_mountinfo(5): the mount point is the fifth field, the type comes after a lone hyphen. */
function parseMount (line: string): Mount | undefined {
  const fields = line.split(' ')
  const point = fields[4]
  const type = fields[fields.indexOf('-', 6) + 1]
  if (point === undefined || type === undefined) return undefined
  return { point: unescapePath(point), isNetwork: NETWORK_FILE_SYSTEM.test(type) }
}

/** Blanks and backslashes are written as octal numbers of bytes; the rest is left as it is. */
function unescapePath (text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_match, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

function readMountInfo (): string {
  try {
    return readFileSync('/proc/self/mountinfo', 'utf8')
  } catch {
    return ''
  }
}
