import { join } from 'node:path'
import type { IgnoreRules } from '../../core/read/ignore-file.ts'
import { findSkills } from '../../core/layout/find-skills.ts'
import type { FoundSkills, LeftOut } from '../../core/layout/layout.ts'
import type { ListedFolder, Listing } from '../../core/roots/list-root.ts'
import type { RootOptions } from '../../core/roots/root.ts'
import { isIgnored } from '../../core/roots/ignore-rules.ts'
import { coalesce } from '../../core/shared/async.ts'
import type { CoreLog } from '../../core/shared/log.ts'
import { Signal } from '../signal.ts'
import { errorCode } from '../../core/shared/system-errors.ts'
import { whyUnwritable } from '../../config/files/files.ts'
import type { SourceStatus } from '../../schemas/health.ts'
import type { LayoutFolder } from '../address/source-kind.ts'
import { Failure } from '../failure.ts'
import type { Keeper } from '../keeper.ts'
import { type LayoutReport, summaryOf } from '../publish/report.ts'
import type { StateFolder } from '../publish/state-folder.ts'
import { AddressError, SourceError } from '../source-error.ts'
import { DiskTree } from './disk-tree.ts'
import { FolderPackages } from './folder-packages.ts'
import { FolderWatch } from './folder-watch.ts'

interface FolderKeeperOptions {
  readonly folder: LayoutFolder
  readonly state: StateFolder
  readonly log: CoreLog
  readonly polling?: boolean | undefined
  readonly linkTargets?: readonly string[] | undefined
}

interface FolderListing extends Listing {
  folders: Listing['folders']
  ignored: ReadonlySet<string>
  readonly changed: Signal<void>
}

/**
 * Keeps the listing of a folder with a layout near its disk: any event below it, and each comparison at intervals,
 * searches all of it again. Skills are served where they lie; those of packages are unpacked into the state folder.
 */
export class FolderKeeper implements Keeper {
  readonly #options: FolderKeeperOptions
  readonly #listing: FolderListing = { folders: undefined, ignored: new Set(), changed: new Signal(), isFixed: false }
  readonly #closing = new AbortController()
  readonly #packages: FolderPackages
  readonly #failure = new Failure()
  readonly sync = coalesce(() => this.#sync())
  #watch: FolderWatch | undefined
  #root: string | undefined
  #report: LayoutReport | undefined
  #checkedAt: Date | undefined

  constructor (options: FolderKeeperOptions) {
    this.#options = options
    const { folder: { name, path }, state } = options
    this.#packages = new FolderPackages(name, path, state, this.#closing.signal)
  }

  get root (): RootOptions & { readonly name: string } {
    const { path, name, prefix = '' } = this.#options.folder
    return { path, name, listed: this.#listing, prefix }
  }

  get status (): SourceStatus {
    const { folders } = this.#listing
    return {
      name: this.#options.folder.name,
      kind: 'folder',
      ...this.#failure.statusOf(folders !== undefined),
      skills: folders?.size ?? 0,
      ...this.#checkedAt !== undefined && { checked_at: this.#checkedAt.toISOString() },
      ...folders !== undefined && this.#report
    }
  }

  /** The first search. The folder need not be there. */
  async open (): Promise<void> {
    await this.sync()
  }

  start (): void {
    const { folder: { name, path }, polling = false, log } = this.#options
    this.#watch = new FolderWatch({
      path,
      polling,
      onChange: () => { this.hint() },
      onError: (code) => {
        log.warn({ source: name, path, code }, 'changes of a folder cause no events: it is compared at intervals')
      }
    })
    this.#watch.follow(this.#root)
    this.hint()
  }

  hint (): void {
    void this.sync()
  }

  async close (): Promise<void> {
    this.#closing.abort()
    await this.#watch?.close()
    await this.sync()
    await this.#packages.close()
  }

  async #sync (): Promise<void> {
    const { folder: { path }, linkTargets } = this.#options
    if (this.#closing.signal.aborted) return
    try {
      const tree = await DiskTree.open(path, linkTargets)
      this.#root = tree.root
      const problem = await this.#search(tree)
      this.#checkedAt = new Date()
      if (problem === undefined) this.#failure.clear()
      else this.#fail(problem)
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#lose(error)
    }
    this.#watch?.follow(this.#root)
  }

  /** Returns what keeps packages from being unpacked: the skills next to them are served in any case. */
  async #search (tree: DiskTree): Promise<SourceError | undefined> {
    const { folder: { layout, name, path: top, include, exclude, prefix = '' } } = this.#options
    const options = { layout, name, include, exclude }
    const found = await findSkills(tree, options)
    const rules = await tree.ignoreRules()
    const isHidden = (path: string): boolean => path !== '' && isIgnored(rules, path, true)
    const hasPackages = found.packages.length > 0
    const problem = hasPackages ? await this.#unpack(tree, found, { ...options, prefix, isHidden }) : undefined
    const packaged = hasPackages ? this.#packages.published : undefined
    const folders = new Map<string, ListedFolder>(packaged?.folders)
    for (const { name, path } of found.skills.filter(({ path }) => !isHidden(path))) {
      const place = path === '' ? top : join(top, path)
      const realPath = await tree.realPath(path)
      folders.set(prefix + name, { path: place, realPath, rules: rulesOf(rules, prefix + name, path) })
    }
    const hidden = found.skills.filter(({ path }) => isHidden(path))
    const ignored = hidden.map(({ path }): LeftOut => ({ path, reason: 'ignored' }))
    const leftOut = [...found.leftOut, ...packaged?.leftOut ?? [], ...tree.outside, ...ignored]
    this.#report = summaryOf({ ...found, leftOut }, packaged?.folders.size)
    this.#list(folders, new Set(hidden.map(({ name }) => prefix + name)))
    return problem
  }

  async #unpack (
    tree: DiskTree, found: FoundSkills, options: Parameters<FolderPackages['publish']>[2]
  ): Promise<SourceError | undefined> {
    try {
      await this.#packages.publish(tree, found, options)
      return undefined
    } catch (error) {
      this.#closing.signal.throwIfAborted()
      return asPackageError(error)
    }
  }

  #list (folders: ReadonlyMap<string, ListedFolder>, ignored: ReadonlySet<string>): void {
    const { folder: { name, path }, log } = this.#options
    const before = this.#listing.folders
    this.#listing.ignored = ignored
    const isSame = before !== undefined && isSameListing(before, folders)
    if (!isSame) this.#listing.folders = folders
    // Something in the skills may have changed.
    this.#listing.changed.emit()
    if (isSame) return
    const { layout, left_out: leftOut } = this.#report ?? {}
    const details = { source: name, path, layout, skills: folders.size, leftOut: leftOut?.count ?? 0 }
    log.info(details, before === undefined ? 'a folder was searched for skills' : 'skills of a folder changed')
  }

  /** A folder that is gone has no skills; of one that cannot be read now, those of the last search stay. */
  #lose (cause: unknown): void {
    const error = asFolderError(cause)
    if (error.code === 'not_found') this.#root = undefined
    if (error.code === 'not_found' || error.code === 'auth_failed') {
      const isNews = this.#listing.folders !== undefined
      this.#listing.folders = undefined
      if (isNews) this.#listing.changed.emit()
    }
    this.#fail(error)
  }

  #fail (error: SourceError): void {
    const { code, message, cause } = error
    const isNews = this.#failure.set(error)
    const { folder: { name, path }, log } = this.#options
    const details = { source: name, path, code, ...code === 'internal' && { err: cause } }
    if (isNews) log.warn(details, `a folder cannot be searched for skills: ${message}`)
  }
}

/** What the ignore file of the folder hides of a skill, which it knows by its path in the folder. */
function rulesOf (rules: IgnoreRules | undefined, name: string, path: string): IgnoreRules | undefined {
  if (rules === undefined || 'problem' in rules) return rules
  const id = `${rules.id} ${path}`
  const placeOf = (file: string): string => path === '' ? file.slice(name.length + 1) : path + file.slice(name.length)
  return { id, filter: { id, hides: (file, isFolder) => rules.filter.hides(placeOf(file), isFolder) } }
}

function asPackageError (error: unknown): SourceError {
  if (error instanceof SourceError) return error
  if (error instanceof AddressError) {
    const sentence = 'its packages cannot be unpacked: the state folder cannot be used; --state-dir chooses another'
    return new SourceError('disk', sentence, { details: error.message, cause: error })
  }
  if (errorCode(error) === '') {
    return new SourceError('internal', 'an unexpected error, which the log has', { cause: error })
  }
  return new SourceError('disk', `its packages cannot be unpacked (${whyUnwritable(error)})`, { cause: error })
}

function asFolderError (error: unknown): SourceError {
  if (error instanceof SourceError) return error
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

function isSameListing (a: ReadonlyMap<string, ListedFolder>, b: ReadonlyMap<string, ListedFolder>): boolean {
  return a.size === b.size && [...b].every(([name, { path, realPath, rules }]) => {
    const before = a.get(name)
    return before?.path === path && before.realPath === realPath && before.rules?.id === rules?.id
  })
}
