import { dirname, resolve } from 'node:path'
import { isHiddenPath } from '../core/read/hidden.ts'
import type { Disk } from '../core/read/disk.ts'
import { createLocalDiskFor } from '../core/disk/network/local-disk.ts'
import { readNetworkMounts } from '../core/disk/network/network-mounts.ts'
import { FolderWatcher, watchLocal, watchWithNode } from '../core/watch/folder-watcher.ts'

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
  }, (folder, onEvent) => mounts.has(folder) ? watchWithNode(folder, onEvent) : watchLocal(mounts, folder, onEvent))
  // Watches alone keep no process running.
  const keepAlive = setInterval(() => {}, LONG_MS)
  signal.addEventListener('abort', () => { wake() }, { once: true })
  const absolutePaths = paths.map((path) => resolve(cwd, path))
  try {
    while (!signal.aborted) {
      const next = new Promise<void>((resolve) => { wake = resolve })
      // Before the job: what is saved while it runs is not missed.
      mounts = readNetworkMounts()
      const disk = createLocalDiskFor(absolutePaths)
      const folders = new Set<string>()
      for (const path of absolutePaths) await addFolders(folders, disk, path)
      for (const folder of watcher.folders) if (!folders.has(folder)) watcher.remove(folder)
      for (const folder of folders) if (!watcher.has(folder)) watcher.add(folder)
      if (!watcher.isIdle) await new Promise<void>((resolve) => { idle = resolve })
      await job()
      await next
    }
  } finally {
    clearInterval(keepAlive)
    clearTimeout(timer)
    watcher.close()
  }
}

/** Adds the folder of a path and all below it, without hidden ones. */
async function addFolders (folders: Set<string>, disk: Disk, path: string): Promise<void> {
  const pending = [await isFolder(disk, path) ? path : dirname(path)]
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    try {
      folders.add(await disk.realpath(folder))
      for (const entry of await disk.readdir(folder)) {
        if (entry.isDirectory() && !isHiddenPath([entry.name])) pending.push(`${folder}/${entry.name}`)
      }
    } catch {
      // It went away: the next run lists what is there then.
    }
  }
}

async function isFolder (disk: Disk, path: string): Promise<boolean> {
  try {
    return (await disk.stat(path))?.isDirectory() === true
  } catch {
    return false
  }
}
