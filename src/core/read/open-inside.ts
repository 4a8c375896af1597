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
  /** Relative and lexically inside, from `parseRelativePath` or a directory listing. */
  readonly path: string
  /** What else than hidden names is not served. */
  readonly filter?: PathFilter | undefined
}

/** Linux on x64 and arm64; not in `fs.constants`. Opens a name without touching what it names. */
const O_PATH = 0o10000000
const NO_FOLLOW = constants.O_NOFOLLOW

const MAX_ATTEMPTS = 8

/**
 * Opens a file of a skill, or refuses: nothing else in the program does. Inode and path are checked on what was opened,
 * never on a name that could be swapped in between.
 * @param limit most bytes; a larger file is refused unread
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
      // What is missing, or may not be read, behind a link that leaves says something about the outside.
      const revealsExistence = refusal === 'not_found' || refusal === 'permission_denied'
      if ((refusal === 'outside' || revealsExistence) && await leadsOut(place)) throw new RefusedError('outside', error)
      // Otherwise it was moved out between opening it and asking where it is: the next one may be inside.
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
 * Linux: the kernel says where an opened file really is. `O_PATH`, so that a device or FIFO in the place of a file is
 * never opened for reading. The object that was checked is opened for that through its number, when it is read.
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
 * Elsewhere the system does not say where an opened file is: the path is resolved before and after, and compared with
 * what was opened. That closes accidents and most races, not a determined swap.
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
