import { basename, dirname } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import { isHiddenPath } from '../../core/read/hidden.ts'

/**
 * Watches a folder and what is below it, but no hidden folders. The folder above reports that it comes, goes, or is
 * another link.
 * @param path absolute, as configured
 * @param realPath where the folder is now; undefined while it is missing
 */
export function watchFolder (path: string, realPath = path): FSWatcher {
  // A watched folder reports the files in it.
  const watched = [dirname(path), path, realPath]
  return watch(watched, {
    ignored: (each, stats) => stats?.isFile() === true || (!watched.includes(each) &&
      (!each.startsWith(`${realPath}/`) || isHiddenPath([basename(each)]))),
    followSymlinks: false,
    ignoreInitial: true,
    // The server keeps the process running, and nothing else has to.
    persistent: false
  })
}
