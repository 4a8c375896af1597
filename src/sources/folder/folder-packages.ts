import { access, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errorCode } from '../../core/shared/system-errors.ts'
import type { FoundSkill, LeftOut } from '../../core/layout/layout.ts'
import type { ListedFolder } from '../../core/roots/listing.ts'
import { whyUnwritable } from '../../config/files/files.ts'
import { MAX_FILE_BYTES } from '../publish/limits.ts'
import { folderOfPackage, unpackPackages } from '../publish/packages.ts'
import { folderOf } from '../../core/shared/paths.ts'
import { Publisher } from '../publish/publisher.ts'
import { SourceTree } from '../publish/source-tree.ts'
import { NO_LOCK } from '../publish/state-folder.ts'
import { SourceError } from '../source-error.ts'
import type { DiskTree } from './disk-tree.ts'

/** Room in the system's folder for temporary files. */
interface Room {
  readonly path: string
  readonly publisher: Publisher
}

interface Unpacked {
  readonly room: Room
  readonly fingerprint: string
  readonly tree: SourceTree
  readonly leftOut: readonly LeftOut[]
  readonly tmp: string
}

interface Published {
  readonly room: Room
  readonly folders: ReadonlyMap<string, ListedFolder>
}

/** Packages of a folder as they are now, or were last where the temporary folder cannot be written. */
export interface Packages {
  readonly tree: SourceTree
  readonly leftOut: readonly LeftOut[]
}

/**
 * Unpacks packages of a folder, and publishes their skills. Programs that clean temporary folders remove old files: once a file is
 * missing there, another temporary folder is used. A failure costs nothing that was published before.
 */
export class FolderPackages {
  readonly #name: string
  readonly #signal: AbortSignal
  #unpacked: Unpacked | undefined
  #published: Published | undefined
  #room: Room | undefined
  /** Numbers of files in the folders that nobody changes. */
  #counts: ReadonlyMap<string, number> = new Map()
  #isSuspect = false
  problem: SourceError | undefined

  constructor (name: string, signal: AbortSignal) {
    this.#name = name
    this.#signal = signal
  }

  /**
   * Undefined without packages. They are unpacked again when one of them changed.
   * @param isThorough whether to look for files that somebody has removed
   */
  async unpack (tree: DiskTree, paths: readonly string[], isThorough: boolean): Promise<Packages | undefined> {
    this.problem = undefined
    const before = this.#unpacked
    if (paths.length === 0) {
      this.#unpacked = undefined
    } else {
      await this.#attempt(async () => {
        const room = await this.#whole(isThorough || this.#isSuspect)
        const fingerprint = (await Promise.all(paths.map(async (path) => `${path}\0${await tree.fingerprintOf(path)}`))).join('\n')
        if (before?.room !== room || before.fingerprint !== fingerprint) this.#unpacked = await this.#unpackInto(room, tree, paths, fingerprint)
      })
    }
    if (before !== undefined && before !== this.#unpacked) await remove(before.tmp)
    return this.#unpacked
  }

  /** Copies skills of packages into folders of their own. Returns these by the skills' names. */
  async publish (skills: readonly FoundSkill[], prefix: string, paths: readonly string[]): Promise<ReadonlyMap<string, ListedFolder>> {
    const unpacked = this.#unpacked
    if (unpacked === undefined) return new Map()
    const packageFolders = paths.map(folderOfPackage)
    const wanted = skills.filter(({ path }) => packageFolders.some((folder) => path === folder || path.startsWith(`${folder}/`)))
    // What could not be unpacked is no reason to write what is published already.
    if (this.problem === undefined) await this.#attempt(() => this.#publishNow(unpacked, wanted, prefix))
    this.#isSuspect = this.problem !== undefined
    const names = new Set(wanted.map(({ name }) => prefix + name))
    return new Map([...this.#published?.folders ?? []].filter(([name]) => names.has(name)))
  }

  async close (): Promise<void> {
    for (const room of new Set([this.#room, this.#published?.room])) if (room !== undefined) await leave(room)
  }

  async #attempt (work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#signal.throwIfAborted()
      this.#isSuspect = true
      if (error instanceof SourceError) this.problem = error
      else if (errorCode(error) === '') throw error
      else this.problem = new SourceError('disk', `its packages cannot be unpacked into the folder for temporary files (${whyUnwritable(error)})`, { cause: error })
    }
  }

  /** Our room, or another one where something of it is missing. */
  async #whole (isThorough: boolean): Promise<Room> {
    const known = this.#room
    if (known !== undefined && await this.#isWhole(known, isThorough)) return known
    const path = await mkdtemp(join(tmpdir(), 'skillserve-'))
    const room = { path, publisher: new Publisher(join(path, 'published'), NO_LOCK.confirm) }
    this.#room = room
    if (known !== undefined && known !== this.#published?.room) await leave(known)
    await room.publisher.open('')
    return room
  }

  async #isWhole ({ path }: Room, isThorough: boolean): Promise<boolean> {
    try {
      await access(path)
      if (isThorough) for (const [folder, count] of this.#counts) if (await countIn(folder) !== count) return false
      return true
    } catch {
      return false
    }
  }

  async #unpackInto (room: Room, tree: DiskTree, paths: readonly string[], fingerprint: string): Promise<Unpacked> {
    const tmp = await mkdtemp(join(room.path, 'packages-'))
    try {
      const { folders, others } = await neighboursOf(tree, paths)
      const packages = paths.filter((path) => !folders.has(folderOfPackage(path))).map((path) => ({ path, read: () => tree.read(path, MAX_FILE_BYTES) }))
      const { files, leftOut } = await unpackPackages(packages, others, tmp, this.#signal)
      return { room, fingerprint, tree: await SourceTree.of(files), leftOut, tmp }
    } catch (error) {
      await remove(tmp)
      throw error
    }
  }

  async #publishNow ({ room, tree, tmp }: Unpacked, skills: readonly FoundSkill[], prefix: string): Promise<void> {
    const { publisher } = room
    await publisher.restore()
    const state = { revision: '', settings: '', memory: {}, changedAt: '', report: undefined }
    await publisher.publish(tree, skills, { state, prefix, where: `the folder ${this.#name}`, signal: this.#signal })
    const before = this.#published
    const folders = publisher.folders ?? new Map<string, ListedFolder>()
    this.#published = { room, folders }
    if (before !== undefined && before.room !== room) await leave(before.room)
    if (before?.folders === folders && this.#counts.has(tmp)) return
    const counts = new Map<string, number>()
    for (const folder of [tmp, ...[...folders.values()].map(({ realPath }) => realPath)]) counts.set(folder, await countIn(folder))
    this.#counts = counts
  }
}

/** What lies beside packages. */
async function neighboursOf (tree: DiskTree, paths: readonly string[]): Promise<{ readonly folders: ReadonlySet<string>, readonly others: ReadonlySet<string> }> {
  const folders = new Set<string>()
  const others = new Set<string>()
  for (const above of new Set(paths.map(folderOf))) {
    for (const { name, kind } of await tree.entries(above)) (kind === 'folder' ? folders : others).add(join(above, name))
  }
  return { folders, others }
}

/** Links are not followed. */
async function countIn (folder: string): Promise<number> {
  return (await readdir(folder, { recursive: true, withFileTypes: true })).length
}

async function leave ({ path, publisher }: Room): Promise<void> {
  await publisher.close()
  await remove(path)
}

/** What cannot be removed now is no reason to serve less. */
async function remove (path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true })
  } catch {
    // The system cleans its folder for temporary files.
  }
}
