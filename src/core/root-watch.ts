import { once } from 'node:events'
import { lstatSync, type Stats } from 'node:fs'
import { basename, dirname, relative, resolve, sep } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { FSWatcher, type ChokidarOptions } from 'chokidar'
import { POLL_MS, WATCH_BATCH } from './limits.ts'

export type CreateFsWatcher = (options: ChokidarOptions) => FSWatcher

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

interface FolderWatch {
  readonly path: string
  readonly watcher: FSWatcher
}

const MAIN_FILE = /[/\\]skill\.md$/i

/**
 * The watches of one root: on the folder it stands in, on the root, and one on each skill folder. chokidar gets a
 * watcher of its own for each folder, told to look at nothing but the folder: one for the whole tree lists a folder of
 * 10,000 entries anew, entry by entry, with each change in it, and keeps twice the memory.
 */
export class RootWatch {
  readonly #options: RootWatchOptions
  readonly #above: FSWatcher
  readonly #folders = new Map<string, FolderWatch>()
  /** Names of folders, and of the root as `undefined`, that may be other folders than the ones under watch. */
  readonly #stale = new Set<string | undefined>()
  #root: FolderWatch | undefined
  #view: RootView = { realPath: undefined, folders: new Map() }
  #working: Promise<void> | undefined
  #isDue = false
  /** Everything of some view has been under watch: what is added now may have changed already. */
  #isSetUp = false
  #closed = false

  constructor (options: RootWatchOptions) {
    this.#options = options
    const { root, onHint } = options
    // A root that is a link turns wherever a link beside it turns: `skills -> ..data/skills` is itself never touched.
    const isLink = isSymbolicLink(root)
    // From above, since a watch dies with its folder: the comings and goings of the root are seen there (K3).
    const parent = dirname(root)
    this.#above = this.#watch(parent, (path, isRename) => {
      const isRoot = basename(path) === basename(root)
      if (isRoot && isRename) this.#renew(undefined)
      // Polling tells of the parent only that something in it is new.
      if (isRoot || isLink || path === parent) onHint(undefined)
    })
  }

  /** Everything that was to be watched is. */
  get isReady (): boolean {
    return this.#isSetUp && this.#working === undefined
  }

  follow (view: RootView): void {
    this.#view = view
    this.#beginWork()
  }

  async close (): Promise<void> {
    this.#closed = true
    await this.#working
    const watches = [...this.#folders.values(), ...this.#root === undefined ? [] : [this.#root]]
    await Promise.all([this.#above.close(), ...watches.map(({ watcher }) => watcher.close())])
  }

  #renew (name: string | undefined): void {
    this.#stale.add(name)
    if (this.#isSetUp) this.#beginWork()
  }

  #beginWork (): void {
    this.#isDue = true
    this.#working ??= this.#work()
  }

  /** Brings the watches in line with the view, a batch at a time, until they are. */
  async #work (): Promise<void> {
    // Events come in bursts: all that this turn delivers is one piece of work.
    await nextTurn()
    while (this.#isDue && !this.#closed) {
      this.#isDue = false
      const { realPath, folders } = this.#view
      const stale = new Set(this.#stale)
      this.#stale.clear()
      await this.#watchRoot(realPath, stale.has(undefined))
      for (const [name, { path, watcher }] of this.#folders) {
        if (folders.get(name)?.realPath === path && !stale.has(name) && !stale.has(undefined)) continue
        this.#folders.delete(name)
        await watcher.close()
      }
      const added = [...folders].filter(([name]) => !this.#folders.has(name))
      for (let start = 0; start < added.length && !this.#closed; start += WATCH_BATCH) {
        await Promise.all(added.slice(start, start + WATCH_BATCH).map(([name, folder]) => this.#watchFolder(name, folder.realPath)))
      }
    }
    this.#working = undefined
    this.#isSetUp = true
    if (!this.#closed) this.#options.onReady()
  }

  async #watchRoot (path: string | undefined, isStale: boolean): Promise<void> {
    if (this.#root?.path === path && !isStale) return
    await this.#root?.watcher.close()
    this.#root = undefined
    if (path === undefined) return
    const watcher = this.#watch(path, (changed, isRename) => {
      const [name = ''] = relative(path, changed).split(sep)
      if (isRename && this.#view.folders.has(name)) this.#renew(name)
      this.#options.onHint(name === '' || name === '..' ? undefined : name)
    })
    this.#root = { path, watcher }
    await once(watcher, 'ready')
  }

  async #watchFolder (name: string, path: string): Promise<void> {
    const watcher = this.#watch(path, () => { this.#options.onHint(name) })
    this.#folders.set(name, { path, watcher })
    await once(watcher, 'ready')
    // What was put into a new folder before the watch stood gave no event.
    if (this.#isSetUp && !this.#closed) this.#options.onHint(name)
  }

  #watch (folder: string, onChange: (path: string, isRename: boolean) => void): FSWatcher {
    const { polling, createFsWatcher = (settings) => new FSWatcher(settings), onError } = this.#options
    const watcher = createFsWatcher({
      depth: 0,
      ignored: polling ? isNeitherMainFile(folder) : (path) => path !== folder,
      usePolling: polling,
      interval: POLL_MS,
      binaryInterval: POLL_MS,
      ignoreInitial: true,
      followSymlinks: false,
      persistent: false
    })
    watcher.on('error', (error) => { if (!this.#closed) onError(error) })
    watcher.on('all', (_event, path) => { if (!this.#closed) onChange(path, false) })
    // A watched folder reports its entries here: to all other events they are ignored. Polling gives absolute paths.
    watcher.on('raw', (event, name) => {
      if (!this.#closed) onChange(resolve(folder, typeof name === 'string' ? name : ''), event === 'rename')
    })
    watcher.add(folder)
    return watcher
  }
}

/** Polling sees only the names in a folder: an edit in place shows at the file alone. */
function isNeitherMainFile (folder: string): (path: string, stats?: Stats) => boolean {
  return (path, stats) => path !== folder && (stats?.isDirectory() === true || !MAIN_FILE.test(path))
}

function isSymbolicLink (path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink()
  } catch {
    return false
  }
}
