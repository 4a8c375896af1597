import { join } from 'node:path'
import type { ListedFolder, Listing } from '../../core/roots/listing.ts'
import type { RootOptions } from '../../core/roots/root.ts'
import { isIgnored } from '../../core/roots/ignore-rules.ts'
import { errorCode } from '../../core/shared/system-errors.ts'
import type { DiskGuard } from '../../core/disk/network/guard.ts'
import type { IgnoreRules } from '../../core/read/ignore-file.ts'
import { RefusedError } from '../../core/read/refused.ts'
import { coalesce, createQueue } from '../../core/shared/async.ts'
import { type CoreLog, SILENT } from '../../core/shared/log.ts'
import { Signal } from '../../core/shared/signal.ts'
import { findSkills } from '../../core/layout/find-skills.ts'
import type { LeftOut } from '../../core/layout/layout.ts'
import { Refresher, type RefreshTimes } from '../../core/refresher.ts'
import type { RefreshHints } from '../../core/watch/watcher.ts'
import type { SourceStatus } from '../../schemas/health.ts'
import type { LayoutFolder } from '../address/source-kind.ts'
import { type LayoutReport, summaryOf } from '../publish/report.ts'
import { SourceError } from '../source-error.ts'
import type { Keeper } from '../keeper.ts'
import { DiskTree, treeDisk } from './disk-tree.ts'
import { FolderPackages } from './folder-packages.ts'
import { PackageTree } from './package-tree.ts'

/** Shorter than the catalog's own pause, which comes on top. */
const TIMES: RefreshTimes = { debounce: 20, maxDebounce: 60 }

interface FolderKeeperOptions {
  readonly folder: LayoutFolder
  readonly log: CoreLog
  readonly polling?: boolean | undefined
  readonly linkTargets?: readonly string[] | undefined
  readonly guard: DiskGuard
}

/**
 * Keeps the listing of a folder with a layout near its disk. Skills are served where they lie, and compared with the disk at
 * each request like any other. Hints of a watcher and full searches at intervals say which folders are skills.
 */
export class FolderKeeper implements Keeper {
  readonly #options: FolderKeeperOptions
  readonly #listing: { folders: Listing['folders'], ignored: ReadonlySet<string>, readonly changed: Signal<void>, readonly isFixed: false } = { folders: undefined, ignored: new Set(), changed: new Signal(), isFixed: false }
  readonly #refresher: Refresher
  readonly #closing = new AbortController()
  /** The watcher and whoever asks for a search share the tree and the packages. */
  readonly #inTurn = createQueue()
  readonly #packages: FolderPackages
  /** Searches all of it anew. */
  readonly sync = coalesce(() => this.#inTurn(() => this.#refresh({ everything: true, names: new Set() })))
  #tree: DiskTree | undefined
  #report: LayoutReport | undefined
  #failure: { readonly error: SourceError, readonly since: Date } | undefined
  #checkedAt: Date | undefined

  constructor (options: FolderKeeperOptions) {
    this.#options = options
    const { folder, polling = false, log } = options
    this.#packages = new FolderPackages(folder.name, this.#closing.signal)
    this.#refresher = new Refresher({
      root: folder.path,
      polling,
      times: TIMES,
      // The catalog's own watcher of this folder says how it is; only failures are news.
      log: { ...SILENT, warn: (details, message) => { log.warn({ ...details, source: folder.name }, message) } },
      index: { refresh: (hints) => this.#inTurn(() => this.#refresh(hints)) }
    })
  }

  get root (): RootOptions & { readonly name: string } {
    const { path, name, prefix = '' } = this.#options.folder
    return { path, name, listed: this.#listing, prefix }
  }

  get status (): SourceStatus {
    const failure = this.#failure
    const isListed = this.#listing.folders !== undefined
    return {
      name: this.#options.folder.name,
      kind: 'folder',
      state: failure === undefined ? isListed ? 'ok' : 'waiting' : isListed ? 'stale' : 'failed',
      skills: this.#listing.folders?.size ?? 0,
      ...this.#checkedAt !== undefined && { checked_at: this.#checkedAt.toISOString() },
      ...failure !== undefined && { failing_since: failure.since.toISOString(), error: { code: failure.error.code, message: failure.error.message } },
      ...isListed && this.#report
    }
  }

  /** The first search. The folder need not be there. */
  async open (): Promise<void> {
    await this.sync()
  }

  start (): void {
    this.#refresher.start()
  }

  hint (): void {
    void this.sync()
  }

  async close (): Promise<void> {
    this.#closing.abort()
    await this.#refresher.close()
    await this.#inTurn(() => this.#packages.close())
  }

  async #refresh ({ everything, names }: RefreshHints): Promise<void> {
    const { folder: { path }, linkTargets, guard } = this.#options
    if (this.#closing.signal.aborted) return
    try {
      const isSame = !everything && names.size > 0 && this.#tree !== undefined && await this.#tree.isAt(path)
      if (!isSame) this.#tree = await DiskTree.open(path, linkTargets, treeDisk(path, linkTargets, guard))
      else if (await this.#tree?.update(['', ...names]) === false) return
      if (this.#tree !== undefined) await this.#search(this.#tree, !isSame)
      this.#checkedAt = new Date()
      if (this.#packages.problem === undefined) this.#failure = undefined
      else this.#setFailure(this.#packages.problem)
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#fail(error)
    }
  }

  async #search (tree: DiskTree, isThorough: boolean): Promise<void> {
    const { folder, log } = this.#options
    const { layout, name, include, exclude, prefix = '' } = folder
    const options = { layout, name, include, exclude }
    const plain = await findSkills(tree, options)
    const packages = await this.#packages.unpack(tree, plain.packages, isThorough)
    const found = packages === undefined ? plain : await findSkills(new PackageTree(tree, packages.tree), options)
    const rules = await tree.ignoreRules()
    const [ignored, skills] = split(found.skills, ({ path }) => path !== '' && isIgnored(rules, path, true))
    const [packed, own] = split(skills, ({ path }) => packages?.tree.isFolder(path) === true && !tree.listed.has(path))
    const folders = new Map<string, ListedFolder>()
    for (const { name, path } of own) folders.set(prefix + name, { path: path === '' ? folder.path : join(folder.path, path), realPath: await tree.realPath(path), rules: rulesOf(rules, prefix + name, path) })
    for (const [name, listed] of await this.#packages.publish(packed, prefix, plain.packages)) folders.set(name, listed)
    this.#refresher.follow({ realPath: tree.root, folders: tree.listed })
    this.#report = summaryOf({
      ...found, leftOut: [...found.leftOut, ...packages?.leftOut ?? [], ...tree.outside, ...ignored.map(({ path }): LeftOut => ({ path, reason: 'ignored' }))]
    })
    const before = this.#listing.folders
    this.#listing.ignored = new Set(ignored.map(({ name }) => prefix + name))
    if (before !== undefined && isSameListing(before, folders)) return
    this.#listing.folders = folders
    this.#listing.changed.emit()
    log.info({ source: name, path: folder.path, layout: found.layout, skills: folders.size, leftOut: this.#report.left_out?.count ?? 0 }, before === undefined ? 'a folder was searched for skills' : 'the skills of a folder are others')
  }

  /** A folder that is gone has no skills; of one that cannot be read now, those of the last search stay. */
  #fail (cause: unknown): void {
    const error = asSourceError(cause)
    const isGone = error.code !== 'disk' && error.code !== 'internal'
    if (isGone && this.#listing.folders !== undefined) {
      this.#listing.folders = undefined
      this.#tree = undefined
      this.#listing.changed.emit()
    }
    this.#refresher.follow({ realPath: undefined, folders: new Map() })
    this.#setFailure(error, cause)
  }

  #setFailure (error: SourceError, cause: unknown = error): void {
    const isSame = this.#failure?.error.code === error.code && this.#failure.error.message === error.message
    this.#failure = { error, since: this.#failure?.since ?? new Date() }
    const { name, path } = this.#options.folder
    if (!isSame) this.#options.log.warn({ source: name, path, code: error.code, ...error.code === 'internal' && { err: cause } }, `a folder cannot be searched for skills: ${error.message}`)
  }
}

/** What the ignore file of the folder hides of a skill, which it knows by its path in the folder. */
function rulesOf (rules: IgnoreRules | undefined, name: string, path: string): IgnoreRules | undefined {
  if (rules === undefined || 'problem' in rules) return rules
  const id = `${rules.id} ${path}`
  const { filter } = rules
  return { id, filter: { id, hides: (file, isFolder) => filter.hides(path === '' ? file.slice(name.length + 1) : path + file.slice(name.length), isFolder) } }
}

function asSourceError (error: unknown): SourceError {
  if (error instanceof SourceError) return error
  if (error instanceof RefusedError) return new SourceError('disk', 'a file of it changed each time that it was read', { cause: error })
  switch (errorCode(error)) {
    case 'ENOENT':
    case 'ENOTDIR':
    case 'ELOOP':
    case 'ENAMETOOLONG':
      return new SourceError('not_found', 'it is not there', { cause: error })
    case 'EACCES':
    case 'EPERM':
      return new SourceError('auth_failed', 'it may not be read by the server', { cause: error })
    case '':
      return new SourceError('internal', 'an unexpected error, which the log has', { cause: error })
    default:
      return new SourceError('disk', `its disk does not answer as it should (${errorCode(error)})`, { cause: error })
  }
}

function split<T> (items: readonly T[], test: (item: T) => boolean): [yes: T[], no: T[]] {
  return [items.filter((item) => test(item)), items.filter((item) => !test(item))]
}

function isSameListing (a: ReadonlyMap<string, ListedFolder>, b: ReadonlyMap<string, ListedFolder>): boolean {
  return a.size === b.size && [...b].every(([name, { path, realPath, rules }]) => {
    const before = a.get(name)
    return before?.path === path && before.realPath === realPath && before.rules?.id === rules?.id
  })
}
