import { lstatSync, readlinkSync } from 'node:fs'
import { basename, dirname, join, parse, resolve, sep } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { FolderWatcher, type CreateFsWatcher } from './folder-watcher.ts'
import { InsideWatch } from './inside-watch.ts'

/** What there is to watch of a root. */
export interface RootView {
  /** Undefined while the root is not there. */
  readonly realPath: string | undefined
  /** Real paths of the skill folders by the name that a hint is given under. */
  readonly folders: ReadonlyMap<string, { readonly realPath: string }>
}

export interface RootWatchOptions {
  /** Absolute path, as configured. */
  readonly root: string
  readonly polling: boolean
  readonly createFsWatcher?: CreateFsWatcher
  readonly onHint: (name: string | undefined) => void
  readonly onError: (error: unknown) => void
  /** Everything that was to be watched is. */
  readonly onReady: () => void
}

/** Links that are followed on the way to a root, as many as Linux follows. */
const MAX_LINKS = 40

/** The watches of one root: on the folders that lead to it, on the root, and on each skill folder. */
export class RootWatch {
  readonly #options: RootWatchOptions
  readonly #folders: FolderWatcher
  /** Folders that may be other ones by now than those under watch. */
  readonly #stale = new Set<string>()
  #view: RootView = { realPath: undefined, folders: new Map() }
  /** Names of the skills by the real path of their folder. */
  #names: ReadonlyMap<string, readonly string[]> = new Map()
  /** Paths that decide what the root is. */
  #way: ReadonlySet<string> = new Set()
  #inside: InsideWatch | undefined
  #working: Promise<void> | undefined
  #isDue = false
  /** Everything of some view has been under watch: what is added now may have changed already. */
  #isSetUp = false
  #closed = false

  constructor (options: RootWatchOptions) {
    this.#options = options
    this.#folders = new FolderWatcher({ ...options, onChange: (folder, entry) => this.#onChange(folder, entry) })
    this.#beginWork()
  }

  /** Everything that was to be watched is. */
  get isReady (): boolean {
    return this.#isSetUp && this.#working === undefined
  }

  follow (view: RootView): void {
    const names = new Map<string, string[]>()
    for (const [name, { realPath }] of view.folders) {
      const others = names.get(realPath)
      if (others === undefined) names.set(realPath, [name])
      else others.push(name)
    }
    this.#view = view
    this.#names = names
    this.#inside?.keep(names)
    this.#beginWork()
  }

  /** What there is to watch inside of the skill with this folder from now on, until `leaveInside`. Not when polling. */
  followInside (skillFolder: string, inside: readonly string[]): void {
    const { polling, onHint } = this.#options
    if (this.#closed || polling || !this.#names.has(skillFolder)) return
    this.#inside ??= new InsideWatch({
      ...this.#options,
      onChange: (folder) => { this.#names.get(folder)?.forEach((name) => onHint(name)) }
    })
    this.#inside.follow(skillFolder, inside)
  }

  async leaveInside (): Promise<void> {
    const inside = this.#inside
    this.#inside = undefined
    await inside?.close()
  }

  async close (): Promise<void> {
    this.#closed = true
    await Promise.all([this.#folders.close(), this.leaveInside()])
  }

  #onChange (folder: string, entry: string): void {
    if (this.#closed) return
    const path = join(folder, entry)
    // A watch holds on to the folder that it was set on, wherever that goes; of its end it tells under its own name.
    if (entry !== '' && this.#way.has(path)) this.#renew(this.#folders.folders)
    else if (entry !== '' && this.#folders.has(path)) this.#renew([path])
    else if (entry === basename(folder) && this.#leadsToRoot(folder)) this.#renew([folder])
    else if (entry !== '') this.#inside?.renew(path)
    this.#hint(folder, entry)
  }

  /** Passes on that `entry` of `folder` may be different, or, without an entry, anything in it. */
  #hint (folder: string, entry = ''): void {
    const { onHint } = this.#options
    if (entry === '' ? this.#leadsToRoot(folder) : this.#way.has(join(folder, entry))) onHint(undefined)
    if (folder === this.#view.realPath) onHint(entry === '' ? undefined : entry)
    this.#names.get(folder)?.forEach((name) => onHint(name))
  }

  #renew (folders: readonly string[]): void {
    for (const folder of folders) {
      this.#stale.add(folder)
      this.#inside?.renew(folder)
    }
    this.#beginWork()
  }

  #beginWork (): void {
    this.#isDue = true
    this.#working ??= this.#work()
  }

  /** Brings the watches in line with the disk and the view, until they are. */
  async #work (): Promise<void> {
    // Events come in bursts: all that this turn delivers is one piece of work.
    await nextTurn()
    while (this.#isDue && !this.#closed) {
      this.#isDue = false
      this.#way = traceWay(this.#options.root)
      const { realPath } = this.#view
      const wanted = new Set([...this.#way].map((path) => dirname(path)))
      if (realPath !== undefined) wanted.add(realPath)
      for (const folder of this.#names.keys()) wanted.add(folder)
      for (const folder of this.#folders.folders) {
        if (!wanted.has(folder) || this.#stale.has(folder)) this.#folders.remove(folder)
      }
      this.#stale.clear()
      const added = [...wanted].filter((folder) => !this.#folders.has(folder))
      await this.#folders.add(added)
      // What changed before the watches stood gave no event.
      if (added.some((folder) => this.#leadsToRoot(folder))) this.#isDue = true
      if (this.#isSetUp && !this.#closed) for (const folder of added) this.#hint(folder)
    }
    this.#working = undefined
    this.#isSetUp = true
    if (!this.#closed) this.#options.onReady()
  }

  #leadsToRoot (folder: string): boolean {
    return [...this.#way].some((path) => dirname(path) === folder)
  }
}

/**
 * The paths that decide which folder `path` is: where it ends, or the first that is missing, and each link that is
 * passed on the way. Their own folders are real.
 */
function traceWay (path: string): Set<string> {
  const way = new Set<string>()
  let { root: folder } = parse(path)
  let rest = namesOf(path)
  let links = 0
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    const entry = join(folder, name)
    const target = linkTarget(entry)
    if (target !== undefined && ++links <= MAX_LINKS) {
      way.add(entry)
      const next = resolve(folder, target)
      folder = parse(next).root
      rest = [...namesOf(next), ...rest]
    } else if (rest.length === 0 || !isFolder(entry)) return way.add(entry)
    else folder = entry
  }
  return way
}

function namesOf (path: string): string[] {
  return path.slice(parse(path).root.length).split(sep).filter((name) => name !== '')
}

function linkTarget (path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

function isFolder (path: string): boolean {
  try {
    return lstatSync(path).isDirectory()
  } catch {
    return false
  }
}
