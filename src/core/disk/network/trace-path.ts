import { lstatSync, readlinkSync } from 'node:fs'
import { dirname, isAbsolute, join, parse, sep } from 'node:path'

/** Links that are followed in one path, as many as Linux follows. */
const MAX_LINKS = 40

/**
 * The paths that decide which folder `path` is: each link on the way, and the end, or the first entry that is missing. The folders
 * that they are in are real paths.
 * @param isRemote paths that must not be touched: the trace ends there
 */
export function tracePath (path: string, isRemote: (path: string) => boolean): Set<string> {
  const decisive = new Set<string>()
  let { root: folder } = parse(path)
  let rest = namesOf(path)
  let links = 0
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    // The folder is a real path, as it is for the kernel: above it is not where the link to it lies.
    if (name === '..') {
      folder = dirname(folder)
      continue
    }
    const entry = join(folder, name)
    if (isRemote(entry)) return decisive.add(entry)
    const target = linkTarget(entry)
    if (target !== undefined && ++links <= MAX_LINKS) {
      decisive.add(entry)
      if (isAbsolute(target)) folder = parse(target).root
      rest = [...namesOf(target), ...rest]
    } else if (rest.length === 0 || !isFolder(entry)) return decisive.add(entry)
    else folder = entry
  }
  return decisive.add(folder)
}

function namesOf (path: string): string[] {
  return path.slice(parse(path).root.length).split(sep).filter((name) => name !== '' && name !== '.')
}

function linkTarget (path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

function isFolder (path: string): boolean {
  try {
    return lstatSync(path).isDirectory()
  } catch {
    return false
  }
}
