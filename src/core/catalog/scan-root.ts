import { errorCode, type Disk } from '../disk/disk.ts'
import { withoutInvalidUtf8 } from '../disk/utf8-names.ts'
import { isHiddenPath } from '../disk/relative-path.ts'
import { isTrustworthy, signatureOf } from '../disk/signature.ts'
import { isSafeName } from '../skill-name.ts'
import type { Signature, SkillType } from '../skill.ts'
import { MAIN_FILE } from './main-files.ts'

/** A folder that is served as a skill. */
export interface SkillFolder {
  readonly name: string
  readonly type: SkillType
  /** Index of its root; lower wins. */
  readonly root: number
  /** Absolute path as configured, shown to agents. */
  readonly path: string
  /** Where it really is: below the root's real path. */
  readonly realPath: string
  /** Whether the entry in the root is a symbolic link. */
  readonly linked: boolean
}

/** What a scan of a root found. `failed` says nothing about the root: the last good scan stands. */
export type RootScan =
  | {
    readonly state: 'ok'
    readonly signature: Signature
    readonly isTrustworthy: boolean
    readonly realPath: string
    /** Whether the root holds a main file: somebody has named a skill instead of the folder of skills. */
    readonly isSkill: boolean
    readonly folders: ReadonlyMap<string, SkillFolder>
    /** Real paths of the links by name, undefined for a link that is no skill: their meaning may change without the root. */
    readonly links: ReadonlyMap<string, string | undefined>
  }
  | { readonly state: 'missing' | 'unreadable' }
  | { readonly state: 'failed', readonly cause: unknown }

export interface Root {
  /** Absolute path as configured. */
  readonly path: string
  readonly type: SkillType
  readonly index: number
}

/**
 * Lists the skills of one root. Reads names and types only, never a file.
 * @param known the links of the last good scan: a link whose disk does not answer keeps its meaning
 */
export async function scanRoot (disk: Disk, root: Root, known?: ReadonlyMap<string, string | undefined>): Promise<RootScan> {
  try {
    const scannedAt = Date.now()
    const realPath = await disk.realpath(root.path)
    const stats = await disk.stat(realPath)
    if (!stats?.isDirectory()) return { state: 'missing' }
    // Signature before names: a change in between shows as a difference at the next comparison.
    const signature = signatureOf(stats)
    const entries = await disk.readdir(realPath)
    const folders = new Map<string, SkillFolder>()
    const links = new Map<string, string | undefined>()
    let isSkill = false
    for (const entry of await withoutInvalidUtf8(disk, realPath, entries)) {
      if (!isSafeName(entry.name)) continue
      if (entry.isDirectory()) folders.set(entry.name, skillFolder(root, entry.name, join(realPath, entry.name), false))
      else if (entry.isSymbolicLink()) {
        const target = await resolveLinkedFolder(disk, realPath, join(realPath, entry.name), known?.get(entry.name))
        links.set(entry.name, target)
        if (target !== undefined) folders.set(entry.name, skillFolder(root, entry.name, target, true))
      } else if (MAIN_FILE.test(entry.name)) isSkill = true
    }
    return { state: 'ok', signature, isTrustworthy: isTrustworthy(signature, scannedAt), realPath, isSkill, folders, links }
  } catch (cause) {
    switch (errorCode(cause)) {
      case 'ENOENT':
      case 'ENOTDIR':
      case 'ELOOP':
      case 'ENAMETOOLONG':
        return { state: 'missing' }
      case 'EACCES':
      case 'EPERM':
        return { state: 'unreadable' }
      default:
        return { state: 'failed', cause }
    }
  }
}

function skillFolder ({ path, type, index }: Root, name: string, realPath: string, linked: boolean): SkillFolder {
  return { name, type, root: index, path: join(path, name), realPath, linked }
}

/**
 * The real path of a link to a folder strictly below the root; undefined for every other link.
 * @param known the last known answer, for a disk that does not answer
 */
export async function resolveLinkedFolder (disk: Disk, rootRealPath: string, path: string, known?: string): Promise<string | undefined> {
  try {
    const realPath = await disk.realpath(path)
    const prefix = join(rootRealPath, '')
    if (!realPath.startsWith(prefix) || isHiddenPath(realPath.slice(prefix.length).split('/'))) return undefined
    return (await disk.stat(realPath))?.isDirectory() ? realPath : undefined
  } catch (error) {
    return errorCode(error) === 'ETIMEDOUT' ? known : undefined
  }
}

/** Joins without normalising; a root may be `/` itself. */
function join (folder: string, name: string): string {
  return folder === '/' ? `/${name}` : `${folder}/${name}`
}
