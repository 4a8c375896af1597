import { constants } from 'node:fs'
import { open, readdir, realpath, stat } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { createNetworkDisk } from '../../core/read/disk.ts'
import { isVersionControl } from '../../core/read/hidden.ts'
import { IGNORE_FILE, type IgnoreRules } from '../../core/read/ignore-file.ts'
import { pathFrom } from '../../core/shared/paths.ts'
import type { LayoutTree, LeftOut, TreeEntry } from '../../layout/layout.ts'
import { readIgnoreFile } from '../../core/roots/ignore-rules.ts'
import { compareCodePoints } from '../../core/shared/text.ts'
import { errorCode } from '../../core/shared/system-errors.ts'

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants

interface Listed {
  readonly realPath: string
  readonly entries: readonly TreeEntry[]
}

/** A folder of this machine, for one search for skills. Links are followed where they stay inside, or are allowed. */
export class DiskTree implements LayoutTree {
  readonly #root: string
  readonly #containers: readonly string[]
  readonly #folders = new Map<string, Promise<Listed | undefined>>()
  /** Links that lead out of the tree. */
  readonly outside: LeftOut[] = []

  private constructor (root: string, containers: readonly string[]) {
    this.#root = root
    this.#containers = containers
  }

  /**
   * @param path absolute
   * @param linkTargets absolute paths of the folders outside that links may lead into
   * @throws an operating system error where there is no folder
   */
  static async open (path: string, linkTargets: readonly string[] = []): Promise<DiskTree> {
    const root = await realpath(path)
    const allowed = await Promise.all(linkTargets.map((target) => realpath(target).catch(() => [])))
    const tree = new DiskTree(root, [root, ...allowed.flat()])
    tree.#folders.set('', tree.#list(''))
    await tree.#find('')
    return tree
  }

  get root (): string {
    return this.#root
  }

  async entries (folder: string): Promise<readonly TreeEntry[]> {
    return (await this.#find(folder))?.entries ?? []
  }

  async realPath (folder: string): Promise<string> {
    return (await this.#find(folder))?.realPath ?? join(this.#root, folder)
  }

  async read (file: string, limit: number): Promise<Buffer | undefined> {
    return await this.#read(join(this.#root, file), limit).catch(undefinedIfAbsent)
  }

  async #read (file: string, limit: number): Promise<Buffer | undefined> {
    const path = await realpath(file)
    if (!this.#isInside(path)) return undefined
    const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    try {
      const stats = await handle.stat()
      if (!stats.isFile() || stats.size > limit || await realpath(path) !== path) return undefined
      return await handle.readFile()
    } finally {
      await handle.close()
    }
  }

  /** What the ignore file at the top says; undefined without one. */
  async ignoreRules (): Promise<IgnoreRules | undefined> {
    if (!(await this.entries('')).some(({ name }) => name === IGNORE_FILE)) return undefined
    return (await readIgnoreFile(createNetworkDisk(), this.#root))?.rules
  }

  /** Changes whenever the file does. */
  async fingerprintOf (file: string): Promise<string> {
    const { ino, size, mtimeNs, ctimeNs } = await stat(join(this.#root, file), { bigint: true })
    return `${file}\0${ino}-${size}-${mtimeNs}-${ctimeNs}`
  }

  #find (folder: string): Promise<Listed | undefined> {
    let listed = this.#folders.get(folder)
    if (listed === undefined) this.#folders.set(folder, listed = this.#list(folder).catch(undefinedIfAbsent))
    return listed
  }

  async #list (folder: string): Promise<Listed | undefined> {
    const realPath = await realpath(join(this.#root, folder))
    if (realPath !== this.#root && !this.#isInside(realPath)) return undefined
    const entries: TreeEntry[] = []
    for (const entry of await readdir(realPath, { withFileTypes: true })) {
      const { name } = entry
      if (entry.isDirectory()) entries.push({ name, kind: 'folder', linked: false })
      else if (entry.isFile()) entries.push({ name, kind: 'file', linked: false })
      else if (entry.isSymbolicLink()) {
        const kind = await this.#meaningOf(join(realPath, name))
        if (kind === 'outside') this.outside.push({ path: posix.join(folder, name), reason: 'link_outside' })
        else if (kind !== undefined) entries.push({ name, kind, linked: true })
      }
    }
    return { realPath, entries: entries.sort((a, b) => compareCodePoints(a.name, b.name)) }
  }

  async #meaningOf (link: string): Promise<TreeEntry['kind'] | 'outside' | undefined> {
    const path = await realpath(link).catch(undefinedIfAbsent)
    if (path === undefined || path === this.#root) return undefined
    if (!this.#isInside(path)) return 'outside'
    const stats = await stat(path).catch(undefinedIfAbsent)
    return stats?.isDirectory() === true ? 'folder' : stats?.isFile() === true ? 'file' : undefined
  }

  /** Strictly below a folder that links may lead into, and in no folder of version control. */
  #isInside (path: string): boolean {
    const below = this.#containers.map((container) => pathFrom(container, path) ?? '')
    return below.some((relative) => relative !== '' && !isVersionControl(relative.split('/')))
  }
}

function undefinedIfAbsent (error: unknown): undefined {
  if (!['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP', 'ENAMETOOLONG'].includes(errorCode(error))) throw error
}
