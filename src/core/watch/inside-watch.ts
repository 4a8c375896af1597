import { dirname, join } from 'node:path'
import { FolderWatcher, type FolderWatcherEvents, type WatchFolder } from './folder-watcher.ts'

interface InsideWatchEvents extends Omit<FolderWatcherEvents, 'onChange'> {
  /**
   * A file inside of this skill may have changed.
   * @param isNew only a watch has been set: what happened before gave no event
   */
  readonly onChange: (skillFolder: string, isNew: boolean) => void
}

/**
 * Watches the folders inside of skills, by real path, for `RootWatch`. Such folders can be as many as the skills or more. They are
 * therefore watched only while a change feed, a well-known index or a policy follows all files. For figures see `FolderWatcher`.
 */
export class InsideWatch {
  readonly #watcher: FolderWatcher
  readonly #foldersOf = new Map<string, readonly string[]>()
  /** Skill folders by folder inside: through links one folder can be part of several skills. */
  readonly #ownersOf = new Map<string, Set<string>>()
  /** Paths at which the watched folder may have been replaced. */
  readonly #stale = new Set<string>()

  constructor ({ onChange, ...events }: InsideWatchEvents, watchFolder: WatchFolder) {
    this.#watcher = new FolderWatcher({
      ...events,
      onChange: (folder, entry) => {
        if (entry !== '') this.renew(join(folder, entry))
        for (const owner of this.#ownersOf.get(folder) ?? []) onChange(owner, entry === '')
      }
    }, watchFolder)
  }

  /** The folders that are followed, by skill folder. */
  get folders (): ReadonlyMap<string, readonly string[]> {
    return this.#foldersOf
  }

  /** Whether no folder waits to be watched. */
  get isIdle (): boolean {
    return this.#watcher.isIdle
  }

  /** Replaces the folders that are watched inside of a skill. */
  follow (skillFolder: string, folders: readonly string[]): void {
    const kept = new Set(folders)
    for (const folder of this.#foldersOf.get(skillFolder) ?? []) if (!kept.has(folder)) this.#leave(folder, skillFolder)
    if (folders.length === 0) this.#foldersOf.delete(skillFolder)
    else this.#foldersOf.set(skillFolder, folders)
    for (const folder of folders) this.#enter(folder, skillFolder)
  }

  /** Stops watching all skills except these. */
  keep (skillFolders: { has (skillFolder: string): boolean }): void {
    for (const skillFolder of this.#foldersOf.keys()) if (!skillFolders.has(skillFolder)) this.follow(skillFolder, [])
  }

  /** Watches anew what is at this path and below it: a watch follows the folder, not the path. */
  renew (path: string): void {
    if (!this.#ownersOf.has(path) && !this.#foldersOf.has(path)) return
    // Many changes of one folder cost as much as one.
    if (this.#stale.size === 0) setImmediate(() => { this.#renewStale() }).unref()
    this.#stale.add(path)
  }

  close (): void {
    this.#watcher.close()
  }

  #renewStale (): void {
    const isStale = (folder: string): boolean => this.#stale.has(folder) || (dirname(folder) !== folder && isStale(dirname(folder)))
    const skillFolders = new Set([...this.#stale].flatMap((path) => [path, ...this.#ownersOf.get(path) ?? []]))
    for (const skillFolder of skillFolders) {
      for (const folder of this.#foldersOf.get(skillFolder) ?? []) if (isStale(folder)) this.#watcher.renew(folder)
    }
    this.#stale.clear()
  }

  #enter (folder: string, skillFolder: string): void {
    const owners = this.#ownersOf.get(folder)
    if (owners === undefined) this.#ownersOf.set(folder, new Set([skillFolder]))
    else owners.add(skillFolder)
    this.#watcher.add(folder)
  }

  #leave (folder: string, skillFolder: string): void {
    const owners = this.#ownersOf.get(folder)
    owners?.delete(skillFolder)
    if (owners?.size !== 0) return
    this.#ownersOf.delete(folder)
    this.#watcher.remove(folder)
  }
}
