import { join, posix } from 'node:path'
import { type Disk, diskOf, readEntries, realpathOrNothing } from '../../core/read/disk.ts'
import { isVersionControl } from '../../core/read/hidden.ts'
import { openInside } from '../../core/read/open-inside.ts'
import { asRefused, isInconclusive } from '../../core/read/refused.ts'
import { yieldIfNeeded } from '../../core/shared/async.ts'
import { pathFrom } from '../../core/shared/paths.ts'
import type { LayoutTree, LeftOut, TreeEntry } from '../../layout/layout.ts'

/** A folder on disk, for one search for skills. Links are followed if they stay inside or are allowed. */
export class DiskTree implements LayoutTree {
  readonly disk: Disk
  /** Real path. */
  readonly root: string
  /** Real paths of the folders that links may lead into, the root first. */
  readonly #containers: readonly string[]
  /** Links that lead out of the tree, as far as they were found. */
  readonly outside: LeftOut[] = []

  private constructor (disk: Disk, root: string, containers: readonly string[]) {
    this.disk = disk
    this.root = root
    this.#containers = containers
  }

  /** @throws the system's error if the folder cannot be read */
  static async open (path: string, linkTargets: readonly string[] = []): Promise<DiskTree> {
    const disk = diskOf(path, ...linkTargets)
    const root = await disk.realpath(path)
    await disk.readdir(root)
    const allowed = await Promise.all(linkTargets.map((target) => realpathOrNothing(disk, target)))
    return new DiskTree(disk, root, [root, ...allowed.filter((target) => target !== undefined)])
  }

  async entries (folder: string): Promise<readonly TreeEntry[]> {
    const path = await this.#resolve(folder)
    const found = path === undefined ? undefined : await unlessRefused(() => readEntries(this.disk, path))
    const entries: TreeEntry[] = []
    for (const entry of found ?? []) {
      await yieldIfNeeded()
      const { name } = entry
      const linked = entry.isSymbolicLink()
      const target = linked ? await this.#resolve(posix.join(folder, name)) : undefined
      const isAsked = target !== undefined && target !== this.root
      const what = isAsked ? await unlessRefused(() => this.disk.stat(target)) : entry
      if (what?.isDirectory() === true) entries.push({ name, kind: 'folder', linked })
      else if (what?.isFile() === true) entries.push({ name, kind: 'file', linked })
    }
    return entries
  }

  async realPath (folder: string): Promise<string> {
    return await this.#resolve(folder) ?? join(this.root, folder)
  }

  async read (file: string, limit: number): Promise<Buffer | undefined> {
    const path = await this.#resolve(file)
    if (path === undefined) return undefined
    const folder = this.#containers.find((container) => pathFrom(container, path) !== undefined) ?? this.root
    const place = { disk: this.disk, folder, path: folder === this.root ? file : pathFrom(folder, path) ?? file }
    return await unlessRefused(async () => {
      const opened = await openInside(place, limit)
      try {
        return await opened.readAll()
      } finally {
        await opened.close()
      }
    })
  }

  /** Resolves a path; returns undefined if it does not exist or leads out of the tree, and notes the latter. */
  async #resolve (path: string): Promise<string | undefined> {
    const realPath = await unlessRefused(() => this.disk.realpath(join(this.root, path)))
    if (realPath === undefined || realPath === this.root) return realPath
    const below = this.#containers.flatMap((container) => pathFrom(container, realPath) || [])
    if (below.length === 0) this.outside.push({ path, reason: 'link_outside' })
    return below.some((relative) => !isVersionControl(relative.split('/'))) ? realPath : undefined
  }
}

/** Returns undefined if the file is missing or refused. Throws if the disk fails, or the file changes meanwhile. */
async function unlessRefused<T> (read: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (isInconclusive(error) || asRefused(error).refusal === 'changed') throw error
    return undefined
  }
}
