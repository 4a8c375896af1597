import { type BigIntStats, constants } from 'node:fs'
import { pathFrom } from '../shared/paths.ts'
import { errorCode } from '../shared/system-errors.ts'
import { closeQuietly, type Disk } from './disk.ts'
import { isHidden, type PathFilter } from './hidden.ts'
import { OpenFile, READ_ONLY } from './open-file.ts'
import { asRefused, changed, RefusedError } from './refused.ts'

export interface FilePlace {
  readonly disk: Disk
  /** Real path of the skill's folder, itself verified to lie below its root. */
  readonly folder: string
  /** Relative path that does not leave the skill, from `parseRelativePath` or a directory listing. */
  readonly path: string
  /** Filter of files that are not served, in addition to hidden names. */
  readonly filter?: PathFilter | undefined
}

/** Opens a name without touching the file. Missing in `fs.constants`; value for Linux on x64 and arm64. */
const O_PATH = 0o10000000
const NO_FOLLOW = constants.O_NOFOLLOW

const MAX_ATTEMPTS = 8

/**
 * Opens a file of a skill, or throws. No other code opens files of skills. Inode and path of the opened file are
 * checked, never a name that could be swapped in between.
 * @param limit largest size in bytes; a larger file is refused unread
 * @throws {RefusedError} `changed` when the path moved during each attempt
 */
export async function openInside (place: FilePlace, limit = Infinity): Promise<OpenFile> {
  const { path, filter } = place
  // A path that is hidden both as a file and as a folder is not opened.
  if (isHiddenTo(path, true, filter) && isHiddenTo(path, false, filter)) throw new RefusedError('not_found')
  const open = place.disk.hasProc ? openThroughProc : openByComparison
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    try {
      return await open(place, limit)
    } catch (error) {
      const refused = asRefused(error)
      const { refusal } = refused
      // Behind a link that leaves the skill, these errors would reveal what exists outside.
      const revealsExistence = refusal === 'not_found' || refusal === 'permission_denied'
      if ((refusal === 'outside' || revealsExistence) && await leadsOut(place)) throw new RefusedError('outside', error)
      // The file was moved out of the skill between opening and checking, so another attempt may succeed.
      if (refusal !== 'outside') throw refused
    }
  }
  throw changed('the file, or its skill, moved each time that it was opened')
}

/** Whether the last part of a path that can be resolved lies outside, or a link on it leads where access is denied. */
async function leadsOut ({ disk, folder, path }: FilePlace): Promise<boolean> {
  let last = folder
  let part = folder
  for (const segment of path.split('/')) {
    part += `/${segment}`
    try {
      last = await disk.realpath(part)
    } catch (error) {
      if (errorCode(error) === 'EACCES' && await isLink(disk, part)) return true
      break
    }
  }
  return pathFrom(folder, last) === undefined
}

async function isLink (disk: Disk, path: string): Promise<boolean> {
  try {
    return (await disk.lstat(path))?.isSymbolicLink() === true
  } catch {
    return false
  }
}

/**
 * Opens a file on Linux, where the kernel tells the real path of an opened file. With `O_PATH`, a device or FIFO is
 * never opened for reading. Later the checked file itself is opened for reading, through its descriptor.
 */
async function openThroughProc (place: FilePlace, limit: number): Promise<OpenFile> {
  const { disk, folder, path } = place
  const handle = await disk.open(`${folder}/${path}`, O_PATH)
  try {
    const realPath = pathWithin(folder, await disk.readlink(`/proc/self/fd/${handle}`))
    const stats = await disk.fstat(handle)
    checkServable(place, stats.nlink === 0n ? realPath.replace(/ \(deleted\)$/, '') : realPath, stats, limit)
    return new OpenFile(disk, handle, stats, false)
  } catch (error) {
    await closeQuietly(disk, handle)
    throw error
  }
}

/**
 * Opens a file on other systems, which do not tell where an opened file is. The path is resolved before and after, and
 * compared with the opened file. This covers accidents and most races, but not a determined attacker.
 */
async function openByComparison (place: FilePlace, limit: number): Promise<OpenFile> {
  const { disk, folder, path } = place
  const real = await disk.realpath(`${folder}/${path}`)
  const realPath = pathWithin(folder, real)
  const descriptor = await disk.open(real, READ_ONLY | NO_FOLLOW)
  try {
    const stats = await disk.fstat(descriptor)
    const named = await disk.lstat(real)
    if (await disk.realpath(real) !== real || named?.ino !== stats.ino || named.dev !== stats.dev) {
      throw new RefusedError('outside')
    }
    checkServable(place, realPath, stats, limit)
    return new OpenFile(disk, descriptor, stats, true)
  } catch (error) {
    await closeQuietly(disk, descriptor)
    throw error
  }
}

/** Returns the path in the skill. Checked first, so that a link to the outside reveals nothing about its target. */
function pathWithin (folder: string, path: string): string {
  const below = pathFrom(folder, path)
  if (below === undefined) throw new RefusedError('outside')
  return below === '' ? '.' : below
}

/**
 * Refuses hidden, special and too large files. Both the requested path and the real path must be visible. A link may
 * lead through names that begin with `..`, as those of a mounted ConfigMap do.
 */
function checkServable ({ path, filter }: FilePlace, realPath: string, stats: BigIntStats, limit: number): void {
  const isFolder = stats.isDirectory()
  const visible = realPath.split('/').filter((name) => !name.startsWith('..')).join('/') || '.'
  if (isHiddenTo(visible, isFolder, filter)) throw new RefusedError('not_found')
  if (isFolder) throw new RefusedError('is_directory')
  if (isHiddenTo(path, false, filter)) throw new RefusedError('not_found')
  if (!stats.isFile()) throw new RefusedError('not_regular')
  if (stats.size > limit) throw new RefusedError('too_large', undefined, stats.size)
}

/** The skill's own folder is never hidden. */
function isHiddenTo (path: string, isFolder: boolean, filter?: PathFilter): boolean {
  const name = path.endsWith('/') ? path.slice(0, -1) : path
  return name !== '.' && isHidden(name, isFolder, filter)
}
