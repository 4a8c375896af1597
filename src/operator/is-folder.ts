import { stat } from 'node:fs/promises'

/** Whether a folder is there. A file of its own: `help` loads nothing of the disk's. */
export async function isFolder (path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true
}
