import { accessSync, chmodSync, constants, mkdtempSync, statfsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'

/** Where Linux has a file system in memory; that of a container has 64 MiB as a rule. */
const MEMORY = '/dev/shm'
/** Several times what all tests have there at once. */
const NEEDED_BYTES = 4 * 2 ** 30

/**
 * Makes the folder for what tests write, thousands of small trees: in memory, where that takes a tenth of the CPU time that it
 * takes on a disk, and none of the waiting. Without room there it is `folder`.
 * @param root of the project, whose packages the programs in the folder find
 */
export function makeScratchFolder (root: string, folder: string): string {
  const isInMemory = hasRoom(MEMORY)
  const scratch = isInMemory ? mkdtempSync(join(MEMORY, 'skillserve-tests-')) : folder
  if (isInMemory) symlinkSync(join(root, 'node_modules'), join(scratch, 'node_modules'))
  // As /tmp is: some tests try what another user may read.
  chmodSync(scratch, 0o1777)
  return scratch
}

function hasRoom (folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize >= NEEDED_BYTES
  } catch {
    return false
  }
}
