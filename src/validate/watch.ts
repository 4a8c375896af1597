import { readdirSync, realpathSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isHiddenPath } from '../core/disk/hidden.ts'
import { readNetworkMounts } from '../core/disk/network/network-mounts.ts'
import { FolderWatcher, watchWithNode } from '../core/watch/folder-watcher.ts'

/** Editors save in several steps: the events of one save are one run. */
const QUIET_MS = 100

const LONG_MS = 1_000_000_000

/**
 * Runs a job, and again after each change in folders, until the signal ends it.
 * @param paths folders and files
 * @param job must not reject
 */
export async function runOnChanges (paths: readonly string[], cwd: string, job: () => Promise<void>, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  let wake = (): void => {}
  const changed = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => { wake() }, QUIET_MS)
  }
  let idle = (): void => {}
  let mounts = readNetworkMounts()
  const watcher = new FolderWatcher({
    onChange (folder, entry) {
      if (entry === '') return
      // A watch follows the folder, not the path: another one may be there now.
      if (watcher.has(`${folder}/${entry}`)) watcher.renew(`${folder}/${entry}`)
      changed()
    },
    onError: changed,
    onMissed: changed,
    onIdle: () => { idle() }
  }, (folder, onEvent) => {
    // A link may be in the place of a local folder by now. A watch follows it, and waits for a disk that hangs.
    if (!mounts.has(folder) && mounts.leadsTo(folder)) throw new Error(`${folder} is no local folder`)
    return watchWithNode(folder, onEvent)
  })
  // Watches alone keep no process running.
  const keepAlive = setInterval(() => {}, LONG_MS)
  signal.addEventListener('abort', () => { wake() }, { once: true })
  try {
    while (!signal.aborted) {
      const next = new Promise<void>((resolve) => { wake = resolve })
      // Before the job: what is saved while it runs is not missed.
      mounts = readNetworkMounts()
      const folders = new Set(paths.flatMap((path) => foldersBelow(resolve(cwd, path))))
      for (const folder of watcher.folders) if (!folders.has(folder)) watcher.remove(folder)
      for (const folder of folders) if (!watcher.has(folder)) watcher.add(folder)
      if (!watcher.isIdle) await new Promise<void>((resolve) => { idle = resolve })
      await job()
      if (!signal.aborted) await next
    }
  } finally {
    clearInterval(keepAlive)
    clearTimeout(timer)
    watcher.close()
  }
}

/** The folder of a path and all below it, without hidden ones. */
function foldersBelow (path: string): readonly string[] {
  const start = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? path : dirname(path)
  const folders: string[] = []
  const pending = [start]
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    try {
      folders.push(realpathSync(folder))
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        if (entry.isDirectory() && !isHiddenPath([entry.name])) pending.push(`${folder}/${entry.name}`)
      }
    } catch {
      // It went away: the next run lists what is there then.
    }
  }
  return folders
}
