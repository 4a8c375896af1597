import { readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import type { LayoutTree, TreeEntry } from '../../layout/layout.ts'
import { yieldIfNeeded } from '../../core/shared/async.ts'
import { MAX_LINK_BYTES, MAX_NAME_BYTES, MAX_PATH_BYTES } from '../../core/shared/limits.ts'
import { baseName, folderOf, foldersAbove, quotePath } from '../../core/shared/paths.ts'
import { compareCodePoints } from '../../core/shared/text.ts'
import { SourceError } from '../source-error.ts'

/** A file or link in one state of a source. */
export interface SourceEntry {
  /** Path with `/` between segments. */
  readonly path: string
  readonly kind: 'file' | 'link' | 'submodule'
  /** Id of the content, a blob id or a digest: equal for equal bytes within one source. */
  readonly id: string
  /** Bytes. */
  readonly size: number
  /** Target of a link, as written. */
  readonly target?: string
  /** Path of the file on this machine that contains the bytes. */
  readonly stored?: string
}

/** Reads files, and gives the bytes of each to `use`. */
export type ReadFiles = <File extends { readonly entry: SourceEntry }>(
  files: readonly File[], use: (file: File, bytes: Buffer) => Promise<void>
) => Promise<void>

/** All files of a source in one state. */
export interface SourceFiles {
  readonly entries: readonly SourceEntry[]
  readonly read: ReadFiles
}

export async function readFileOf ({ read }: SourceFiles, entry: SourceEntry): Promise<Buffer> {
  let content: Buffer = Buffer.alloc(0)
  await read([{ entry }], async (_, bytes) => { content = bytes })
  return content
}

/** Returns files that were unpacked or downloaded into a folder of this machine. */
export function storedFiles (entries: readonly SourceEntry[]): SourceFiles {
  return {
    entries,
    async read (files, use) {
      for (const file of files) await use(file, await readFile(file.entry.stored ?? ''))
    }
  }
}

export const MAX_ENTRIES = 200_000
const MAX_DEPTH = 20

/** Most segments of a path, including those of all links on it. */
const MAX_STEPS_ON_A_PATH = 256

/**
 * Refuses a state that is too large, or that no file system holds as it is.
 * @param where names the state in the sentence
 * @param isSkill whether all of it is written
 * @throws SourceError
 */
export function checkEntries (entries: readonly SourceEntry[], where: string, isSkill = false): void {
  if (entries.length > MAX_ENTRIES) throw new SourceError('too_large', `${where} has more than ${MAX_ENTRIES} files`)
  const refuse = (path: string, problem: string): never => {
    throw new SourceError('refused_tree', `${where} is refused: ${quotePath(path)} ${problem}`)
  }
  const names = new Set<string>()
  for (const entry of entries) {
    const { path } = entry
    const problem = pathProblem(path) ?? (isSkill && isUnwritable(entry) ? 'cannot be stored on any disk' : undefined)
    if (problem !== undefined) refuse(path, problem)
    if (names.has(path)) refuse(path, 'occurs twice')
    names.add(path)
  }
  for (const { path } of entries) {
    const both = foldersAbove(path).find((folder) => names.has(folder))
    if (both !== undefined) refuse(both, 'is both a file and a folder')
  }
}

/** Returns why no source may have this path; undefined if it may. */
export function pathProblem (path: string): string | undefined {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `is longer than ${MAX_PATH_BYTES} bytes`
  const segments = path.split('/')
  if (segments.length > MAX_DEPTH) return `lies deeper than ${MAX_DEPTH} folders`
  if (path.includes('\0') || !path.isWellFormed()) return 'is not a file name'
  if (segments.some((segment) => ['', '.', '..'].includes(segment))) return 'leads out of its folder'
  // Such a folder is never served, and no honest source has one.
  if (segments.some((segment) => segment.toLowerCase() === '.git')) return 'is in a folder .git'
  return undefined
}

/** Returns whether no file system holds a file with this name, or a link with this target. */
export function isUnwritable ({ path, kind, target = '' }: SourceEntry): boolean {
  if (path.split('/').some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)) return true
  return kind === 'link' && (target === '' || target.includes('\0') || Buffer.byteLength(target) > MAX_LINK_BYTES)
}

/** A state as a tree of folders. Links inside the tree are followed. */
export class SourceTree implements LayoutTree {
  readonly #files: SourceFiles
  readonly #base: string
  /** The entries of each folder by name; undefined for a folder. */
  readonly #folders = new Map<string, Map<string, SourceEntry | undefined>>()
  /** Submodules, and links without a target in the tree, from all folders that were listed. */
  readonly unresolved = new Set<SourceEntry>()

  /** @param base the folder to use as top; '' for the whole tree */
  constructor (files: SourceFiles, base = '') {
    this.#files = files
    this.#base = base
    for (const entry of files.entries) this.#makeFolder(folderOf(entry.path)).set(baseName(entry.path), entry)
  }

  #makeFolder (path: string): Map<string, SourceEntry | undefined> {
    let folder = this.#folders.get(path)
    if (folder === undefined) {
      this.#folders.set(path, folder = new Map())
      if (path !== '') this.#makeFolder(folderOf(path)).set(baseName(path), undefined)
    }
    return folder
  }

  async entries (path: string): Promise<readonly TreeEntry[]> {
    const folder = await this.realPath(path)
    const entries: TreeEntry[] = []
    for (const [name, entry] of this.#folders.get(folder) ?? []) {
      const linked = entry?.kind === 'link'
      const target = linked ? this.#resolve(posix.join(folder, name)) : posix.join(folder, name)
      if (entry !== undefined && (target === undefined || entry.kind === 'submodule')) this.unresolved.add(entry)
      else entries.push({ name, kind: this.#folders.has(target ?? '') ? 'folder' : 'file', linked })
      if (linked) await yieldIfNeeded()
    }
    return entries.sort((a, b) => compareCodePoints(a.name, b.name))
  }

  async realPath (path: string): Promise<string> {
    const whole = posix.join(this.#base, path)
    return this.#resolve(whole) ?? whole
  }

  async read (path: string, limit: number): Promise<Buffer | undefined> {
    const file = await this.realPath(path)
    const entry = this.#folders.get(folderOf(file))?.get(baseName(file))
    return entry?.kind === 'file' && entry.size <= limit ? await readFileOf(this.#files, entry) : undefined
  }

  /** Returns all entries below a folder, with their paths relative to it, sorted by path. Links in it stay links. */
  async below (path: string): Promise<ReadonlyArray<{ readonly path: string, readonly entry: SourceEntry }>> {
    const found: Array<{ path: string, entry: SourceEntry }> = []
    const collect = (folder: string, prefix: string): void => {
      for (const [name, entry] of this.#folders.get(folder) ?? []) {
        if (entry === undefined) collect(posix.join(folder, name), `${prefix}${name}/`)
        else found.push({ path: prefix + name, entry })
      }
    }
    collect(await this.realPath(path), '')
    return found.sort((a, b) => compareCodePoints(a.path, b.path))
  }

  /** Follows all links of a path as the kernel would, inside the tree. Returns undefined where nothing is. */
  #resolve (path: string, budget = { steps: MAX_STEPS_ON_A_PATH }): string | undefined {
    if (path === '') return ''
    if (--budget.steps < 0) return undefined
    const end = path.lastIndexOf('/')
    const folder = end === -1 ? '' : this.#resolve(path.slice(0, end), budget)
    const name = path.slice(end + 1)
    const children = folder === undefined ? undefined : this.#folders.get(folder)
    if (folder === undefined || children === undefined) return undefined
    if (name === '' || name === '.') return folder
    if (name === '..') return folder === '' ? undefined : folderOf(folder)
    const { kind, target = '' } = children.get(name) ?? {}
    if (kind === 'link') return target.startsWith('/') ? undefined : this.#resolve(`${folder}/${target}`, budget)
    return children.has(name) ? posix.join(folder, name) : undefined
  }
}
