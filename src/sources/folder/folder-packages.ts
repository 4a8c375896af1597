import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { FoundSkill, LayoutTree, LeftOut, TreeEntry } from '../../core/layout/layout.ts'
import type { ListedFolder } from '../../core/roots/listing.ts'
import { compareCodePoints } from '../../core/shared/text.ts'
import { folderOf } from '../../core/shared/paths.ts'
import { MAX_FILE_BYTES } from '../publish/limits.ts'
import { folderOfPackage, unpackPackages } from '../publish/packages.ts'
import { planOf } from '../publish/plan.ts'
import { Publisher } from '../publish/publisher.ts'
import { type SourceFiles, SourceTree } from '../publish/source-tree.ts'
import type { StateFolder } from '../publish/state-folder.ts'
import type { DiskTree } from './disk-tree.ts'

interface Unpacked {
  readonly fingerprint: string
  readonly tmp: string
  readonly files: SourceFiles
  readonly tree: SourceTree
  readonly leftOut: readonly LeftOut[]
}

/** Unpacks the packages of a folder into the state folder, and publishes their skills there. */
export class FolderPackages {
  readonly #name: string
  readonly #state: StateFolder
  readonly #publisher: Publisher
  readonly #signal: AbortSignal
  #release: (() => Promise<void>) | undefined
  #unpacked: Unpacked | undefined

  constructor (name: string, path: string, state: StateFolder, signal: AbortSignal) {
    this.#name = name
    this.#state = state
    this.#publisher = new Publisher(state.folderOf('sources', name, ['packages', path]))
    this.#signal = signal
  }

  /**
   * A tree in which packages are folders next to them. They are unpacked again when one of them changed.
   * @throws AddressError, SourceError or the disk's error where the state folder cannot be written
   */
  async unpack (tree: DiskTree, paths: readonly string[]): Promise<{ tree: LayoutTree, leftOut: readonly LeftOut[] }> {
    if (this.#release === undefined) {
      this.#release = await this.#state.acquire()
      await this.#publisher.open('')
    }
    await this.#state.confirm()
    const isWhole = await this.#publisher.restore()
    const fingerprint = (await Promise.all(paths.map((path) => tree.fingerprintOf(path)))).join('\n')
    if (!isWhole || this.#unpacked?.fingerprint !== fingerprint) await this.#unpackNow(tree, paths, fingerprint)
    const packages = this.#unpacked
    if (packages === undefined) throw new Error('packages were not unpacked')
    return { tree: new PackageTree(tree, packages.tree), leftOut: packages.leftOut }
  }

  isPackaged (path: string): boolean {
    return this.#unpacked?.tree.isFolder(path) === true
  }

  /** Publishes skills of packages. Returns their folders by the skills' names. */
  async publish (skills: readonly FoundSkill[], prefix: string): Promise<ReadonlyMap<string, ListedFolder>> {
    const unpacked = this.#unpacked
    if (unpacked === undefined) return new Map()
    const planned = planOf(unpacked.tree, skills, { prefix, where: `the folder ${this.#name}` })
    const state = { revision: '', settings: '', memory: {}, changedAt: '', report: undefined }
    await this.#publisher.publish(planned, (files, signal) => unpacked.files.write(files, signal), { state, signal: this.#signal })
    return this.#publisher.folders ?? new Map<string, ListedFolder>()
  }

  async close (): Promise<void> {
    await this.#forget()
    await this.#publisher.close()
    await this.#release?.()
  }

  async #unpackNow (tree: DiskTree, paths: readonly string[], fingerprint: string): Promise<void> {
    await this.#forget()
    const tmp = await mkdtemp(join(this.#publisher.tmp, 'packages-'))
    const folders = new Set<string>()
    const files = new Set<string>()
    for (const above of new Set(paths.map(folderOf))) {
      for (const { name, kind } of await tree.entries(above)) (kind === 'folder' ? folders : files).add(join(above, name))
    }
    const packages = paths.filter((path) => !folders.has(folderOfPackage(path)))
      .map((path) => ({ path, read: () => tree.read(path, MAX_FILE_BYTES) }))
    const unpacked = await unpackPackages(packages, files, tmp, this.#signal)
    this.#unpacked = { fingerprint, tmp, files: unpacked.files, tree: new SourceTree(unpacked.files), leftOut: unpacked.leftOut }
  }

  async #forget (): Promise<void> {
    const tmp = this.#unpacked?.tmp
    this.#unpacked = undefined
    if (tmp !== undefined) await rm(tmp, { recursive: true, force: true })
  }
}

/** A tree in which packages are folders next to them. */
class PackageTree implements LayoutTree {
  readonly #tree: DiskTree
  readonly #packages: SourceTree

  constructor (tree: DiskTree, packages: SourceTree) {
    this.#tree = tree
    this.#packages = packages
  }

  async entries (folder: string): Promise<readonly TreeEntry[]> {
    const entries = await this.#tree.entries(folder)
    const names = new Set(entries.map(({ name }) => name))
    const more = (await this.#packages.entries(folder)).filter(({ name }) => !names.has(name))
    return [...entries, ...more].sort((a, b) => compareCodePoints(a.name, b.name))
  }

  async realPath (folder: string): Promise<string> {
    const isPacked = this.#packages.isFolder(folder) && !await this.#tree.isFolder(folder)
    return isPacked ? `package:${folder}` : await this.#tree.realPath(folder)
  }

  async read (file: string, limit: number): Promise<Buffer | undefined> {
    return await this.#tree.read(file, limit) ?? await this.#packages.read(file, limit)
  }
}
