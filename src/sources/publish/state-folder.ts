import { hash, randomUUID } from 'node:crypto'
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { checkNotServed, reasonOf } from '../../operator/files.ts'
import { AddressError } from '../source-error.ts'
import { FolderLock } from './folder-lock.ts'

const SETTING = 'STATE_DIR or --state-dir'

/** Time without use after which a folder is removed, in milliseconds. */
const UNUSED_MS = 7 * 24 * 3_600_000

/** The folder for everything that the service itself writes. Processes share it: see FolderLock. */
export class StateFolder {
  /** Absolute. */
  readonly path: string
  #served: readonly string[] = []
  #isChecked = false

  /** @param path undefined if the user has no home and names no folder: then state cannot be kept */
  constructor (path: string | undefined) {
    this.path = path ?? ''
  }

  /**
   * Sets the folders that are served, which must not contain the state folder.
   * @throws ConfigError if one does and the state folder is in use
   */
  async keepApart (folders: readonly string[]): Promise<void> {
    if (this.#isChecked) await checkNotServed(this.path, SETTING, folders)
    this.#served = folders
  }

  /**
   * Makes the folder, and removes folders that no process has used for a week.
   * @throws AddressError that names the setting
   */
  async prepare (): Promise<void> {
    if (this.#isChecked) return
    await checkStateFolder(this.path, this.#served)
    const probe = join(this.path, `probe-${randomUUID()}`)
    try {
      await mkdir(this.path, { recursive: true, mode: 0o700 })
      await writeFile(probe, 'x', { mode: 0o600 })
    } catch (error) {
      throw unwritable(this.path, error)
    } finally {
      await rm(probe, { force: true }).catch(() => {})
    }
    this.#isChecked = true
    for (const parent of ['sources', 'verified']) await removeUnused(join(this.path, parent))
  }

  /** Returns the folder of one source or root; it depends on the name and identity only. */
  folderOf (parent: 'sources' | 'verified', name: string, identity: unknown): string {
    return join(this.path, parent, `${name.slice(0, 40)}-${hash('sha256', JSON.stringify(identity)).slice(0, 12)}`)
  }

  /**
   * Locks a folder for this process: the given one, or one with a number appended.
   * @param onLost called when another process has taken over the folder
   * @throws AddressError that names the setting
   */
  async claim (
    folder: string, onLost?: () => void
  ): Promise<{ readonly folder: string, readonly release: () => void }> {
    await this.prepare()
    try {
      for (let number = 1; ; number++) {
        const candidate = number === 1 ? folder : `${folder}-${number}`
        await mkdir(candidate, { recursive: true, mode: 0o700 })
        const lock = new FolderLock(candidate, onLost)
        if (await lock.acquire() === undefined) return { folder: candidate, release: lock.release }
      }
    } catch (error) {
      throw unwritable(this.path, error)
    }
  }
}

/**
 * Checks whether state can be kept in a folder, and writes nothing.
 * @param served folders whose files are served
 * @throws ConfigError that names the setting
 */
export async function checkStateFolder (path: string | undefined, served: readonly string[]): Promise<void> {
  if (!path) {
    throw new AddressError('this user has no home folder to keep state in; set --state-dir or STATE_DIR')
  }
  await checkNotServed(path, SETTING, served)
}

/** Removes folders that nobody has used for a week, unless a process has locked them. */
async function removeUnused (parent: string): Promise<void> {
  for (const name of await readdir(parent).catch(() => [])) {
    const folder = join(parent, name)
    // Locking or unlocking a folder changes its modification time.
    const used = await stat(folder).catch(() => undefined)
    if (used?.isDirectory() !== true || Date.now() - used.mtimeMs < UNUSED_MS) continue
    const lock = new FolderLock(folder)
    // A folder that cannot be removed now is removed another time.
    if (await lock.acquire().catch(() => 'unknown') === undefined) {
      await rm(folder, { recursive: true, force: true }).catch(() => {})
      lock.release()
    }
  }
}

/** Makes the error that an operator gets for one of the disk at the start. */
export function unwritable (path: string, error: unknown): AddressError {
  const problem = `the state folder ${path} cannot be written (${reasonOf(error)})`
  return new AddressError(`${problem}; choose another with --state-dir or STATE_DIR`)
}
