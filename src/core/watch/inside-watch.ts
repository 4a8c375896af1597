import { join, sep } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { FolderWatcher, type FolderWatcherOptions } from './folder-watcher.ts'
import { DEBOUNCE_MS } from '../limits.ts'

export interface InsideWatchOptions extends Omit<FolderWatcherOptions, 'onChange'> {
  /** Something inside of the skill with this folder is different, or was not watched until now. */
  readonly onChange: (skillFolder: string) => void
}

/**
 * The watches on the folders inside of skills, by their real paths. There may be as many as skills or more, and only who
 * wants to hear of every file needs them: a watch of its own, which can be dropped as a whole.
 */
export class InsideWatch {
  readonly #options: InsideWatchOptions
  readonly #folders: FolderWatcher
  /** Folders inside by the folder of the skill, and the other way round: a link makes one folder part of several skills. */
  readonly #inside = new Map<string, readonly string[]>()
  readonly #skillFolders = new Map<string, Set<string>>()
  readonly #due = new Set<string>()
  #working: Promise<void> | undefined
  #closed = false

  constructor (options: InsideWatchOptions) {
    this.#options = options
    this.#folders = new FolderWatcher({ ...options, onChange: (folder, entry) => this.#onChange(folder, entry) })
  }

  /** The folders that are inside of a skill from now on. */
  follow (skillFolder: string, inside: readonly string[]): void {
    const before = this.#inside.get(skillFolder) ?? []
    if (inside.length === 0) this.#inside.delete(skillFolder)
    else this.#inside.set(skillFolder, inside)
    for (const folder of inside) {
      const owners = this.#skillFolders.get(folder)
      if (owners === undefined) this.#skillFolders.set(folder, new Set([skillFolder]))
      else owners.add(skillFolder)
      if (!this.#folders.has(folder)) this.#watch(folder)
    }
    const kept = new Set(inside)
    for (const folder of before) if (!kept.has(folder)) this.#leave(folder, skillFolder)
  }

  /** Forgets the skills of all other folders. */
  keep (skillFolders: { has (skillFolder: string): boolean }): void {
    for (const skillFolder of this.#inside.keys()) if (!skillFolders.has(skillFolder)) this.follow(skillFolder, [])
  }

  /** There may be another folder at this path than the one under watch, which goes on watching that wherever it went. */
  renew (path: string): void {
    for (const skillFolder of [path, ...this.#skillFolders.get(path) ?? []]) {
      for (const folder of this.#inside.get(skillFolder) ?? []) {
        if (folder !== path && !folder.startsWith(path + sep)) continue
        this.#folders.remove(folder)
        this.#watch(folder)
      }
    }
  }

  async close (): Promise<void> {
    this.#closed = true
    await this.#folders.close()
  }

  #onChange (folder: string, entry: string): void {
    if (entry !== '') this.renew(join(folder, entry))
    this.#tell(folder)
  }

  #tell (folder: string): void {
    if (!this.#closed) this.#skillFolders.get(folder)?.forEach((skillFolder) => this.#options.onChange(skillFolder))
  }

  #watch (folder: string): void {
    this.#due.add(folder)
    this.#working ??= this.#work()
  }

  #leave (folder: string, skillFolder: string): void {
    const owners = this.#skillFolders.get(folder)
    owners?.delete(skillFolder)
    if (owners?.size !== 0) return
    this.#skillFolders.delete(folder)
    this.#due.delete(folder)
    this.#folders.remove(folder)
  }

  async #work (): Promise<void> {
    while (this.#due.size > 0 && !this.#closed) {
      // They are found skill by skill; those that are added together share one of chokidar's watchers.
      await pause(DEBOUNCE_MS, undefined, { ref: false })
      const added = [...this.#due].filter((folder) => !this.#folders.has(folder))
      this.#due.clear()
      await this.#folders.add(added)
      // What changed before the watches stood gave no event.
      for (const folder of added) this.#tell(folder)
    }
    this.#working = undefined
  }
}
