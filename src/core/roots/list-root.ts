import { type Disk, readEntries, realpathOrNothing } from '../read/disk.ts'
import { isMainFile } from '../format/main-files.ts'
import { isVersionControl } from '../read/hidden.ts'
import { IGNORE_FILE, type IgnoreFile, type IgnoreRules, readIgnoreFile } from '../read/ignore-file.ts'
import { asRefused, isInconclusive } from '../read/refused.ts'
import { type FileStamp, isSettled, stampAt, stampOf } from '../read/file-stamp.ts'
import { yieldIfNeeded } from '../shared/async.ts'
import { pathBelow, pathFrom } from '../shared/paths.ts'
import type { SkillType } from '../shared/skill.ts'
import { isSafeName } from '../shared/skill-name.ts'
import { errorCode } from '../shared/system-errors.ts'

export interface ListedFolder {
  /** Absolute, as agents see it. */
  readonly path: string
  readonly realPath: string
  /** What the ignore file above it hides of it. */
  readonly rules?: IgnoreRules | undefined
}

/** A folder that is served as a skill: the same object as in the listing before while nothing in it differs. */
export interface SkillFolder extends ListedFolder {
  /** The address of the skill. */
  readonly name: string
  readonly type: SkillType
  /** Whether the entry in the root is a symbolic link. */
  readonly linked: boolean
  /** The name that the skill has in its source, where the root has a prefix. */
  readonly nameInSource?: string
}

export interface SkippedEntry {
  readonly name: string
  /** Three kinds of links, `unknown` to a disk that fails; a name that no skill may have; one in the ignore file. */
  readonly reason: 'outside' | 'nothing' | 'unknown' | 'unsafe_name' | 'ignored'
  /** Real path of the folder that a link outside leads to; the text of any other link. */
  readonly target?: string
}

/** The skills of a root, where they are not its folders: those of a layout, or what a source has published. */
export interface Listing {
  /** A new map for each state; undefined while there is none. Names are safe. */
  readonly folders: ReadonlyMap<string, ListedFolder> | undefined
  /** Whether the folders never change once they are listed: a change is another folder. */
  readonly isFixed: boolean
  /** Names of the skills that an ignore file hides whole. */
  readonly ignored?: ReadonlySet<string> | undefined
  /** True while the root lists its own folder, as if it had no listing. */
  readonly isDirect?: boolean | undefined
  /** How many entries of the folder could be skills and are left out. */
  readonly skipped?: number | undefined
  /** Whether a revision that was handed out before may still be read. Default: it may. */
  allows? (name: string, revision: string): boolean
  /** Something may have happened in the folder of a root that is not fixed. */
  hint? (): void
  /** Emitted after each change of the folders or of anything in them. */
  on (event: 'changed', listener: () => void): unknown
  off (event: 'changed', listener: () => void): unknown
}

export interface RootFolder {
  readonly path: string
  readonly type: SkillType
  readonly listed: Listing | undefined
  /** Stands in front of each name in the listing. */
  readonly prefix: string
  /** Absolute paths of the folders outside that links in the root may lead into. */
  readonly linkTargets: readonly string[]
}

export interface RootListing {
  readonly stamp: FileStamp
  /** Whether every later change of the root's own folder is sure to change the stamp. */
  readonly isSettled: boolean
  readonly realPath: string
  readonly folders: ReadonlyMap<string, SkillFolder>
  /** Stamps of what the links lead to, by name: it may change without the root. Undefined for nothing. */
  readonly links: ReadonlyMap<string, FileStamp | undefined>
  readonly skipped: readonly SkippedEntry[]
  /** Whether the root has a main file: a skill was given instead of its folder. */
  readonly isSkill?: boolean
  readonly ignoreFile?: IgnoreFile | undefined
  readonly listed?: Listing['folders']
}

/** Why there is no listing. `failed` says nothing about the root: the last listing stays. */
export interface ListingFailure {
  readonly state: 'waiting' | 'missing' | 'unreadable' | 'failed'
  readonly cause?: unknown
}

type Places = ReadonlyMap<string, ListedFolder & { readonly linked?: boolean }>

export async function listRoot (
  disk: Disk, root: RootFolder, before?: RootListing
): Promise<RootListing | ListingFailure> {
  const listed = root.listed?.folders
  if (root.listed?.isFixed === true && listed === undefined) return { state: 'waiting' }
  try {
    const listedAt = Date.now()
    const realPath = await disk.realpath(root.path)
    const stats = await disk.stat(realPath)
    if (!stats?.isDirectory() || (root.listed !== undefined && listed === undefined)) return { state: 'missing' }
    // Before the names: a change in between shows as a difference at the next comparison.
    const stamp = stampOf(stats)
    if (listed !== undefined) {
      const folders = toSkillFolders(root, listed, before)
      return { stamp, realPath, isSettled: true, folders, links: new Map(), skipped: [], listed }
    }
    const hasIgnoreFile = await disk.lstat(pathBelow(realPath, IGNORE_FILE)) !== undefined
    const ignoreFile = hasIgnoreFile ? await readIgnoreFile(disk, realPath) : undefined
    const { places, ...found } = await listFolders(disk, root, realPath, ignoreFile?.rules, before)
    const folders = toSkillFolders(root, places, before)
    const areSettled = isSettled(stamp, listedAt) && isSettled(ignoreFile?.stamp, listedAt)
    return { stamp, realPath, isSettled: areSettled, folders, ...found, ignoreFile }
  } catch (cause) {
    switch (asRefused(cause).refusal) {
      case 'not_found': return { state: 'missing' }
      case 'permission_denied': return { state: 'unreadable' }
      default: return { state: 'failed', cause }
    }
  }
}

async function listFolders (
  disk: Disk, { path, linkTargets }: RootFolder, realPath: string, rules: IgnoreRules | undefined,
  before: RootListing | undefined
): Promise<{ readonly places: Places } & Pick<RootListing, 'links' | 'skipped' | 'isSkill'>> {
  const places = new Map<string, ListedFolder & { readonly linked: boolean }>()
  const links = new Map<string, FileStamp | undefined>()
  const skipped: SkippedEntry[] = []
  const allowed = await Promise.all(linkTargets.map((folder) => realpathOrNothing(disk, folder)))
  const containers = [realPath, ...allowed.filter((folder) => folder !== undefined)]
  let isSkill = false
  for (const entry of await readEntries(disk, realPath)) {
    const { name } = entry
    const place = { path: pathBelow(path, name), realPath: pathBelow(realPath, name), rules, linked: false }
    await yieldIfNeeded()
    isSkill ||= entry.isFile() && isMainFile(name)
    if (entry.isFile() || name.startsWith('.')) continue
    // Node shows bytes that are not UTF-8 as U+FFFD: nothing can be opened by such a name.
    const isNameable = isSafeName(name) && (!name.includes('\uFFFD') || await disk.lstat(place.realPath) !== undefined)
    if (!isNameable) skipped.push({ name, reason: 'unsafe_name' })
    else if (rules?.hides(name, true) === true) skipped.push({ name, reason: 'ignored' })
    else if (entry.isDirectory()) places.set(name, place)
    else if (entry.isSymbolicLink()) {
      links.set(name, await stampAt(disk, place.realPath).catch(() => undefined))
      const link = await followLink(disk, containers, place.realPath)
      const known = before?.folders.get(name)
      if (link === undefined) continue
      if ('realPath' in link) places.set(name, { ...place, ...link, linked: true })
      else if (link.reason === 'unknown' && known !== undefined) places.set(name, known)
      else skipped.push({ name, ...link })
    }
  }
  return { places, links, skipped, isSkill }
}

function toSkillFolders (
  { type, prefix }: RootFolder, places: Places, before: RootListing | undefined
): ReadonlyMap<string, SkillFolder> {
  return new Map([...places].map(([name, { path, realPath, rules, linked = false }]) => {
    const known = before?.folders.get(name)
    const isSame = known?.path === path && known.realPath === realPath && known.linked === linked &&
      known.rules?.id === rules?.id
    const more = { ...prefix !== '' && { nameInSource: name.slice(prefix.length) }, ...rules && { rules } }
    return [name, isSame ? known : { name, type, path, realPath, linked, ...more }]
  }))
}

/**
 * Finds out what a link in a root leads to. A folder is a skill if it lies in the root, or is or lies in an allowed
 * folder, and in no version control folder of it. Any other folder, and nothing at all, is a reason to skip the link.
 * @param containers real paths of the folders that it may lead into, the root first
 * @returns undefined for a link to a file, and for one that is gone
 */
async function followLink (
  disk: Disk, containers: readonly string[], path: string
): Promise<{ readonly realPath: string } | Omit<SkippedEntry, 'name'> | undefined> {
  let reason: SkippedEntry['reason'] = 'nothing'
  try {
    const realPath = await disk.realpath(path)
    const stats = await disk.stat(realPath)
    if (stats?.isDirectory() === false) return undefined
    const below = containers.map((folder) => pathFrom(folder, realPath)).filter((inside) => inside !== undefined)
    if (below.length === 0) return { reason: 'outside', target: realPath }
    const isSkill = realPath !== containers[0] && below.some((inside) => !isVersionControl(inside.split('/')))
    if (stats !== undefined && isSkill) return { realPath }
  } catch (error) {
    // While a disk does not say.
    if (isInconclusive(error)) reason = 'unknown'
  }
  try {
    return { reason, target: await disk.readlink(path) }
  } catch (error) {
    return errorCode(error) === 'ENOENT' ? undefined : { reason }
  }
}
