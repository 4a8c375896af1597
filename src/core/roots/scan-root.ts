import { createSlicer } from '../shared/async.ts'
import type { Disk } from '../disk/disk.ts'
import { errorCode } from '../shared/system-errors.ts'
import { entriesIn } from '../disk/folder-entries.ts'
import { IGNORE_FILE, type IgnoreRules } from '../disk/ignore-file.ts'
import { pathBelow } from '../disk/paths.ts'
import { isTrustworthy, signatureOf } from '../disk/signature.ts'
import { isSafeName } from '../shared/skill-name.ts'
import type { Signature, SkillType } from '../shared/skill.ts'
import { linkContainers, type LinkMeaning, resolveLink } from './linked-folder.ts'
import type { ListedFolder, Listing } from './listing.ts'
import { listedMainFile } from '../format/main-files.ts'
import { type IgnoreFile, isIgnored, readIgnoreFile } from './skill-filter.ts'

/** A folder that is served as a skill. */
export interface SkillFolder {
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

/** An entry of a root that is no file, no hidden name, and no skill. */
export interface SkippedEntry {
  readonly name: string
  /** A link that leads out, to nothing or to a disk that fails (`unknown`). A name that no skill may have, or one in the ignore file. */
  readonly reason: 'outside' | 'nothing' | 'unknown' | 'unsafe_name' | 'ignored'
  /** Real path of the folder that a link outside leads to; the text of a link to nothing, or to a disk that fails. */
  readonly target?: string
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
    /** What has not changed is the same object as in the scan before, the map included. */
    readonly folders: ReadonlyMap<string, SkillFolder>
    /** Names of the folders that came, went, or are others. */
    readonly changedNames: readonly string[]
    /** The links by name: their meaning may change without the root. */
    readonly links: ReadonlyMap<string, LinkMeaning>
    /** The root's ignore file. */
    readonly ignoreFile: IgnoreFile | undefined
    /** Entries that look like skills and are left out. */
    readonly skipped: readonly SkippedEntry[]
    /** What the root's listing had. */
    readonly listed?: Listing['folders']
  }
  /** `waiting`: of a source that has published nothing yet, whose folder no person knows. */
  | { readonly state: 'missing' | 'unreadable' | 'waiting' }
  | { readonly state: 'failed', readonly cause: unknown }

/** A root as it is configured. */
export interface RootFolder {
  /** What settings and reports call it. */
  readonly name: string
  /** Absolute. */
  readonly path: string
  readonly type: SkillType
  readonly listed: Listing | undefined
  /** What the listing has in front of the name of each skill. */
  readonly prefix?: string
  /** Absolute paths of the folders outside that links in the root may lead into. */
  readonly linkTargets: readonly string[]
}

export type GoodScan = Extract<RootScan, { state: 'ok' }>

/**
 * Lists the skills of one root, in slices. Reads names and types only, never a file.
 * @param before the last good scan: a link whose disk fails keeps its meaning
 */
export async function scanRoot (disk: Disk, root: RootFolder, before?: GoodScan): Promise<RootScan> {
  if (root.listed?.isFixed === true && root.listed.folders === undefined) return { state: 'waiting' }
  try {
    const scannedAt = Date.now()
    const realPath = await disk.realpath(root.path)
    const stats = await disk.stat(realPath)
    if (!stats?.isDirectory()) return { state: 'missing' }
    // Signature before names: a change in between shows as a difference at the next comparison.
    const signature = signatureOf(stats)
    if (root.listed !== undefined) {
      const listed = root.listed.folders
      if (listed === undefined) return { state: 'missing' }
      const folders = new FolderCollection(root, realPath, undefined, before)
      for (const [name, folder] of listed) folders.addListed(name, folder)
      return { state: 'ok', signature, isTrustworthy: true, realPath, isSkill: false, ...folders.result(), links: new Map(), skipped: [], ignoreFile: undefined, listed }
    }
    const ignoreFile = await readRootIgnoreFile(disk, realPath, before)
    const folders = new FolderCollection(root, realPath, ignoreFile?.rules, before)
    const links = new Map<string, LinkMeaning>()
    const skipped: SkippedEntry[] = []
    let containers: readonly string[] | undefined
    let isSkill = false
    const yieldIfNeeded = createSlicer()
    for await (const { entries, unnameable } of entriesIn(disk, realPath, stats.size)) {
      for (const name of unnameable) skipped.push({ name, reason: 'unsafe_name' })
      isSkill ||= listedMainFile(entries) !== undefined
      for (const entry of entries) {
        const { name } = entry
        if (entry.isFile() || name.startsWith('.')) continue
        if (!isSafeName(name)) skipped.push({ name, reason: 'unsafe_name' })
        else if (isIgnored(ignoreFile?.rules, name, true)) skipped.push({ name, reason: 'ignored' })
        else if (entry.isDirectory()) folders.addFolder(name)
        else if (entry.isSymbolicLink()) {
          containers ??= await linkContainers(disk, realPath, root.linkTargets)
          if (disk.answersAtOnce !== true && root.linkTargets.length > 0 && before?.links.has(name) !== true) await linkText(disk, pathBelow(realPath, name))
          const meaning = await resolveLink(disk, containers, pathBelow(realPath, name), before?.links.get(name))
          links.set(name, meaning)
          if (meaning.kind === 'skill') folders.addLink(name, meaning.realPath)
          else if (meaning.kind === 'outside') skipped.push({ name, reason: meaning.kind, target: meaning.realPath })
          else if (meaning.kind !== 'file') skipped.push({ name, reason: meaning.kind, ...await linkText(disk, pathBelow(realPath, name)) })
        }
        const pause = yieldIfNeeded()
        if (pause !== undefined) await pause
      }
      await yieldIfNeeded()
    }
    const isOld = [signature, ignoreFile?.signature].every((state) => state === undefined || isTrustworthy(state, scannedAt))
    return { state: 'ok', signature, isTrustworthy: isOld, realPath, isSkill, ...folders.result(), links, ignoreFile, skipped }
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

/** Nothing of a link that is gone, or whose disk does not answer. */
async function linkText (disk: Disk, path: string): Promise<Pick<SkippedEntry, 'target'>> {
  try {
    return { target: await disk.readlink(path) }
  } catch {
    return {}
  }
}

/** The same rules are the same object. */
async function readRootIgnoreFile (disk: Disk, folder: string, before: GoodScan | undefined): Promise<IgnoreFile | undefined> {
  if (await disk.lstat(pathBelow(folder, IGNORE_FILE)) === undefined) return undefined
  const file = await readIgnoreFile(disk, folder)
  const known = before?.ignoreFile?.rules
  return file !== undefined && known?.id === file.rules.id ? { ...file, rules: known } : file
}

/** Reuses the objects of the previous scan, since caches are keyed by their identity. */
class FolderCollection {
  readonly #root: RootFolder
  readonly #realPath: string
  readonly #rules: IgnoreRules | undefined
  readonly #before: ReadonlyMap<string, SkillFolder>
  /** Whether the root is where it was: then a folder in it is where it was too. */
  readonly #isInPlace: boolean
  readonly #folders = new Map<string, SkillFolder>()
  readonly #changed: string[] = []

  constructor (root: RootFolder, realPath: string, rules: IgnoreRules | undefined, before: GoodScan | undefined) {
    this.#root = root
    this.#realPath = realPath
    this.#rules = rules
    this.#before = before?.folders ?? new Map()
    this.#isInPlace = before?.realPath === realPath && before.listed === undefined
  }

  addFolder (name: string): void {
    const old = this.#before.get(name)
    if (this.#isInPlace && old?.linked === false && old.rootRules === this.#rules) this.#folders.set(name, old)
    else this.#add(name, pathBelow(this.#realPath, name), false)
  }

  addListed (name: string, { path, realPath, rules }: ListedFolder): void {
    const old = this.#before.get(name)
    if (old?.path === path && old.realPath === realPath && old.rootRules?.id === rules?.id) this.#folders.set(name, old)
    else {
      const { prefix = '' } = this.#root
      this.#put({ name, type: this.#root.type, path, realPath, linked: false, ...prefix !== '' && { ownName: name.slice(prefix.length) }, ...rules && { rootRules: rules } })
    }
  }

  addLink (name: string, target: string): void {
    const old = this.#before.get(name)
    if (old?.linked === true && old.realPath === target && old.rootRules === this.#rules) this.#folders.set(name, old)
    else this.#add(name, target, true)
  }

  #add (name: string, realPath: string, linked: boolean): void {
    this.#put({ name, type: this.#root.type, path: pathBelow(this.#root.path, name), realPath, linked, ...this.#rules && { rootRules: this.#rules } })
  }

  #put (folder: SkillFolder): void {
    this.#folders.set(folder.name, folder)
    this.#changed.push(folder.name)
  }

  result (): { folders: ReadonlyMap<string, SkillFolder>, changedNames: readonly string[] } {
    const kept = this.#folders.size - this.#changed.length
    if (kept < this.#before.size) for (const name of this.#before.keys()) if (!this.#folders.has(name)) this.#changed.push(name)
    return { folders: this.#changed.length === 0 ? this.#before : this.#folders, changedNames: this.#changed }
  }
}
