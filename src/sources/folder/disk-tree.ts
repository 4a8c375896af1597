import { basename, dirname } from 'node:path'
import { linkContainers, resolveLink } from '../../core/roots/links.ts'
import { readIgnoreFile } from '../../core/roots/ignore-rules.ts'
import { createNetworkDisk, type Disk } from '../../core/read/disk.ts'
import { errorCode } from '../../core/shared/system-errors.ts'
import { IGNORE_FILE, type IgnoreRules } from '../../core/read/ignore-file.ts'
import { createLocalDiskApart } from '../../core/disk/network/local-disk.ts'
import { DiskGuard } from '../../core/disk/network/guard.ts'
import { guardDisk } from '../../core/disk/network/guarded-disk.ts'
import { readNetworkMounts } from '../../core/disk/network/network-mounts.ts'
import { asRefused } from '../../core/read/refused.ts'
import { openInside } from '../../core/read/open-inside.ts'
import { compareCodePoints } from '../../core/shared/text.ts'
import type { LayoutTree, LeftOut, TreeEntry } from '../../core/layout/layout.ts'
import { join } from '../../core/layout/walk-tree.ts'

interface KnownFolder {
  readonly realPath: string
  /** Tells the folder from another one that took its place. */
  readonly inode: bigint
  readonly entries: readonly TreeEntry[]
  /** By the name of a linked folder. */
  readonly targets: ReadonlyMap<string, string>
  readonly outside: readonly string[]
}

/**
 * A folder of this machine, for a search for skills. What was listed is remembered until it changes, so that a search after a
 * change lists one folder.
 */
export class DiskTree implements LayoutTree {
  readonly #disk: Disk
  readonly #containers: readonly string[]
  readonly #folders = new Map<string, KnownFolder | undefined>()
  /** Folders of files that were read: any change in them counts. */
  readonly #readFrom = new Set<string>()
  readonly root: string

  private constructor (disk: Disk, root: string, containers: readonly string[]) {
    this.#disk = disk
    this.#containers = containers
    this.root = root
  }

  /**
   * @param path absolute
   * @param linkTargets absolute paths of the folders outside that links may lead into
   * @param disk default: by the mounts of these folders
   * @throws an operating system error where no folder is
   */
  static async open (path: string, linkTargets: readonly string[] = [], disk = treeDisk(path, linkTargets)): Promise<DiskTree> {
    const root = await disk.realpath(path)
    const tree = new DiskTree(disk, root, await linkContainers(disk, root, linkTargets))
    tree.#folders.set('', await tree.#read(root))
    return tree
  }

  /** Whether the path leads to this folder still. */
  async isAt (path: string): Promise<boolean> {
    try {
      const stats = await this.#disk.stat(path)
      return stats?.ino === this.#folders.get('')?.inode && await this.#disk.realpath(path) === this.root
    } catch {
      return false
    }
  }

  async entries (folder: string): Promise<readonly TreeEntry[]> {
    if (!this.#folders.has(folder)) {
      const realPath = await this.#resolve(folder)
      this.#folders.set(folder, realPath === undefined ? undefined : await this.#list(realPath))
    }
    return this.#folders.get(folder)?.entries ?? []
  }

  async realPath (folder: string): Promise<string> {
    return this.#folders.get(folder)?.realPath ?? `${this.root}/${folder}`
  }

  async read (file: string, limit: number): Promise<Buffer | undefined> {
    const slash = file.lastIndexOf('/')
    const [folder, name] = slash === -1 ? ['', file] : [file.slice(0, slash), file.slice(slash + 1)]
    this.#readFrom.add(folder)
    if (!(await this.entries(folder)).some((entry) => entry.name === name && entry.kind === 'file')) return undefined
    return await readFile(this.#disk, this.#containers, `${await this.realPath(folder)}/${name}`, limit)
  }

  /** What the ignore file at the top says; undefined without one. */
  async ignoreRules (): Promise<IgnoreRules | undefined> {
    if (!(await this.entries('')).some(({ name }) => name === IGNORE_FILE)) return undefined
    this.#readFrom.add('')
    return (await readIgnoreFile(this.#disk, this.root))?.rules
  }

  /** Real paths of all folders that were listed, by their path in the tree: what has to be watched. */
  get listed (): ReadonlyMap<string, { readonly realPath: string }> {
    return new Map([...this.#folders].flatMap(([folder, known]) => known === undefined || folder === '' ? [] : [[folder, known] as const]))
  }

  /** Links that lead out of the tree. */
  get outside (): LeftOut[] {
    return [...this.#folders].flatMap(([folder, known]) => known?.outside.map((name): LeftOut => ({ path: join(folder, name), reason: 'link_outside' })) ?? [])
  }

  /** A text that changes whenever the package changes. */
  async fingerprintOf (file: string): Promise<string> {
    const stats = await this.#disk.stat(`${this.root}/${file}`)
    return stats === undefined ? '' : `${stats.ino}-${stats.size}-${stats.mtimeNs}-${stats.ctimeNs}`
  }

  /**
   * Lists folders again in which something happened.
   * @returns whether a search may find something else than before
   */
  async update (folders: Iterable<string>): Promise<boolean> {
    let isChanged = false
    for (const folder of folders) {
      const known = this.#folders.get(folder)
      if (known === undefined) {
        isChanged = this.#forget(folder) || isChanged
        continue
      }
      const now = await this.#list(known.realPath)
      const isSame = now !== undefined && isSameFolder(known, now)
      for (const { name, kind } of known.entries) if (kind === 'folder' && !await this.#isStill(join(folder, name))) isChanged = this.#forget(join(folder, name)) || isChanged
      if (isSame && !this.#readFrom.has(folder)) continue
      isChanged = true
      if (now === undefined) {
        this.#forget(folder)
        continue
      }
      this.#folders.set(folder, now)
      // A search that looked for them in vain left a note that nothing is there.
      for (const child of now.entries.map(({ name }) => join(folder, name))) if (this.#folders.has(child) && this.#folders.get(child) === undefined) this.#forget(child)
    }
    return isChanged
  }

  async #isStill (folder: string): Promise<boolean> {
    const known = this.#folders.get(folder)
    return known === undefined || (await this.#disk.stat(known.realPath))?.ino === known.inode
  }

  #forget (folder: string): boolean {
    let isKnown = this.#folders.delete(folder)
    for (const other of this.#folders.keys()) if (other.startsWith(`${folder}/`)) isKnown = this.#folders.delete(other) || isKnown
    return isKnown
  }

  /** Undefined for what is no folder of the tree. */
  async #resolve (folder: string): Promise<string | undefined> {
    const slash = folder.lastIndexOf('/')
    const [above, name] = slash === -1 ? ['', folder] : [folder.slice(0, slash), folder.slice(slash + 1)]
    const entry = (await this.entries(above)).find((entry) => entry.name === name)
    const known = this.#folders.get(above)
    return entry?.kind === 'folder' && known !== undefined ? known.targets.get(name) ?? `${known.realPath}/${name}` : undefined
  }

  /** Undefined when the folder cannot be listed, or is gone. */
  async #list (realPath: string): Promise<KnownFolder | undefined> {
    try {
      return await this.#read(realPath)
    } catch (error) {
      if (['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP', 'ENAMETOOLONG'].includes(errorCode(error))) return undefined
      throw error
    }
  }

  async #read (realPath: string): Promise<KnownFolder> {
    const stats = await this.#disk.stat(realPath)
    const entries: TreeEntry[] = []
    const targets = new Map<string, string>()
    const outside: string[] = []
    for (const entry of await this.#disk.readdir(realPath)) {
      const { name } = entry
      if (entry.isDirectory()) entries.push({ name, kind: 'folder', linked: false })
      else if (entry.isFile()) entries.push({ name, kind: 'file', linked: false })
      else if (entry.isSymbolicLink()) {
        const meaning = await resolveLink(this.#disk, this.#containers, `${realPath}/${name}`)
        if (meaning.kind === 'outside') outside.push(name)
        else if (meaning.kind === 'file' || meaning.kind === 'skill') entries.push({ name, kind: meaning.kind === 'file' ? 'file' : 'folder', linked: true })
        if (meaning.kind === 'skill') targets.set(name, meaning.realPath)
      }
    }
    return { realPath, inode: stats?.ino ?? 0n, entries: entries.sort((a, b) => compareCodePoints(a.name, b.name)), targets, outside }
  }
}

/** The disk that fits these folders; a network disk is asked through the guard. */
export function treeDisk (path: string, linkTargets: readonly string[] = [], guard = new DiskGuard()): Disk {
  const { isNetwork, foreign } = readNetworkMounts().survey([path, ...linkTargets])
  return isNetwork ? guardDisk(guard, createNetworkDisk(), path, linkTargets) : createLocalDiskApart(() => foreign)
}

function isSameFolder (a: KnownFolder, b: KnownFolder): boolean {
  return a.inode === b.inode && a.entries.length === b.entries.length && a.outside.length === b.outside.length &&
    a.entries.every(({ name, kind, linked }, index) => name === b.entries[index]?.name && kind === b.entries[index].kind && linked === b.entries[index].linked) &&
    [...a.targets].every(([name, target]) => b.targets.get(name) === target)
}

/**
 * Undefined for what is no file, may not be read, is too large, or outside.
 * @throws an error of the operating system, or RefusedError `changed`: the file is there, and says nothing now
 */
async function readFile (disk: Disk, containers: readonly string[], path: string, limit: number): Promise<Buffer | undefined> {
  try {
    const realPath = await disk.realpath(path)
    if (!containers.some((container) => realPath.startsWith(container === '/' ? container : `${container}/`))) return undefined
    const file = await openInside(disk, dirname(realPath), basename(realPath))
    try {
      return (await file.readAll(limit)).bytes
    } finally {
      await file.close()
    }
  } catch (error) {
    const refused = asRefused(error)
    if (refused.refusal === 'io_error') throw refused.cause
    if (refused.refusal === 'changed') throw refused
    return undefined
  }
}
