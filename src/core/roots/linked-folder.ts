import type { Disk } from '../disk/disk.ts'
import { isVersionControl } from '../disk/hidden.ts'
import { pathFrom } from '../disk/paths.ts'
import { asRefused, isUnknown } from '../disk/refused.ts'

/** What a link in a root leads to: a skill, a file, a folder that may not be served, or nothing; `unknown` until a disk has told. */
export type LinkMeaning =
  | { readonly kind: 'skill' | 'outside', readonly realPath: string }
  | { readonly kind: 'file' | 'nothing' | 'unknown' }

const FILE: LinkMeaning = { kind: 'file' }
const NOTHING: LinkMeaning = { kind: 'nothing' }
const UNKNOWN: LinkMeaning = { kind: 'unknown' }

/**
 * Real paths of the folders that a link in a root may lead into: the root, and those that its owner allows.
 * @param allowed absolute paths; one that is missing allows nothing
 */
export async function linkContainers (disk: Disk, rootRealPath: string, allowed: readonly string[]): Promise<readonly string[]> {
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
 * Finds out what a link in a root leads to. A folder is a skill if it lies strictly below a container, and in no version
 * control folder of it. An allowed folder itself is outside: the setting that names its parent allows it.
 * @param containers from `linkContainers`
 * @param known the last known answer, for a disk that fails or does not answer
 */
export async function resolveLink (disk: Disk, containers: readonly string[], path: string, known: LinkMeaning = UNKNOWN): Promise<LinkMeaning> {
  let realPath = ''
  try {
    realPath = await disk.realpath(path)
    const stats = await disk.stat(realPath)
    if (stats?.isDirectory() !== true) return stats === undefined ? NOTHING : FILE
    const paths = containers.map((container) => pathFrom(container, realPath)).filter((path) => path !== undefined)
    if (paths.some((path) => path !== '' && !isVersionControl(path.split('/')))) return { kind: 'skill', realPath }
    return paths.every((path) => path === '') && realPath !== containers[0] ? { kind: 'outside', realPath } : NOTHING
  } catch (error) {
    const { refusal } = asRefused(error)
    if (refusal === 'outside') return { kind: 'outside', realPath }
    return refusal === 'io_error' ? known : NOTHING
  }
}

export function isSameMeaning (a: LinkMeaning, b: LinkMeaning): boolean {
  return a.kind === b.kind && ('realPath' in a ? a.realPath : '') === ('realPath' in b ? b.realPath : '')
}
