import { EventEmitter } from 'node:events'
import { join } from 'node:path'
import { type IgnoreRules, readIgnoreFile } from '../../core/read/ignore-file.ts'
import { asRefused, RefusedError } from '../../core/read/refused.ts'
import { stampAt } from '../../core/read/file-stamp.ts'
import { findSkills } from '../../layout/find-skills.ts'
import type { FoundSkills, LeftOut } from '../../layout/layout.ts'
import type { ListedFolder, Listing } from '../../core/roots/list-root.ts'
import { errorCode } from '../../core/shared/system-errors.ts'
import type { FolderRoot } from '../address/source-kind.ts'
import { findPackaged } from '../publish/packages.ts'
import { type PlanOptions, reportOf } from '../publish/plan.ts'
import { Publisher } from '../publish/publisher.ts'
import type { StateFolder } from '../publish/state-folder.ts'
import { asSourceError, SourceError } from '../source-error.ts'
import type { Origin, SourceRoot } from '../source-sync.ts'
import { DiskTree } from './disk-tree.ts'

/** Pauses between two searches in milliseconds: with polling, without, and after an event. */
const POLL_MS = 1_000
const TICK_MS = 20_000
const SPACING_MS = 150

interface FolderOptions {
  readonly folder: FolderRoot & Required<Pick<FolderRoot, 'name' | 'layout'>>
  readonly state: StateFolder
  readonly polling: boolean
  readonly linkTargets: readonly string[] | undefined
}

/** Serves the skills of a folder with a layout where they lie, and unpacks those of packages into the state folder. */
export class FolderOrigin extends EventEmitter<{ changed: [] }> implements Origin, Listing {
  readonly spacingMs = SPACING_MS
  readonly intervalMs: number
  readonly maxRetryMs: number
  readonly root: SourceRoot
  readonly isFixed = false
  folders: Listing['folders']
  ignored: ReadonlySet<string> = new Set()
  report: Origin['report'] = { kind: 'folder' }
  hint = (): void => {}
  readonly #options: FolderOptions
  readonly #packages: Publisher
  /** What packages were unpacked last, and what was left out then. */
  #packaged: { readonly fingerprint: string, readonly leftOut: readonly LeftOut[] } | undefined
  readonly #packagesFolder: string
  #release: (() => void) | undefined

  constructor (options: FolderOptions) {
    super()
    const { folder: { path, name, prefix = '' }, state, polling } = options
    this.#options = options
    this.#packagesFolder = state.folderOf('sources', name, ['packages', path])
    this.#packages = new Publisher(this.#packagesFolder)
    this.intervalMs = this.maxRetryMs = polling ? POLL_MS : TICK_MS
    this.root = { path, name, listed: this, prefix }
  }

  async check (signal: AbortSignal): Promise<void> {
    const { folder: { path }, linkTargets } = this.#options
    try {
      await this.#search(await DiskTree.open(path, linkTargets), signal)
    } catch (cause) {
      const error = asFolderError(cause)
      // If the folder is only unreadable for now, the skills of the last search stay.
      if (error.code === 'not_found' || error.code === 'auth_failed') this.#list(undefined)
      throw error
    }
  }

  async close (): Promise<void> {
    this.#release?.()
    this.#release = undefined
  }

  async #search (tree: DiskTree, signal: AbortSignal): Promise<void> {
    const { folder: { layout, name, path: top, include, exclude, prefix = '' } } = this.#options
    const options = { layout, name, include, exclude, prefix, where: `folder "${name}"` }
    const found = await findSkills(tree, options)
    const rules = (await readIgnoreFile(tree.disk, tree.root))?.rules
    const packages = found.packages.filter((path) => rules?.hides(path, false) !== true)
    const leftOut = [...found.leftOut]
    const folders = new Map<string, ListedFolder>()
    let problem: SourceError | undefined
    if (packages.length > 0) {
      await this.#unpack(tree, { ...found, packages }, options, signal).catch((error: unknown) => {
        signal.throwIfAborted()
        problem = asSourceError(error)
      })
      for (const [name, folder] of this.#packages.folders ?? []) folders.set(name, folder)
      leftOut.push(...this.#packaged?.leftOut ?? [])
    }
    leftOut.push(...tree.outside)
    const ignored = new Set<string>()
    for (const { name, path, realPath } of found.skills) {
      if (path !== '' && rules?.hides(path, true) === true) {
        leftOut.push({ path, reason: 'ignored' })
        ignored.add(prefix + name)
      } else {
        folders.set(prefix + name, { path: join(top, path), realPath, rules: rulesOf(rules, prefix + name, path) })
      }
    }
    this.ignored = ignored
    this.#list(folders, reportOf(found, leftOut))
    if (problem !== undefined) throw problem
  }

  /** Publishes the skills of packages, if one of them has changed. */
  async #unpack (tree: DiskTree, found: FoundSkills, options: PlanOptions, signal: AbortSignal): Promise<void> {
    const publisher = this.#packages
    if (this.#release === undefined) {
      const { folder, release } = await this.#options.state.claim(this.#packagesFolder)
      this.#release = release
      await publisher.open(folder)
      await publisher.clean()
    }
    const isWhole = await publisher.restore()
    const states: unknown[] = found.skills.map(({ name }) => name)
    for (const path of found.packages) states.push([path, await stampAt(tree.disk, join(tree.root, path))])
    const fingerprint = JSON.stringify(states)
    if (isWhole && this.#packaged?.fingerprint === fingerprint) return
    await publisher.withTmp(async (tmp) => {
      const { skills, read, leftOut } = await findPackaged(tree, found, options, tmp, signal)
      await publisher.add(skills, read, signal)
      await publisher.list(skills)
      this.#packaged = { fingerprint, leftOut }
    })
  }

  #list (folders: Listing['folders'], report: Partial<Origin['report']> = {}): void {
    this.report = { kind: 'folder', ...report }
    this.folders = folders
    // Also if the list is the same: files in the skills may have changed.
    this.emit('changed')
  }
}

/** Returns what the ignore file of the folder hides of a skill, whose path in the folder may have another name. */
function rulesOf (rules: IgnoreRules | undefined, name: string, path: string): IgnoreRules | undefined {
  if (rules === undefined || rules.problem !== undefined) return rules
  const id = `${rules.id} ${path}`
  const placeOf = (file: string): string => path === '' ? file.slice(name.length + 1) : path + file.slice(name.length)
  return { id, hides: (file, isFolder) => rules.hides(placeOf(file), isFolder) }
}

function asFolderError (cause: unknown): SourceError {
  const isOfDisk = cause instanceof RefusedError || errorCode(cause) !== ''
  if (cause instanceof SourceError || !isOfDisk) return asSourceError(cause)
  const { refusal, cause: reason } = asRefused(cause)
  if (refusal === 'not_found') return new SourceError('not_found', 'it does not exist', { cause })
  if (refusal === 'permission_denied') return new SourceError('auth_failed', 'permission denied', { cause })
  return new SourceError('disk', `its disk failed (${errorCode(reason) || refusal})`, { cause })
}
