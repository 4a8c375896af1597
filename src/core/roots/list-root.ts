import { IGNORE_FILE, type IgnoreRules } from '../read/ignore-file.ts'
import { pathBelow } from '../shared/paths.ts'
import { isMainFile } from '../format/main-files.ts'
import { isTrustworthy, signatureOf } from '../read/signature.ts'
import type { Disk } from '../read/disk.ts'
import { yieldIfNeeded } from '../shared/async.ts'
import { isSafeName } from '../shared/skill-name.ts'
import type { Signature, SkillType } from '../shared/skill.ts'
import { errorCode } from '../shared/system-errors.ts'
import { type IgnoreFile, isIgnored, readIgnoreFile } from './ignore-rules.ts'
import { linkContainers, resolveLink } from './links.ts'
import type { Listing } from './listing.ts'

/** A folder that is served as a skill. The same object as in the listing before while it means the same. */
export interface SkillFolder {
  /** The address of the skill. */
  readonly name: string
  readonly type: SkillType
  /** Absolute path as configured, shown to agents. */
  readonly path: string
  /** Where it really is: below the root's real path, or below a folder that links may lead into. */
  readonly realPath: string
  /** Whether the entry in the root is a symbolic link. */
  readonly linked: boolean
  /** The name that the skill has in its source, where the root has a prefix. */
  readonly ownName?: string
  /** Of the root's ignore file. */
  readonly rootRules?: IgnoreRules
}

/** An entry of a root that is not a file, not a hidden name, and not a skill. */
export interface SkippedEntry {
  readonly name: string
  /**
   * A link that leads out, to nothing, or to a disk that fails (`unknown`); a name that no skill may have, or one in
   * the ignore file.
   */
  readonly reason: 'outside' | 'nothing' | 'unknown' | 'unsafe_name' | 'ignored'
  /** Real path of the folder that a link outside leads to; the text of any other link. */
  readonly target?: string
}

/** What a root holds. */
export interface RootListing {
  readonly signature: Signature
  /** Whether every later change of the root's own folder is sure to change the signature. */
  readonly isTrustworthy: boolean
  readonly realPath: string
  /** Whether the root has a main file itself: a skill was given instead of a folder of skills. */
  readonly isSkill: boolean
  readonly folders: ReadonlyMap<string, SkillFolder>
  /** The links, with what identifies their targets: these may change without the root. */
  readonly links: ReadonlyMap<string, string | undefined>
  readonly ignoreFile: IgnoreFile | undefined
  readonly skipped: readonly SkippedEntry[]
  /** What the root's `Listing` had, if it has one. */
  readonly listed?: Listing['folders']
}

/** Why there is no listing. `failed` says nothing about the root: the last listing stays. */
export interface ListingFailure {
  readonly state: 'waiting' | 'missing' | 'unreadable' | 'failed'
  readonly cause?: unknown
}

/** A root as its owner gives it, complete. */
export interface RootFolder {
  readonly name: string
  /** Absolute. */
  readonly path: string
  readonly type: SkillType
  readonly listed: Listing | undefined
  /** What the listing has in front of the name of each skill. */
  readonly prefix: string
  /** Absolute paths of the folders outside that links in the root may lead into. */
  readonly linkTargets: readonly string[]
}

/**
 * Lists the skills of one root by names and types; no file is read but the ignore file.
 * @param before the last listing: what has not changed is taken over from it
 */
export async function listRoot (
  disk: Disk, root: RootFolder, before?: RootListing
): Promise<RootListing | ListingFailure> {
  if (root.listed?.isFixed === true && root.listed.folders === undefined) return { state: 'waiting' }
  try {
    const listedAt = Date.now()
    const realPath = await disk.realpath(root.path)
    const stats = await disk.stat(realPath)
    if (!stats?.isDirectory()) return { state: 'missing' }
    // Signature before names: a change in between shows as a difference at the next comparison.
    const signature = signatureOf(stats)
    if (root.listed !== undefined) return takeListing(root, root.listed.folders, { signature, realPath, before })
    const ignoreFile = await readRootIgnoreFile(disk, realPath, before)
    const found = await listFolders(disk, root, { realPath, rules: ignoreFile?.rules, before })
    const isOld = [signature, ignoreFile?.signature].every(
      (state) => state === undefined || isTrustworthy(state, listedAt)
    )
    return { signature, isTrustworthy: isOld, realPath, ignoreFile, ...found }
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

/** What identifies the target of a link while it stays the same; undefined for nothing. */
export async function linkState (disk: Disk, path: string): Promise<string | undefined> {
  try {
    const stats = await disk.stat(path)
    return stats && `${stats.dev}:${stats.ino}:${stats.isDirectory() ? 'folder' : 'file'}`
  } catch {
    return undefined
  }
}

interface ListingContext {
  readonly realPath: string
  readonly rules?: IgnoreRules | undefined
  readonly before: RootListing | undefined
}

async function listFolders (disk: Disk, root: RootFolder, { realPath, rules, before }: ListingContext) {
  const folders = new Map<string, SkillFolder>()
  const links = new Map<string, string | undefined>()
  const skipped: SkippedEntry[] = []
  const more = rules && { rootRules: rules }
  const add = (name: string, target: string, linked: boolean): void => {
    const folder = { name, type: root.type, path: pathBelow(root.path, name), realPath: target, linked, ...more }
    folders.set(name, sameFolder(before?.folders.get(name), folder))
  }
  let containers: readonly string[] | undefined
  let isSkill = false
  for (const entry of await disk.readdir(realPath)) {
    const { name } = entry
    await yieldIfNeeded()
    isSkill ||= !entry.isDirectory() && isMainFile(name)
    if (entry.isFile() || name.startsWith('.')) continue
    // Node shows bytes that are not UTF-8 as U+FFFD: nothing can be opened by such a name.
    const isNameable = isSafeName(name) &&
      (!name.includes('\uFFFD') || await disk.lstat(pathBelow(realPath, name)) !== undefined)
    if (!isNameable) skipped.push({ name, reason: 'unsafe_name' })
    else if (isIgnored(rules, name, true)) skipped.push({ name, reason: 'ignored' })
    else if (entry.isDirectory()) add(name, pathBelow(realPath, name), false)
    else if (entry.isSymbolicLink()) {
      containers ??= await linkContainers(disk, realPath, root.linkTargets)
      const path = pathBelow(realPath, name)
      const state = await linkState(disk, path)
      const link = await resolveLink(disk, containers, path)
      // One that could not be resolved is asked for again.
      links.set(name, link.kind === 'unknown' ? 'unknown' : state)
      const known = before?.folders.get(name)
      if (link.kind === 'skill') add(name, link.realPath, true)
      else if (link.kind === 'unknown' && known !== undefined) add(name, known.realPath, known.linked)
      else if (link.kind === 'outside') skipped.push({ name, reason: 'outside', target: link.realPath })
      else if (link.kind !== 'file') {
        const text = await linkText(disk, path)
        if (text !== undefined) skipped.push({ name, reason: link.kind, ...text })
      }
    }
  }
  return { folders: sameFolders(before?.folders, folders), links, skipped, isSkill }
}

function takeListing (
  root: RootFolder, listed: Listing['folders'],
  { signature, realPath, before }: ListingContext & { readonly signature: Signature }
): RootListing | ListingFailure {
  if (listed === undefined) return { state: 'missing' }
  const folders = new Map<string, SkillFolder>()
  for (const [name, { path, realPath: target, rules }] of listed) {
    const more = {
      ...root.prefix !== '' && { ownName: name.slice(root.prefix.length) }, ...rules && { rootRules: rules }
    }
    const folder = { name, type: root.type, path, realPath: target, linked: false, ...more }
    folders.set(name, sameFolder(before?.folders.get(name), folder))
  }
  const direct = { isTrustworthy: true, isSkill: false, links: new Map(), skipped: [], ignoreFile: undefined }
  return { ...direct, signature, realPath, folders: sameFolders(before?.folders, folders), listed }
}

/** The folder before, if it means the same. */
function sameFolder (before: SkillFolder | undefined, now: SkillFolder): SkillFolder {
  const isSame = before?.path === now.path && before.realPath === now.realPath && before.linked === now.linked &&
    before.rootRules?.id === now.rootRules?.id
  return isSame ? before : now
}

/** The map before if it has the same folders, so that lists made from it stay the same. */
function sameFolders (
  before: RootListing['folders'] | undefined, folders: RootListing['folders']
): RootListing['folders'] {
  if (before?.size !== folders.size) return folders
  for (const [name, folder] of folders) if (before.get(name) !== folder) return folders
  return before
}

/** Without a target where the disk does not say; undefined for a link that is gone. */
async function linkText (disk: Disk, path: string): Promise<Pick<SkippedEntry, 'target'> | undefined> {
  try {
    return { target: await disk.readlink(path) }
  } catch (error) {
    return errorCode(error) === 'ENOENT' ? undefined : {}
  }
}

/** Equal rules are the same object, so that folders stay the same too. */
async function readRootIgnoreFile (
  disk: Disk, folder: string, before: RootListing | undefined
): Promise<IgnoreFile | undefined> {
  if (await disk.lstat(pathBelow(folder, IGNORE_FILE)) === undefined) return undefined
  const file = await readIgnoreFile(disk, folder)
  const known = before?.ignoreFile?.rules
  return file !== undefined && known?.id === file.rules.id ? { ...file, rules: known } : file
}
