import { lstatSync, readlinkSync } from 'node:fs'
import { dirname, isAbsolute, join, parse, sep } from 'node:path'

/** Links that are followed in one path, as many as Linux follows. */
const MAX_LINKS = 40

/** What an entry of a folder is: a folder, a link with its text, or something else, which may be nothing. */
export interface FoundEntry {
  readonly isFolder: boolean
  readonly target?: string | undefined
}

/** Looks at an entry without following it. The folder is a real path: the root, one above the last one, or what was found last. */
type LookUp = (folder: string, name: string) => FoundEntry

export interface FollowOptions {
  /** Whether the path itself is followed, if it is a link. Default true. */
  readonly followsLast?: boolean | undefined
  /** Receives each link on the way. */
  readonly onLink?: (link: string) => void
  /** Default: by the paths of the entries. */
  readonly lookUp?: LookUp | undefined
}

/** The real path of the end, of the first entry that is missing, or of the first that must not be touched; and the names below it. */
export interface FollowedPath {
  readonly entry: string
  readonly rest: readonly string[]
}

/**
 * Follows a path by the texts of its links, one entry after the other.
 * @param isRemote paths that must not be touched: the path is not followed beyond
 */
export function followPath (path: string, isRemote: (path: string) => boolean, { followsLast = true, onLink, lookUp = lookUpByPath }: FollowOptions = {}): FollowedPath {
  let { root: folder } = parse(path)
  let rest = namesOf(path)
  let links = 0
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    // The folder is a real path, as it is for the kernel: above it is not where the link to it lies.
    if (name === '..') folder = dirname(folder)
    if (name === '..' || name === '.') continue
    const entry = join(folder, name)
    if (isRemote(entry)) return { entry, rest }
    const { isFolder, target } = lookUp(folder, name)
    if (target !== undefined && (followsLast || rest.length > 0) && ++links <= MAX_LINKS) {
      onLink?.(entry)
      if (isAbsolute(target)) folder = parse(target).root
      rest = [...namesOf(target), ...rest]
    } else if (rest.length === 0 || !isFolder) return { entry, rest }
    else folder = entry
  }
  return { entry: folder, rest }
}

/**
 * The paths that decide which folder `path` is: each link on the way, and the end, or the first entry that is missing. The folders
 * that they are in are real paths.
 * @param isRemote paths that must not be touched: the trace ends there
 */
export function tracePath (path: string, isRemote: (path: string) => boolean, follow: typeof followPath): Set<string> {
  const decisive = new Set<string>()
  return decisive.add(follow(path, isRemote, { onLink: (link) => { decisive.add(link) } }).entry)
}

/** A separator at the end is a name too: only a folder has something below it. */
function namesOf (path: string): string[] {
  const names = path.slice(parse(path).root.length).split(sep).filter((name) => name !== '')
  return path.endsWith(sep) ? [...names, '.'] : names
}

function lookUpByPath (folder: string, name: string): FoundEntry {
  const path = join(folder, name)
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (stats?.isSymbolicLink() === true) return { isFolder: false, target: readlinkSync(path) }
    return { isFolder: stats?.isDirectory() === true }
  } catch {
    return { isFolder: false }
  }
}
