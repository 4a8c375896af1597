import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { descriptorPath } from '../disk.ts'
import { systemError } from '../../shared/system-errors.ts'
import { pathFrom } from '../paths.ts'
import { type HeldEntry, HeldPath } from './held-path.ts'
import { type FollowedPath, followPath, tracePath } from './trace-path.ts'

/**
 * File systems that ask another machine, or a process, and may never get an answer; by the names that the kernel has for them.
 * OrangeFS is pvfs2, mounts of Docker Desktop are fakeowner too. A cluster on shared disks waits for its other machines.
 */
const NETWORK_FILE_SYSTEM = /^(?:nfs4?|cifs|smb\w*|9p|fuse(?:\..*|blk)?|virtiofs|fakeowner|vboxsf|vmhgfs|prl_fs|autofs|ceph|afs|coda|lustre|glusterfs|beegfs|gpfs|pvfs2|panfs|wekafs|gfs2|ocfs2)$/

/** Where systemd has an automatic mount on each machine. No skill lies there, and following links would cost each call. */
const PROC = '/proc'

/** PATH_MAX of Linux, with the NUL at the end. */
const MAX_PATH_BYTES = 4096

interface Mount {
  readonly point: string
  readonly isNetwork: boolean
}

/** Where a path leads: to a foreign disk, or to what is held open. Undefined where it is neither, and the path itself may be asked for. */
export type PathEnd = { readonly foreign: string } | { readonly held: HeldEntry } | undefined

/** Network disks that hold nothing of some folders. */
export interface ForeignDisks {
  /**
   * Where a path leads, if that is one of these disks.
   * @param followsLast whether the path itself is followed, if it is a link; default true
   */
  endOf (path: string, followsLast?: boolean): string | undefined
  /**
   * Calls with what a path leads to, and with no path that may lead to these disks by then.
   * @throws an operating system error for what is missing, or may not be reached
   */
  reach<T> (path: string, followsLast: boolean, call: (end: PathEnd) => T): T
}

interface MountSurvey {
  /** Whether one of the folders, or a mount below it, lies on a network disk, or links on its way lead to one. */
  readonly isNetwork: boolean
  /** The network disks that none of the folders touches; undefined when there are none. */
  readonly foreign: ForeignDisks | undefined
}

/** Which paths lie on network disks, found out without touching any of these disks, but those that local folders lie below. Paths are absolute. */
export interface NetworkMounts {
  /** The path itself lies on a network disk. It is as real as it can be. */
  has (path: string): boolean
  /** The paths that decide which folder a path is: those of `tracePath`. */
  trace (path: string): Set<string>
  /**
   * Calls with a path of a local folder that leads nowhere else, whatever takes the folder's place.
   * @throws an operating system error, ENOENT for what leads to a network disk
   */
  reach<T> (folder: string, call: (path: string) => T): T
  /** The path, or a mount below it, lies on a network disk, or links on its way lead to one. */
  touches (path: string): boolean
  /** What `touches` says of these folders, and all that it does not say, of one moment: a link may lead elsewhere in the next. */
  survey (folders: readonly string[]): MountSurvey
}

/** @param text of `/proc/self/mountinfo`; without that file everything counts as local */
export function readNetworkMounts (text: string = readMountInfo()): NetworkMounts {
  const mounts = text.split('\n').map(parseMount).filter((mount) => mount !== undefined)
  const points = mounts.filter(({ isNetwork }) => isNetwork).map(({ point }) => point)

  /** The network disk that a path lies on. The deepest mount counts, and of several on one folder the last. */
  function pointOf (path: string): string | undefined {
    if (!points.some((point) => pathFrom(point, path) !== undefined)) return undefined
    const mount = mounts.reduce<Mount | undefined>((deepest, mount) =>
      pathFrom(mount.point, path) !== undefined && mount.point.length >= (deepest?.point.length ?? 0) ? mount : deepest, undefined)
    return mount?.isNetwork === true ? mount.point : undefined
  }

  const has = (path: string): boolean => pointOf(path) !== undefined

  /** What is not followed. A local folder below a network disk is reached through that disk in any case. */
  function stopsFor (folders: readonly string[]): (path: string) => boolean {
    const local = folders.filter((folder) => !has(folder))
    return (path) => has(path) && !local.some((folder) => pathFrom(path, folder) !== undefined)
  }

  /** Links may take the kernel to where no path is short enough to ask for: what comes after that is not known. */
  const leadsAway = (entry: string): boolean => has(entry) || isTooLong(entry)

  /** Without network disks nothing on the way can hang. */
  const follow: typeof followPath = points.length === 0 ? followPath : (path, isRemote, options = {}) => HeldPath.follow(path, isRemote, options, (followed) => followed)

  function pointsTouchedBy (path: string): readonly string[] {
    if (points.length === 0) return points
    // Of the trace, what is no part of the path as it is written: links have led there.
    const entries = [path, ...[...tracePath(path, stopsFor([path]), follow)].filter((entry) => pathFrom(entry, path) === undefined)]
    return entries.flatMap((entry) => points.filter((point) => pathFrom(entry, point) !== undefined || pointOf(entry) === point))
  }

  return {
    has,
    touches: (path) => pointsTouchedBy(path).length > 0,
    trace: (path) => tracePath(path, has, follow),
    reach (folder, call) {
      if (points.length === 0) return call(folder)
      return HeldPath.follow(folder, stopsFor([folder]), {}, (followed, held) => {
        if (has(folder) || leadsAway(followed.entry)) throw systemError('ENOENT', folder)
        return call(`${descriptorPath(held.end(followed).descriptor)}/.`)
      })
    },
    survey (folders) {
      const own = new Set(folders.flatMap(pointsTouchedBy))
      return { isNetwork: own.size > 0, foreign: points.every((point) => own.has(point)) ? undefined : foreignTo(folders, own) }
    }
  }

  /** @param own the network disks that the folders touch */
  function foreignTo (folders: readonly string[], own: ReadonlySet<string>): ForeignDisks {
    const passed = new Set([...own, ...points.filter((point) => folders.some((folder) => pathFrom(point, folder) !== undefined))])
    const stopsAt = stopsFor(folders)
    const foreignEnd = (path: string, { entry, rest }: FollowedPath): string | undefined => {
      if (!leadsAway(entry) || isTooLong(path)) return undefined
      const end = join(entry, ...rest)
      const first = pointOf(entry)
      const last = pointOf(end)
      return first !== undefined && passed.has(first) && (last === undefined || own.has(last)) ? undefined : end
    }
    return {
      endOf: (path, followsLast) => foreignEnd(path, follow(path, stopsAt, { followsLast })),
      reach: (path, followsLast, call) => HeldPath.follow(path, stopsAt, { followsLast }, (followed, held) => {
        const foreign = foreignEnd(path, followed)
        if (foreign !== undefined) return call({ foreign })
        return call(stopsAt(followed.entry) || isTooLong(path) ? undefined : { held: held.end(followed) })
      })
    }
  }
}

function isTooLong (path: string): boolean {
  return Buffer.byteLength(path) >= MAX_PATH_BYTES
}

/** proc_pid_mountinfo(5): the mount point is the fifth field, the type comes after a lone hyphen. */
function parseMount (line: string): Mount | undefined {
  const fields = line.split(' ')
  const point = fields[4]
  const type = fields[fields.indexOf('-', 6) + 1]
  if (point === undefined || type === undefined) return undefined
  return { point: unescapePath(point), isNetwork: NETWORK_FILE_SYSTEM.test(type) && pathFrom(PROC, point) === undefined }
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
