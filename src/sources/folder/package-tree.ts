import type { LayoutTree, TreeEntry } from '../../core/layout/layout.ts'
import { compareCodePoints } from '../../core/shared/text.ts'
import type { SourceTree } from '../publish/source-tree.ts'

/** A tree in which packages are folders beside them. */
export class PackageTree implements LayoutTree {
  readonly #tree: LayoutTree
  readonly #packages: SourceTree

  constructor (tree: LayoutTree, packages: SourceTree) {
    this.#tree = tree
    this.#packages = packages
  }

  async entries (folder: string): Promise<readonly TreeEntry[]> {
    const entries = await this.#tree.entries(folder)
    const names = new Set(entries.map(({ name }) => name))
    const more = (await this.#packages.entries(folder)).filter(({ name }) => !names.has(name))
    return more.length === 0 ? entries : [...entries, ...more].sort((a, b) => compareCodePoints(a.name, b.name))
  }

  async realPath (folder: string): Promise<string> {
    return this.#packages.isFolder(folder) && (await this.#tree.entries(folder)).length === 0 ? `package:${folder}` : await this.#tree.realPath(folder)
  }

  async read (file: string, limit: number): Promise<Buffer | undefined> {
    return await this.#tree.read(file, limit) ?? await this.#packages.read(file, limit)
  }
}
