import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errorCode } from '../core/shared/system-errors.ts'
import { isFolder } from './is-folder.ts'

/**
 * Makes a folder that an operator has named, and those above it. Node's option `recursive` does not end where the system says
 * ENOENT although the folder above is there, as in /proc.
 * @param path absolute
 * @throws the system's error
 */
export async function makeFolder (path: string, mode?: number): Promise<void> {
  try {
    await mkdir(path, mode)
  } catch (error) {
    if (await isFolder(path)) return
    if (errorCode(error) !== 'ENOENT') throw error
    // Somebody else may make either folder at the same time.
    await makeFolder(dirname(path), mode)
    await mkdir(path, mode).catch(async (again: unknown) => { if (!await isFolder(path)) throw again })
  }
}
