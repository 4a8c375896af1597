import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs'
import { open } from 'node:fs/promises'

/** The opening of a pipe without a writer would not return. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK

/**
 * The bytes of a file that an operator has named.
 * @throws {Error} the disk's, or one for what is no regular file: who reads a pipe may wait without end
 */
export async function readRegularFile (path: string): Promise<Buffer> {
  const file = await open(path, FLAGS)
  try {
    refuseOthers(await file.stat())
    return await file.readFile()
  } finally {
    await file.close()
  }
}

/** The same, at once. */
export function readRegularFileSync (path: string): Buffer {
  const descriptor = openSync(path, FLAGS)
  try {
    refuseOthers(fstatSync(descriptor))
    return readFileSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Of a folder, the disk itself says what it is. */
function refuseOthers (stats: Stats): void {
  if (!stats.isFile() && !stats.isDirectory()) throw new Error('it is no regular file')
}
