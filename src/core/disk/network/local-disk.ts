import { closeSync, constants, openSync } from 'node:fs'
import { createLocalDisk, descriptorPath, type Disk, type FolderReader, isDescriptorPath, undefinedIfMissing } from '../disk.ts'
import { errorCode, systemError } from '../../shared/system-errors.ts'
import { foreignRefusal, type GetForeign } from './avoid-foreign.ts'
import type { HeldEntry } from './held-path.ts'
import { type PathEnd, readNetworkMounts } from './network-mounts.ts'

/**
 * The local disk, without the network disks that hold nothing of what is served: as `avoidForeign`. Everybody waits for a call, so none
 * is made by a path. A link may have taken the place of what was checked, so what was checked is asked, by its descriptor.
 */
export function createLocalDiskApart (foreign: GetForeign): Disk {
  const disk = createLocalDisk()

  function reach<T> (path: string, followsLast: boolean, call: (end: PathEnd) => T): T {
    const disks = isDescriptorPath(path) ? undefined : foreign()
    return disks === undefined ? call(undefined) : disks.reach(path, followsLast, call)
  }

  /** @param ofHeld default: the same call, by the descriptor's path */
  const held = <T>(byPath: (path: string) => T, ofHeld?: (held: HeldEntry) => T, followsLast = true) => (path: string): T => reach(path, followsLast, (end) => {
    if (end === undefined) return byPath(path)
    if ('foreign' in end) throw foreignRefusal(end.foreign)
    return ofHeld === undefined ? named(path, () => byPath(descriptorPath(end.held.descriptor))) : ofHeld(end.held)
  })

  return {
    ...disk,
    stat: orMissing(held(disk.stat, ({ descriptor }) => disk.fstat(descriptor))),
    lstat: orMissing(held(disk.lstat, ({ descriptor }) => disk.fstat(descriptor), false)),
    readlink: held(disk.readlink, ({ path, target }) => {
      if (target === undefined) throw systemError('EINVAL', path)
      return target
    }, false),
    readdir: held(disk.readdir),
    readdirBytes: held(disk.readdirBytes),
    opendir: held(disk.opendir, ({ path, descriptor }) => readOpen(disk, named(path, () => openSync(descriptorPath(descriptor), constants.O_DIRECTORY)))),
    open: (path, flags) => held((path) => disk.open(path, flags), ({ descriptor, target }) => {
      if (target !== undefined) throw systemError('ELOOP', path)
      return named(path, () => disk.open(descriptorPath(descriptor), flags & ~constants.O_NOFOLLOW))
    }, (flags & constants.O_NOFOLLOW) === 0)(path),
    // Of a foreign disk: as `avoidForeign`.
    realpath: (path) => reach(path, true, (end) => {
      if (end === undefined) return disk.realpath(path)
      return 'foreign' in end ? end.foreign : end.held.path
    })
  }
}

/** The local disk for folders that are read without a guard: links in them lead to no other network disks than the folders do. */
export function createLocalDiskFor (folders: readonly string[]): Disk {
  const { foreign } = readNetworkMounts().survey(folders)
  return createLocalDiskApart(() => foreign)
}

/** Reads a folder that stays open until then. Where a file system tells no types, Node asks for that of each entry by the folder's path. */
async function readOpen (disk: Disk, descriptor: number): Promise<FolderReader> {
  try {
    const folder = await disk.opendir(descriptorPath(descriptor))
    return {
      read: () => folder.read(),
      async close () {
        closeSync(descriptor)
        await folder.close()
      }
    }
  } catch (error) {
    closeSync(descriptor)
    throw error
  }
}

function orMissing<T> (call: (path: string) => T): (path: string) => T | undefined {
  return (path) => {
    try {
      return call(path)
    } catch (error) {
      return undefinedIfMissing(error)
    }
  }
}

/** Errors name the path, and not the descriptor that stands for it. */
function named<T> (path: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    throw systemError(errorCode(error), path)
  }
}
