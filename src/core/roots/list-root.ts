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
  /** Rules of the ignore file above the folder. */
  readonly rules?: IgnoreRules | undefined
}

/** A folder that is served as a skill: the same object as in the listing before while nothing in it differs. */
export interface SkillFolder extends ListedFolder {
  /** The name that addresses the skill. */
  readonly name: string
  readonly type: SkillType
  /** Whether the entry in the root is a symbolic link. */
  readonly linked: boolean
  /** The name of the skill in its source, if the root adds a prefix. */
  readonly nameInSource?: string
}

export interface SkippedEntry {
  readonly name: string
  /** Where a link leads; `unknown` if the disk fails. A forbidden name, or one that the ignore file hides. */
  readonly reason: 'outside' | 'nothing' | 'unknown' | 'unsafe_name' | 'ignored'
  /** Real path of the folder outside, or the text of another link. */
  readonly target?: string
}

/** Lists the skills of a root whose own folders are not the skills: found by a layout, or published by a source. */
export interface Listing {
  /** The skills by name, in a new map for each state; undefined while there is none. All names are allowed. */
  readonly folders: ReadonlyMap<string, ListedFolder> | undefined
  /** Whether folders never change: a changed skill gets another folder. */
  readonly isFixed: boolean
  /** Names of the skills that an ignore file hides whole. */
  readonly ignored?: ReadonlySet<string> | undefined
  /** Whether the root currently lists its own folder instead. */
  readonly isDirect?: boolean | undefined
  /** Number of entries that look like skills but are skipped. */
  readonly skipped?: number | undefined
  /** Whether a kept revision may still be read. Default: always. */
  allows? (name: string, revision: string): boolean
  /** Reports that something in the folder may have changed. For roots that are not fixed. */
  hint? (): void
  /** Emitted after each change of the skills or their contents. */
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
  /** Stamps of link targets by name, since targets change independently of the root. Undefined if missing. */
  readonly links: ReadonlyMap<string, FileStamp | undefined>
  readonly skipped: readonly SkippedEntry[]
  /** Whether the root has a main file: a skill was given instead of its folder. */
  readonly isSkill?: boolean
  readonly ignoreFile?: IgnoreFile | undefined
  readonly listed?: Listing['folders']
}

/** Why a root could not be listed. With `failed`, the last listing stays in use. */
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
    // Taken before the names are read, so that the next comparison notices a change in between.
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
 * Resolves a link in a root. A folder is accepted if it lies in the root or in an allowed folder, or is an allowed
 * folder, but not in a version control folder. Other folders and missing targets give a reason to skip the link.
 * @param containers real paths of the root and of the allowed folders
 * @returns undefined for a link to a file, and for a removed link
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
    // The disk failed or did not answer.
    if (isInconclusive(error)) reason = 'unknown'
  }
  try {
    return { reason, target: await disk.readlink(path) }
  } catch (error) {
    return errorCode(error) === 'ENOENT' ? undefined : { reason }
  }
}
