import { createLocalDisk, type Disk } from '../disk.ts'
import { RefusedError } from '../refused.ts'
import { type ForeignEnd, readNetworkMounts } from './network-mounts.ts'

/** What is open was found by its path before. */
const DESCRIPTORS = '/proc/self/fd/'

/**
 * The same disk, without the network disks that hold nothing of what is served. Whoever may write a skill can make a link that
 * leads to one, and a call to a dead mount never returns. A path that leads there is refused as `outside`.
 * @param foreignEnd asked at each call; undefined while there are no such disks, and nothing is followed
 */
export function avoidForeign<D extends Disk> (disk: D, foreignEnd: () => ForeignEnd | undefined): D {
  function refuse (path: string, followsLast = true): void {
    const end = path.startsWith(DESCRIPTORS) ? undefined : foreignEnd()?.(path, followsLast)
    if (end !== undefined) throw new RefusedError('outside', new Error(`${end} is on a network disk that nothing is served from`))
  }
  const checked = <T>(call: (path: string) => T, followsLast?: boolean) => (path: string): T => {
    refuse(path, followsLast)
    return call(path)
  }
  return {
    ...disk,
    stat: checked(disk.stat),
    lstat: checked(disk.lstat, false),
    readlink: checked(disk.readlink, false),
    readdir: checked(disk.readdir),
    readdirBytes: checked(disk.readdirBytes),
    opendir: checked(disk.opendir),
    open (path, flags) {
      refuse(path)
      return disk.open(path, flags)
    },
    // It is outside of all that is served, as far as anybody can tell without asking that disk.
    realpath: (path) => foreignEnd()?.(path) ?? disk.realpath(path)
  }
}

/** The local disk for folders that are read without a guard: links in them lead to no other network disks than the folders do. */
export function createLocalDiskFor (folders: readonly string[]): Disk {
  const foreignEnd = readNetworkMounts().apartFrom(folders)
  return avoidForeign(createLocalDisk(), () => foreignEnd)
}
