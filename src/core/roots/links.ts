import { isVersionControl } from '../read/hidden.ts'
import { pathFrom } from '../shared/paths.ts'
import type { Disk } from '../read/disk.ts'
import { asRefused, isUnknown } from '../read/refused.ts'

/**
 * What a link in a root leads to: a skill, a file, a folder that may not be served, or nothing. `unknown` while a disk
 * does not say.
 */
export type LinkTarget =
  | { readonly kind: 'skill' | 'outside', readonly realPath: string }
  | { readonly kind: 'file' | 'nothing' | 'unknown' }

/**
 * Real paths of the folders that a link in a root may lead into, the root first.
 * @param allowed absolute paths; one that is missing allows nothing
 */
export async function linkContainers (
  disk: Disk, rootRealPath: string, allowed: readonly string[]
): Promise<readonly string[]> {
  const containers = [rootRealPath]
  for (const folder of allowed) {
    try {
      containers.push(await disk.realpath(folder))
    } catch (error) {
      if (isUnknown(error)) containers.push(folder)
    }
  }
  return containers
}

/**
 * Finds out what a link in a root leads to. A folder is a skill if it lies in the root, or is or lies in an allowed
 * folder, and in no version control folder of it.
 * @param containers from `linkContainers`
 */
export async function resolveLink (disk: Disk, containers: readonly string[], path: string): Promise<LinkTarget> {
  let realPath = ''
  try {
    realPath = await disk.realpath(path)
    const stats = await disk.stat(realPath)
    if (stats === undefined) return { kind: 'nothing' }
    if (!stats.isDirectory()) return { kind: 'file' }
    const [root = '', ...allowed] = containers
    if (realPath === root) return { kind: 'nothing' }
    const inFolders = [root, ...allowed].map((folder) => pathFrom(folder, realPath))
    const below = inFolders.filter((inside) => inside !== undefined)
    if (below.length === 0) return { kind: 'outside', realPath }
    return below.some((inside) => !isVersionControl(inside.split('/')))
      ? { kind: 'skill', realPath }
      : { kind: 'nothing' }
  } catch (error) {
    const refused = asRefused(error)
    if (refused.refusal === 'outside') return { kind: 'outside', realPath }
    return isUnknown(refused) ? { kind: 'unknown' } : { kind: 'nothing' }
  }
}
