import { constants } from 'node:fs'
import { open, readdir, realpath, stat } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { isVersionControl } from '../../core/read/hidden.ts'
import { asRefused } from '../../core/read/refused.ts'
import { pathFrom } from '../../core/shared/paths.ts'
import type { LayoutTree, LeftOut, TreeEntry } from '../../layout/layout.ts'
import { compareCodePoints } from '../../core/shared/text.ts'

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants

/** A folder of this machine, for one search for skills. Links are followed where they stay inside, or are allowed. */
export class DiskTree implements LayoutTree {
  /** Real path. */
  readonly root: string
  readonly #containers: readonly string[]
  /** Links that lead out of the tree. */
  readonly outside: LeftOut[] = []

  private constructor (root: string, containers: readonly string[]) {
    this.root = root
    this.#containers = containers
  }

  /** @throws an operating system error where there is no folder */
  static async open (path: string, linkTargets: readonly string[] = []): Promise<DiskTree> {
    const root = await realpath(path)
    await readdir(root)
    const allowed = await Promise.all(linkTargets.map((target) => realpath(target).catch(() => [])))
    return new DiskTree(root, [root, ...allowed.flat()])
  }

  async entries (folder: string): Promise<readonly TreeEntry[]> {
    const path = await this.#resolve(folder)
    const found = path === undefined ? [] : await readdir(path, { withFileTypes: true }).catch(undefinedIfAbsent)
    const entries: TreeEntry[] = []
    for (const entry of found ?? []) {
      const { name } = entry
      const linked = entry.isSymbolicLink()
      const target = linked ? await this.#resolve(posix.join(folder, name)) : undefined
      const what = target === undefined || target === this.root ? entry : await stat(target).catch(undefinedIfAbsent)
      if (what?.isDirectory() === true) entries.push({ name, kind: 'folder', linked })
      else if (what?.isFile() === true) entries.push({ name, kind: 'file', linked })
    }
    return entries.sort((a, b) => compareCodePoints(a.name, b.name))
  }

  async realPath (folder: string): Promise<string> {
    return await this.#resolve(folder) ?? join(this.root, folder)
  }

  async read (file: string, limit: number): Promise<Buffer | undefined> {
    const path = await this.#resolve(file)
    const handle = path && await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(undefinedIfAbsent)
    if (!handle) return undefined
    try {
      const stats = await handle.stat()
      if (!stats.isFile() || stats.size > limit || await this.#resolve(file) !== path) return undefined
      return await handle.readFile()
    } finally {
      await handle.close()
    }
  }

  /** The real path; undefined for what is not there or leads out, which is noted. */
  async #resolve (path: string): Promise<string | undefined> {
    const realPath = await realpath(join(this.root, path)).catch(undefinedIfAbsent)
    if (realPath === undefined || realPath === this.root) return realPath
    const below = this.#containers.flatMap((container) => pathFrom(container, realPath) || [])
    if (below.length === 0) this.outside.push({ path, reason: 'link_outside' })
    return below.some((relative) => !isVersionControl(relative.split('/'))) ? realPath : undefined
  }
}

function undefinedIfAbsent (error: unknown): undefined {
  if (!['not_found', 'permission_denied'].includes(asRefused(error).refusal)) throw error
}
