import { type Disk, isDescriptorPath } from '../disk.ts'
import { RefusedError } from '../refused.ts'
import type { ForeignDisks } from './network-mounts.ts'

/** Asked at each call; undefined while there are no such disks, and nothing is followed. */
export type GetForeign = () => ForeignDisks | undefined

/**
 * The same disk, without the network disks that hold nothing of what is served. Whoever may write a skill can make a link that
 * leads to one, and a call to a dead mount never returns. A path that leads there is refused as `outside`.
 *
 * For a disk behind a guard: a link that is exchanged between check and call costs its folder, and nobody else.
 */
export function avoidForeign<D extends Disk> (disk: D, foreign: GetForeign): D {
  function refuse (path: string, followsLast = true): void {
    const end = isDescriptorPath(path) ? undefined : foreign()?.endOf(path, followsLast)
    if (end !== undefined) throw foreignRefusal(end)
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
    realpath: (path) => foreign()?.endOf(path) ?? disk.realpath(path)
  }
}

export function foreignRefusal (end: string): RefusedError {
  return new RefusedError('outside', new Error(`${end} is on a network disk that nothing is served from`))
}
