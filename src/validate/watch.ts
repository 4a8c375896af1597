import { once } from 'node:events'
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { watch } from 'chokidar'
import { isHiddenPath } from '../core/read/hidden.ts'
import { baseName } from '../core/shared/paths.ts'

/** Editors save in several steps: the events of one save are one run. */
const QUIET_MS = 100

/** How long the first run waits for the watcher, which may never be ready. */
const READY_MS = 1_000

/** Between two looks for a path that came back, or at which another folder lies now: a watch follows the folder. */
const LOOK_MS = 500

/**
 * Runs a job, and again after each change below the paths, until the signal ends it.
 * @param paths folders and files
 * @param job must not reject
 */
export async function runOnChanges (
  paths: readonly string[], cwd: string, job: () => Promise<void>, signal: AbortSignal
): Promise<void> {
  let wake = (): void => {}
  let timer: NodeJS.Timeout | undefined
  const roots = paths.map((path) => resolve(cwd, path))
  const changed = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => { wake() }, QUIET_MS)
  }
  // An error may be of one folder. What changed meanwhile is read by the next run.
  const open = () =>
    watch(roots, { ignoreInitial: true, ignored: (path) => !roots.includes(path) && isHiddenPath([baseName(path)]) })
      .on('all', changed).on('error', changed)
  let watcher = open()
  let ids = idsOf(roots)
  const looks = setInterval(() => {
    const now = idsOf(roots)
    if (now === ids) return
    ids = now
    void watcher.close()
    watcher = open()
    changed()
  }, LOOK_MS)
  signal.addEventListener('abort', () => { wake() }, { once: true })
  try {
    await Promise.race([once(watcher, 'ready'), sleep(READY_MS)])
    while (!signal.aborted) {
      // Before the job: what is saved while it runs is not missed.
      const next = new Promise<void>((resolve) => { wake = resolve })
      await job()
      await next
    }
  } finally {
    clearInterval(looks)
    clearTimeout(timer)
    await watcher.close()
  }
}

function idsOf (paths: readonly string[]): string {
  return paths.map((path) => {
    const stats = statSync(path, { throwIfNoEntry: false })
    // A new folder may get the number of the one before.
    return `${stats?.dev}:${stats?.ino}:${stats?.birthtimeMs}`
  }).join()
}
