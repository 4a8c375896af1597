import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { FoundSkills, LayoutOptions, LeftOut } from '../../core/layout/layout.ts'
import type { ListedFolder } from '../../core/roots/list-root.ts'
import { findPackaged } from '../publish/packages.ts'
import { planOf } from '../publish/plan.ts'
import { Publisher } from '../publish/publisher.ts'
import type { StateFolder } from '../publish/state-folder.ts'
import type { DiskTree } from './disk-tree.ts'

interface PackageOptions extends LayoutOptions {
  readonly prefix: string
  /** Whether the ignore file of the folder hides what is at a path. */
  readonly isHidden: (path: string) => boolean
}

interface Published {
  readonly fingerprint: string
  readonly folders: ReadonlyMap<string, ListedFolder>
  readonly leftOut: readonly LeftOut[]
}

/** Unpacks the packages of a folder into the state folder, and publishes their skills there. */
export class FolderPackages {
  readonly #name: string
  readonly #state: StateFolder
  readonly #publisher: Publisher
  readonly #signal: AbortSignal
  #release: (() => Promise<void>) | undefined
  #published: Published | undefined

  constructor (name: string, path: string, state: StateFolder, signal: AbortSignal) {
    this.#name = name
    this.#state = state
    this.#publisher = new Publisher(state.folderOf('sources', name, ['packages', path]))
    this.#signal = signal
  }

  /** What was published last: also while the state folder cannot be written. */
  get published (): Published | undefined {
    return this.#published
  }

  /**
   * Publishes the skills of packages when something changed.
   * @throws AddressError, SourceError or the disk's error where the state folder cannot be written
   */
  async publish (tree: DiskTree, found: FoundSkills, options: PackageOptions): Promise<void> {
    if (this.#release === undefined) {
      this.#release = await this.#state.acquire()
      await this.#publisher.open('')
    }
    await this.#state.confirm()
    const isWhole = await this.#publisher.restore()
    const states = await Promise.all(found.packages.map((path) => tree.fingerprintOf(path)))
    const others = found.skills.map(({ name }) => name)
    const fingerprint = JSON.stringify([states, others, found.packages.map(options.isHidden)])
    if (isWhole && this.#published?.fingerprint === fingerprint) return
    const tmp = await mkdtemp(join(this.#publisher.tmp, 'packages-'))
    try {
      const packaged = await findPackaged(tree, found, options, tmp, this.#signal)
      const skills = packaged.skills.filter(({ path }) => !options.isHidden(path))
      const planned = planOf(packaged.tree, skills, { prefix: options.prefix, where: `the folder ${this.#name}` })
      const state = { revision: '', settings: '', memory: {}, changedAt: '', report: undefined }
      await this.#publisher.publish(planned, async () => {}, { state, signal: this.#signal })
      const folders = this.#publisher.folders ?? new Map<string, ListedFolder>()
      this.#published = { fingerprint, folders, leftOut: packaged.leftOut }
    } finally {
      await rm(tmp, { recursive: true, force: true })
    }
  }

  async close (): Promise<void> {
    await this.#publisher.close()
    await this.#release?.()
  }
}
