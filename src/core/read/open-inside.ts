import { type BigIntStats, constants } from 'node:fs'
import { isHidden, type PathFilter } from './hidden.ts'
import { pathFrom } from '../shared/paths.ts'
import { MAX_ATTEMPTS } from '../shared/limits.ts'
import { closeQuietly, descriptorPath, type Disk, O_PATH } from './disk.ts'
import { OpenFile } from './open-file.ts'
import { asRefused, changed, RefusedError } from './refused.ts'

/** A FIFO must not block, a terminal must not become ours. */
const READ_ONLY = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY
const NO_FOLLOW = constants.O_NOFOLLOW

/**
 * Opens a file of a skill, or refuses: nothing else in the program does. Inode and path are checked on what was opened,
 * never on a name that could be swapped in between.
 *
 * @param folder real path of the skill's folder, itself verified to lie below its root
 * @param path relative and lexically inside, from `parseRelativePath` or a directory listing
 * @param filter what else than hidden names is not served
 * @throws {RefusedError} `changed` when the path moved during each attempt
 */
export async function openInside (disk: Disk, folder: string, path: string, filter?: PathFilter): Promise<OpenFile> {
  const segments = path.split('/')
  // A path that is hidden both as a file and as a folder is not opened.
  if (isHiddenTo(path, true, filter) && isHiddenTo(path, false, filter)) throw new RefusedError('not_found')
  const open = disk.hasProc ? openThroughProc : openByComparison
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    try {
      return await open(disk, folder, path, filter)
    } catch (error) {
      const refused = asRefused(error)
      // Whether a link leads to a place that may not be searched says something about the outside: refuse it as a link.
      if (refused.refusal === 'permission_denied' && await mayLeave(disk, folder, segments)) {
        throw new RefusedError('outside', error)
      }
      if (refused.refusal === 'not_found' && await isMissingOutside(disk, folder, segments)) {
        throw new RefusedError('outside', error)
      }
      // Without a link on the way the file was moved out between opening it and asking where it is: the next one may
      // be inside.
      if (refused.refusal !== 'outside' || await hasLink(disk, folder, segments)) throw refused
    }
  }
  throw changed('the file, or its skill, moved each time that it was opened')
}

/** Whether a path that could not be opened leads out of the skill, or has a link on the way and nobody can tell. */
async function mayLeave (disk: Disk, folder: string, segments: readonly string[]): Promise<boolean> {
  try {
    pathWithin(folder, await disk.realpath(`${folder}/${segments.join('/')}`))
    return false
  } catch (error) {
    return error instanceof RefusedError || await hasLink(disk, folder, segments)
  }
}

/**
 * Whether the last folder on the way to what is missing lies outside: a link that leaves does not tell what is behind
 * it.
 */
async function isMissingOutside (disk: Disk, folder: string, segments: readonly string[]): Promise<boolean> {
  if (segments.length === 1 || !await hasLink(disk, folder, segments)) return false
  let last = folder
  try {
    for (let depth = 1; depth < segments.length; depth++) {
      last = await disk.realpath(`${folder}/${segments.slice(0, depth).join('/')}`)
    }
  } catch {
    // The first that is missing: a link that dangles is not found itself, as is all below it.
  }
  return pathFrom(folder, last) === undefined
}

async function hasLink (disk: Disk, folder: string, segments: readonly string[]): Promise<boolean> {
  try {
    for (let depth = 1; depth <= segments.length; depth++) {
      const stats = await disk.lstat(`${folder}/${segments.slice(0, depth).join('/')}`)
      if (stats === undefined || stats.isSymbolicLink()) return stats !== undefined
    }
  } catch {
    // The first segment that cannot be searched: what comes after it is inside all the same.
  }
  return false
}

/**
 * Linux: the kernel says where an opened file really is. `O_PATH` first, so that a device or FIFO in the place of a
 * file is never opened for reading. Then the object that was checked is opened through its number.
 */
async function openThroughProc (disk: Disk, folder: string, path: string, filter?: PathFilter): Promise<OpenFile> {
  const handle = await disk.open(`${folder}/${path}`, O_PATH)
  try {
    const link = descriptorPath(handle)
    const realPath = pathWithin(folder, await disk.readlink(link))
    const stats = await disk.fstat(handle)
    checkServable(path, stats.nlink === 0n ? realPath.replace(/ \(deleted\)$/, '') : realPath, stats, filter)
    return new OpenFile(disk, await openChecked(disk, link, stats), stats)
  } finally {
    await closeQuietly(() => disk.close(handle))
  }
}

/** @throws {RefusedError} `permission_denied` with the size: a file that is too large as well is refused as that */
async function openChecked (disk: Disk, link: string, { size }: BigIntStats): Promise<number> {
  try {
    return await disk.open(link, READ_ONLY)
  } catch (error) {
    const { refusal } = asRefused(error)
    throw refusal === 'permission_denied' ? new RefusedError(refusal, error, size) : error
  }
}

/**
 * Elsewhere the system does not say where an opened file is: the path is resolved before and after, and compared with
 * what was opened. That closes accidents and most races, not a determined swap.
 */
async function openByComparison (disk: Disk, folder: string, path: string, filter?: PathFilter): Promise<OpenFile> {
  const real = await disk.realpath(`${folder}/${path}`)
  const realPath = pathWithin(folder, real)
  const descriptor = await disk.open(real, READ_ONLY | NO_FOLLOW)
  try {
    const stats = await disk.fstat(descriptor)
    const named = await disk.lstat(real)
    if (await disk.realpath(real) !== real || named?.ino !== stats.ino || named.dev !== stats.dev) {
      throw new RefusedError('outside')
    }
    checkServable(path, realPath, stats, filter)
    return new OpenFile(disk, descriptor, stats)
  } catch (error) {
    await closeQuietly(() => disk.close(descriptor))
    throw error
  }
}

/** Containment is decided first, so that a link to the outside reveals nothing about its target. */
function pathWithin (folder: string, path: string): string {
  const below = pathFrom(folder, path)
  if (below === undefined) throw new RefusedError('outside')
  return below === '' ? '.' : below
}

/**
 * Hidden names count for the path asked for and for what a link led to. A link may lead through names that begin with
 * `..`, as those of a mounted ConfigMap do.
 */
function checkServable (path: string, realPath: string, stats: BigIntStats, filter?: PathFilter): void {
  const isFolder = stats.isDirectory()
  const visible = realPath.split('/').filter((name) => !name.startsWith('..')).join('/') || '.'
  if (isHiddenTo(visible, isFolder, filter)) throw new RefusedError('not_found')
  if (isFolder) throw new RefusedError('is_directory')
  if (isHiddenTo(path, false, filter)) throw new RefusedError('not_found')
  if (!stats.isFile()) throw new RefusedError('not_regular')
}

/** The skill's own folder is never hidden; a slash at the end is not part of a name. */
function isHiddenTo (path: string, isFolder: boolean, filter?: PathFilter): boolean {
  const name = path.endsWith('/') ? path.slice(0, -1) : path
  return name !== '.' && isHidden(name, isFolder, filter)
}
