import { resolve } from 'node:path'
import { createSlicer } from '../ground/async.ts'
import { errorCode, type Disk } from '../disk/disk.ts'
import { entriesIn } from '../disk/folder-entries.ts'
import { isHiddenPath } from '../disk/relative-path.ts'
import { isTrustworthy, signatureOf } from '../disk/signature.ts'
import { isSafeName } from '../ground/skill-name.ts'
import type { Signature, SkillType } from '../ground/skill.ts'
import { readListing } from './listing.ts'
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
    /** The same map, and the same objects in it, as far as nothing changed. */
    readonly folders: ReadonlyMap<string, SkillFolder>
    /** Names of the folders that came, went, or are others. */
    readonly changedNames: readonly string[]
    /** Real paths of the links by name, undefined for a link that is no skill: their meaning may change without the root. */
    readonly links: ReadonlyMap<string, string | undefined>
  }
  | { readonly state: 'missing' | 'unreadable' }
  | { readonly state: 'failed', readonly cause: unknown }

export interface Root {
  /** What settings and reports call it. */
  readonly name: string
  /** Absolute path as configured. */
  readonly path: string
  readonly type: SkillType
  readonly index: number
  readonly listed?: boolean
}

export type GoodScan = Extract<RootScan, { state: 'ok' }>

/**
 * Lists the skills of one root, in slices. Reads names and types only, never a file.
 * @param before the last good scan: a link whose disk does not answer keeps its meaning
 */
export async function scanRoot (disk: Disk, root: Root, before?: GoodScan): Promise<RootScan> {
  try {
    const scannedAt = Date.now()
    const realPath = await disk.realpath(root.path)
    const stats = await disk.stat(realPath)
    if (!stats?.isDirectory()) return { state: 'missing' }
    // Signature before names: a change in between shows as a difference at the next comparison.
    const signature = signatureOf(stats)
    const folders = new FolderCollection(root, realPath, before)
    if (root.listed === true) {
      for (const [name, path] of await readListing(disk, realPath)) folders.addListed(name, path)
      return { state: 'ok', signature, isTrustworthy: isTrustworthy(signature, scannedAt), realPath, isSkill: false, ...folders.result(), links: new Map() }
    }
    const links = new Map<string, string | undefined>()
    let isSkill = false
    const yieldIfNeeded = createSlicer()
    for await (const { entries } of entriesIn(disk, realPath, stats.size)) {
      for (const entry of entries) {
        if (entry.isFile()) isSkill ||= MAIN_FILE.test(entry.name)
        if (entry.isFile() || !isSafeName(entry.name)) continue
        if (entry.isDirectory()) folders.addFolder(entry.name)
        else if (entry.isSymbolicLink()) {
          const target = await resolveLinkedFolder(disk, realPath, join(realPath, entry.name), before?.links.get(entry.name))
          links.set(entry.name, target)
          if (target !== undefined) folders.addLink(entry.name, target)
        }
        const pause = yieldIfNeeded()
        if (pause !== undefined) await pause
      }
      await yieldIfNeeded()
    }
    return { state: 'ok', signature, isTrustworthy: isTrustworthy(signature, scannedAt), realPath, isSkill, ...folders.result(), links }
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

/** Keeps the objects of a scan before, and with them everything that hangs on their identity. */
class FolderCollection {
  readonly #root: Root
  readonly #realPath: string
  readonly #before: ReadonlyMap<string, SkillFolder>
  /** Whether the root is where it was: then a folder in it is where it was too. */
  readonly #isInPlace: boolean
  readonly #folders = new Map<string, SkillFolder>()
  readonly #changed: string[] = []

  constructor (root: Root, realPath: string, before: GoodScan | undefined) {
    this.#root = root
    this.#realPath = realPath
    this.#before = before?.folders ?? new Map()
    this.#isInPlace = before?.realPath === realPath
  }

  addFolder (name: string): void {
    const old = this.#before.get(name)
    if (this.#isInPlace && old?.linked === false) this.#folders.set(name, old)
    else this.#add(name, join(this.#realPath, name), false)
  }

  /** @param path of the skill, relative to the root; it may lead out of it */
  addListed (name: string, path: string): void {
    const realPath = resolve(this.#realPath, path)
    const old = this.#before.get(name)
    if (old?.realPath === realPath) this.#folders.set(name, old)
    else this.#put({ name, path: resolve(this.#root.path, path), realPath, linked: false })
  }

  addLink (name: string, target: string): void {
    const old = this.#before.get(name)
    if (old?.linked === true && old.realPath === target) this.#folders.set(name, old)
    else this.#add(name, target, true)
  }

  #add (name: string, realPath: string, linked: boolean): void {
    this.#put({ name, path: join(this.#root.path, name), realPath, linked })
  }

  #put (folder: Pick<SkillFolder, 'name' | 'path' | 'realPath' | 'linked'>): void {
    this.#folders.set(folder.name, { ...folder, type: this.#root.type, root: this.#root.index })
    this.#changed.push(folder.name)
  }

  result (): { folders: ReadonlyMap<string, SkillFolder>, changedNames: readonly string[] } {
    const kept = this.#folders.size - this.#changed.length
    if (kept < this.#before.size) for (const name of this.#before.keys()) if (!this.#folders.has(name)) this.#changed.push(name)
    return { folders: this.#changed.length === 0 ? this.#before : this.#folders, changedNames: this.#changed }
  }
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
