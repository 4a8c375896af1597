import { readlink, realpath } from 'node:fs/promises'
import { dirname, resolve, sep } from 'node:path'
import { errorCode } from '../core/shared/system-errors.ts'

/** Where a file or folder is, or would be made. A link that leads nowhere yet is followed. */
export async function realPathOf (path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    const parent = dirname(path)
    if (parent === path) return path
    // Of links in a circle, the code is another.
    const target = errorCode(error) === 'ENOENT' ? await readlink(path).catch(() => undefined) : undefined
    if (target !== undefined) return await realPathOf(resolve(await realPathOf(parent), target))
    return resolve(await realPathOf(parent), path.slice(parent.length).replace(/^[/\\]+/, ''))
  }
}

export function isWithin (path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}
