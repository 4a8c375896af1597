import { once } from 'node:events'
import { dirname, resolve, sep } from 'node:path'
import { watch } from 'chokidar'
import { isHiddenPath } from '../core/read/hidden.ts'
import { baseName } from '../core/shared/paths.ts'

/** Editors save in several steps: the events of one save are one run. */
const QUIET_MS = 100

/**
 * Runs a job, and again after each change below the paths, until the signal ends it. What changes before the watcher is
 * ready causes no event.
 * @param paths folders and files
 * @param job must not reject
 */
export async function runOnChanges (
  paths: readonly string[], cwd: string, job: () => Promise<void>, signal: AbortSignal
): Promise<void> {
  const roots = paths.map((path) => resolve(cwd, path))
  // A path that is removed and made again is an event of the folder above.
  const parents = roots.map(dirname)
  const isInside = (path: string) => roots.some((root) => path.startsWith(root + sep))
  const ignored = (path: string) => !roots.includes(path) && !parents.includes(path) &&
    (!isInside(path) || isHiddenPath([baseName(path)]))
  let running = Promise.resolve()
  let timer: NodeJS.Timeout | undefined
  const runLater = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => { running = running.then(job) }, QUIET_MS)
  }
  const watcher = watch(parents, { ignoreInitial: true, ignored })
  // An error may be of one folder.
  watcher.on('ready', runLater).on('all', runLater).on('error', runLater)
  runLater()
  await once(signal, 'abort')
  clearTimeout(timer)
  await watcher.close()
  await running
}
